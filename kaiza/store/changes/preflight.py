"""What can be foreseen about a change, looked at before anything is written: it becomes steps or a refusal."""

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name, to_write_error
from kaiza.store.changes.operation import Operation, OperationKind, mismatch_error, temporary_name
from kaiza.store.disk.file_metadata import NO_KNOWN_DIGESTS, FileMetadata, FileSnapshot, snapshot
from kaiza.store.files.confined_root import ConfinedRoot, file_kind
from kaiza.store.files.os_errors import not_regular_file_error

_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Preflight:
    """Looks at the places of one change after the other."""

    def __init__(self, workspace: ConfinedRoot, objects: BlobStore, directories: DirectoryHandles, txn: str) -> None:
        self._files = workspace
        self._blobs = objects
        self._directories = directories
        self._txn = txn
        self._operations: list[tuple[Operation, Change | None]] = []

    def plan_operations(self, changes: Sequence[Change]) -> tuple[tuple[Operation, Change | None], ...]:
        """Turn changes into steps, each with the change whose content it brings; refuse the first impossible one."""
        touched = [path for change in changes for path in change.touched_paths]
        if len(touched) != len(set(touched)):
            raise errors.SystemError.tool_failure(
                "INVALID_INPUT_VALUE", human_message="A path is changed twice. Change each path once."
            )
        for change in changes:
            self._plan_change(change)
        return tuple(self._operations)

    def _plan_change(self, change: Change) -> None:
        if change.operation == "create":
            self._require_absent(change.path)
            self._require_stored_content(change)
            self._add_operation("put", change)
        elif change.operation == "modify":
            facts = self._require_present(change.path, change).metadata
            self._require_stored_content(change)
            self._add_operation("swap", change, facts)
        elif change.operation == "delete":
            self._add_operation("take", change, self._require_present(change.path, change).metadata)
        else:
            self._plan_move(change)

    def _plan_move(self, change: Change) -> None:
        source = change.source or change.path
        seen = self._require_present(source, change, lasting=change.is_plain_move)
        self._require_absent(change.path)
        if change.is_plain_move and change.mode in {None, seen.metadata.mode}:
            self._add_operation("move", change, seen.metadata)
            return
        self._add_operation("put", change, seen.metadata)
        taken = Change(source, "delete", before_hash=change.before_hash)
        self._add_operation("take", taken, seen.metadata)

    def _add_operation(self, do: OperationKind, change: Change, facts: FileMetadata | None = None) -> None:
        temp = temporary_name(self._txn, len(self._operations))
        brings = do in {"put", "swap"}
        after = (change.after_hash or change.before_hash) if brings else None
        step = Operation(do, change.path, temp, change.before_hash, after, change.source, facts)
        self._operations.append((step, change if brings else None))

    def _require_absent(self, path: RelPath) -> None:
        """Insist that nothing is at a path and that something can be put there."""
        try:
            self._directories.open_or_plan(path.parent)
            where = self._directories.nearest_descriptor(path.parent)
            _require_writable_directory(where)
            if path.parent in self._directories.missing:
                return
            found = os.stat(last_name(path), dir_fd=where, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise to_write_error(error, self._files, path, missing="FILE_WRITE_FAILED") from error
        cause: dict[str, object] = {"path": str(path)}
        if stat.S_ISREG(found.st_mode) and (seen := snapshot(where, last_name(path))):
            cause["current_hash"] = seen.digest
        raise errors.SystemError.tool_failure(
            "FILE_ALREADY_EXISTS",
            human_message="Something is there already. Read it, then replace it with its hash.",
            cause=cause,
        )

    def _require_present(self, path: RelPath, change: Change, *, lasting: bool = False) -> FileSnapshot:
        """Insist that the file is there, is the one expected, and can be replaced."""
        try:
            found = self._snapshot_file(path, _known_digests(change))
        except OSError as error:
            raise to_write_error(error, self._files, path, missing="FILE_NOT_FOUND") from error
        if found.link_count > 1:
            raise _unchangeable_error(
                path, "The file has several names (hard links) and is not changed through one.", "EMLINK"
            )
        if not lasting and not found.metadata.mode & _WRITE_BITS:
            raise _unchangeable_error(path, "The file is read-only. Ask a person to make it writable.", "EACCES")
        if found.digest != change.before_hash:
            raise mismatch_error(path, change.before_hash, found.digest)
        return found

    def _snapshot_file(self, path: RelPath, known: Mapping[tuple[int, ...], str]) -> FileSnapshot:
        if not self._directories.open_existing(path.parent):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        where, name = self._directories.descriptors[path.parent], last_name(path)
        mode = os.stat(name, dir_fd=where, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(mode):
            raise not_regular_file_error(path, file_kind(mode), "FILE_WRITE_FAILED")
        _require_writable_directory(where)
        if not os.access(name, os.W_OK, dir_fd=where) and mode & _WRITE_BITS:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        seen = snapshot(where, name, known)
        if seen is None:
            raise not_regular_file_error(path, "other", "FILE_WRITE_FAILED")
        return seen

    def _require_stored_content(self, change: Change) -> None:
        if change.content is None and (change.after_hash is None or not self._blobs.has(change.after_hash)):
            raise errors.SystemError.tool_failure(
                "FILE_WRITE_FAILED",
                human_message="What was there before is no longer kept. It cannot be put back.",
                cause={"path": str(change.path), "hash": change.after_hash},
            )


def _known_digests(change: Change) -> Mapping[tuple[int, ...], str]:
    """What the tool has read need not be read again; what comes out in the end is read in any case."""
    return (
        {change.stat_signature: change.before_hash}
        if change.stat_signature and change.before_hash
        else NO_KNOWN_DIGESTS
    )


def _require_writable_directory(dir_fd: int) -> None:
    if not os.access(b".", os.W_OK | os.X_OK, dir_fd=dir_fd):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def _unchangeable_error(path: RelPath, sentence: str, why: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED", human_message=sentence, cause={"path": str(path), "errno": why}
    )
