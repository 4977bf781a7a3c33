"""Preflight of a transaction: checks its changes before anything is written and plans one operation or two for each.

Its verdict may be outdated a moment later: each operation checks what it displaced once more, after the rename.
"""

import errno
import os
import stat
from collections.abc import Mapping, Sequence

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name, to_write_error
from kaiza.store.changes.operation import Operation, OperationKind, exists_error, mismatch_error, temporary_name
from kaiza.store.disk.file_metadata import NO_KNOWN_DIGESTS, FileMetadata, FileSnapshot, snapshot
from kaiza.store.files.confined_root import ConfinedRoot, file_kind
from kaiza.store.files.os_errors import not_regular_file_error

_WRITE_BITS = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH


class Preflight:
    """Checks the changes of one transaction, in order."""

    def __init__(
        self, workspace: ConfinedRoot, blobs: BlobStore, directories: DirectoryHandles, txn: str, *, is_undo: bool
    ) -> None:
        self._files = workspace
        self._blobs = blobs
        self._directories = directories
        self._txn = txn
        self._is_undo = is_undo
        self._held: set[str] = set()
        self._operations: list[tuple[Operation, Change | None]] = []

    def plan_operations(self, changes: Sequence[Change]) -> tuple[tuple[Operation, Change | None], ...]:
        """The operations, each with the change whose content it writes. Raises for the first impossible change."""
        touched = [path for change in changes for path in change.touched_paths]
        if len(touched) != len(set(touched)):
            raise errors.SystemError.tool_failure(
                "INVALID_INPUT_VALUE", human_message="Two changes name the same path. Change each path once."
            )
        # Contents that the files of this transaction have: what it displaces, it can put in another place.
        self._held = {change.before_hash for change in changes if change.before_hash is not None}
        for change in changes:
            self._plan_change(change)
        return tuple(self._operations)

    def _plan_change(self, change: Change) -> None:
        if change.operation == "create":
            self._require_absent(change.path)
            self._require_stored_content(change)
            self._add_operation("put", change)
        elif change.operation == "modify":
            metadata = self._require_present(change.path, change).metadata
            self._require_stored_content(change)
            self._add_operation("swap", change, metadata)
        elif change.operation == "delete":
            self._add_operation("take", change, self._require_present(change.path, change).metadata)
        else:
            self._plan_move(change)

    def _plan_move(self, change: Change) -> None:
        source = change.source or change.path
        current = self._require_present(source, change, allow_read_only=change.is_plain_move)
        self._require_absent(change.path)
        if change.is_plain_move and change.mode in {None, current.metadata.mode}:
            self._add_operation("move", change, current.metadata)
            return
        # A file that is changed on the way is written anew at its target, and the source is deleted.
        self._add_operation("put", change, current.metadata)
        deletion = Change(source, "delete", before_hash=change.before_hash)
        self._add_operation("take", deletion, current.metadata)

    def _add_operation(self, kind: OperationKind, change: Change, metadata: FileMetadata | None = None) -> None:
        temp = temporary_name(self._txn, len(self._operations))
        writes = kind in {"put", "swap"}
        after = (change.after_hash or change.before_hash) if writes else None
        operation = Operation(kind, change.path, temp, change.before_hash, after, change.source, metadata)
        self._operations.append((operation, change if writes else None))

    def _require_absent(self, path: RelPath) -> None:
        """Require that nothing exists at a path and that a file can be created there."""
        try:
            self._directories.open_or_plan(path.parent)
            dir_fd = self._directories.nearest_descriptor(path.parent)
            _require_writable_directory(dir_fd)
            if path.parent in self._directories.missing:
                return
            existing = os.stat(last_name(path), dir_fd=dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return
        except OSError as error:
            raise to_write_error(error, self._files, path, missing="FILE_WRITE_FAILED") from error
        current = snapshot(dir_fd, last_name(path)) if stat.S_ISREG(existing.st_mode) else None
        raise exists_error(path, current.digest if current is not None else None)

    def _require_present(self, path: RelPath, change: Change, *, allow_read_only: bool = False) -> FileSnapshot:
        """Require that the file exists, has the expected hash and can be replaced."""
        try:
            # The hash that the tool read, by the file's stamp: an unchanged file is not read again. A forged stamp
            # gains nothing: what an operation displaces is always read whole.
            stamp, digest = change.stat_signature, change.before_hash
            current = self._snapshot_file(path, {stamp: digest} if stamp and digest else NO_KNOWN_DIGESTS)
        except OSError as error:
            raise to_write_error(error, self._files, path, missing="FILE_NOT_FOUND") from error
        # A rename would replace one name only, and the file may be protected under its other name, such as a plan.
        if current.link_count > 1:
            raise _unchangeable_error(path, "The file has several hard links. Ask a person to change it.", "EMLINK")
        # The rename needs no write permission for the file itself, but its owner meant it to stay as it is.
        # An undo puts back what was there: agents can move a read-only file, so a person must be able to move it back.
        if not (allow_read_only or self._is_undo) and not current.metadata.mode & _WRITE_BITS:
            raise _unchangeable_error(path, "The file is read-only. Ask a person to make it writable.", "EACCES")
        if current.digest != change.before_hash:
            raise mismatch_error(path, change.before_hash, current.digest)
        return current

    def _snapshot_file(self, path: RelPath, known: Mapping[tuple[int, ...], str]) -> FileSnapshot:
        if not self._directories.open_existing(path.parent):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        dir_fd, name = self._directories.descriptors[path.parent], last_name(path)
        mode = os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if not stat.S_ISREG(mode):
            raise not_regular_file_error(path, file_kind(mode), "FILE_WRITE_FAILED")
        _require_writable_directory(dir_fd)
        if not os.access(name, os.W_OK, dir_fd=dir_fd) and mode & _WRITE_BITS:
            raise OSError(errno.EACCES, os.strerror(errno.EACCES))
        current = snapshot(dir_fd, name, known)
        if current is None:  # replaced by something else since the stat above
            raise not_regular_file_error(path, "other", "FILE_WRITE_FAILED")
        return current

    def _require_stored_content(self, change: Change) -> None:
        digest = change.after_hash
        is_known = change.content is not None or digest in self._held
        if not is_known and (digest is None or not self._blobs.has(digest)):
            raise errors.SystemError.tool_failure(
                "FILE_WRITE_FAILED",
                human_message="The earlier content is no longer stored. It cannot be restored.",
                cause={"path": str(change.path), "hash": digest},
            )


def _require_writable_directory(dir_fd: int) -> None:
    if not os.access(b".", os.W_OK | os.X_OK, dir_fd=dir_fd):
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))


def _unchangeable_error(path: RelPath, sentence: str, errno_name: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED", human_message=sentence, cause={"path": str(path), "errno": errno_name}
    )
