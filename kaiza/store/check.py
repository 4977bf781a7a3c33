"""What can be foreseen about a change, looked at before anything is written: it becomes steps or a refusal."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths import RelPath
from kaiza.store.directories import Directories, last_name, write_refusal
from kaiza.store.facts import NOTHING, Facts, Seen, look
from kaiza.store.objects import Objects
from kaiza.store.refusal import not_a_file
from kaiza.store.step import Do, Step, mismatch, temporary_name
from kaiza.store.workspace import Workspace, kind_of

_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Checker:
    """Looks at the places of one change after the other."""

    def __init__(self, workspace: Workspace, objects: Objects, directories: Directories, txn: str) -> None:
        self._workspace = workspace
        self._objects = objects
        self._directories = directories
        self._txn = txn
        self._steps: list[tuple[Step, Change | None]] = []

    def steps(self, changes: Sequence[Change]) -> tuple[tuple[Step, Change | None], ...]:
        """Turn changes into steps, each with the change whose content it brings; refuse the first impossible one."""
        touched = [path for change in changes for path in change.touched]
        if len(touched) != len(set(touched)):
            raise errors.SystemError.tool_failure(
                "INVALID_INPUT_VALUE", human_message="A path is changed twice. Change each path once."
            )
        for change in changes:
            self._check(change)
        return tuple(self._steps)

    def _check(self, change: Change) -> None:
        if change.operation == "create":
            self._free(change.path)
            self._kept(change)
            self._add("put", change)
        elif change.operation == "modify":
            facts = self._there(change.path, change).facts
            self._kept(change)
            self._add("swap", change, facts)
        elif change.operation == "delete":
            self._add("take", change, self._there(change.path, change).facts)
        else:
            self._move(change)

    def _move(self, change: Change) -> None:
        source = change.source or change.path
        seen = self._there(source, change, lasting=change.keeps_content)
        self._free(change.path)
        if change.keeps_content and change.mode in {None, seen.facts.mode}:
            self._add("move", change, seen.facts)
            return
        self._add("put", change, seen.facts)
        taken = Change(source, "delete", before_hash=change.before_hash)
        self._add("take", taken, seen.facts)

    def _add(self, do: Do, change: Change, facts: Facts | None = None) -> None:
        temp = temporary_name(self._txn, len(self._steps))
        brings = do in {"put", "swap"}
        after = (change.after_hash or change.before_hash) if brings else None
        step = Step(do, change.path, temp, change.before_hash, after, change.source, facts)
        self._steps.append((step, change if brings else None))

    def _free(self, path: RelPath) -> None:
        """Insist that nothing is at a path and that something can be put there."""
        try:
            self._directories.need_or_make(path.parent)
            where = self._directories.nearest(path.parent)
            _writable(where)
            if path.parent in self._directories.missing:
                return
            found = os.stat(last_name(path), dir_fd=where, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise write_refusal(error, self._workspace, path, missing="FILE_WRITE_FAILED") from error
        cause: dict[str, object] = {"path": str(path)}
        if stat.S_ISREG(found.st_mode) and (seen := look(where, last_name(path))):
            cause["current_hash"] = seen.digest
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="Something is there already. Read it, then replace it with its hash.",
            cause=cause,
        )

    def _there(self, path: RelPath, change: Change, *, lasting: bool = False) -> Seen:
        """Insist that the file is there, is the one expected, and can be replaced."""
        try:
            found = self._look(path, _known(change))
        except OSError as error:
            raise write_refusal(error, self._workspace, path, missing="FILE_NOT_FOUND") from error
        if found.links > 1:
            raise _unchangeable(
                path, "The file has several names (hard links) and is not changed through one.", "EMLINK"
            )
        if not lasting and not found.facts.mode & _WRITABLE:
            raise _unchangeable(path, "The file is read-only. Ask a person to make it writable.", "EACCES")
        if found.digest != change.before_hash:
            raise mismatch(path, change.before_hash, found.digest)
        return found

    def _look(self, path: RelPath, known: Mapping[tuple[int, ...], str]) -> Seen:
        if not self._directories.need(path.parent):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        where, name = self._directories.held[path.parent], last_name(path)
        mode = os.stat(name, dir_fd=where, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(mode):
            raise not_a_file(path, kind_of(mode), "FILE_WRITE_FAILED")
        _writable(where)
        if not os.access(name, os.W_OK, dir_fd=where) and mode & _WRITABLE:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        seen = look(where, name, known)
        if seen is None:
            raise not_a_file(path, "other", "FILE_WRITE_FAILED")
        return seen

    def _kept(self, change: Change) -> None:
        if change.content is None and (change.after_hash is None or not self._objects.has(change.after_hash)):
            raise errors.SystemError.tool_failure(
                "FILE_WRITE_FAILED",
                human_message="What was there before is no longer kept. It cannot be put back.",
                cause={"path": str(change.path), "hash": change.after_hash},
            )


def _known(change: Change) -> Mapping[tuple[int, ...], str]:
    """What the tool has read need not be read again; what comes out in the end is read in any case."""
    return {change.seen_as: change.before_hash} if change.seen_as and change.before_hash else NOTHING


def _writable(dir_fd: int) -> None:
    if not os.access(b".", os.W_OK | os.X_OK, dir_fd=dir_fd):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def _unchangeable(path: RelPath, sentence: str, why: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED", human_message=sentence, cause={"path": str(path), "errno": why}
    )
