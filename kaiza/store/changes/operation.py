"""One operation of a transaction (create, replace, delete or move), its check after the rename, and its inverse.

No content is written in place: a file is complete and on disk under a temporary name beside its target before one
atomic rename puts it there. What the rename displaced is then read and compared with what the change was made for.
"""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.disk import atomic_rename
from kaiza.store.disk.file_metadata import NO_KNOWN_DIGESTS, FileMetadata, FileSnapshot, inode_at, snapshot

# The format of journals on disk: put creates, swap replaces, take deletes.
OperationKind = Literal["put", "swap", "take", "move"]
_OPERATION_KINDS: tuple[OperationKind, ...] = get_args(OperationKind)
# Bounds a rollback against a process that replaces the same file without end.
MAX_EXCHANGES = 1000
CHANGED_SINCE = "changed_since"
_ORDINARY_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to be done at one path; a journal's first line lists them."""

    kind: OperationKind
    path: RelPath
    temp_name: str
    before_hash: str | None = None
    after_hash: str | None = None
    source: RelPath | None = None
    metadata: FileMetadata | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any], txn: str, number: int) -> "Operation":
        """Parse an operation of a journal. ValueError where it is not one."""
        try:
            source, metadata = value["source"], value["facts"]
            return cls(
                _OPERATION_KINDS[_OPERATION_KINDS.index(value["do"])],
                _parse_path(value["path"]),
                temporary_name(txn, number),  # derived, never read: a planted name could be any file
                _parse_hash(value["before"]),
                _parse_hash(value["after"]),
                None if source is None else _parse_path(source),
                None if metadata is None else FileMetadata.from_json(metadata),
            )
        except (KeyError, TypeError, AttributeError) as fault:
            raise ValueError("not an operation") from fault

    def has_unique_metadata(self, *, is_mode_recorded: bool) -> bool:
        """Whether an undo needs metadata that, once the operation is complete, only its journal has.

        A replaced or moved file goes on with its owner and attributes; those of a deleted file are gone with it. Its
        mode is in the log, except where a recovery recorded the deletion.
        """
        if self.kind != "take" or self.metadata is None:
            return False
        return not (self.metadata.is_ordinary and (is_mode_recorded or self.metadata.mode == _ORDINARY_MODE))

    def as_json(self) -> Mapping[str, Any]:
        """The operation as a journal stores it."""
        return {
            "do": self.kind,
            "path": self.path.parts,
            "before": self.before_hash,
            "after": self.after_hash,
            "source": None if self.source is None else self.source.parts,
            "facts": None if self.metadata is None else self.metadata.as_json(),
        }


def temporary_name(txn: str, number: int) -> str:
    """Name beside a path that only one operation of one transaction uses."""
    return f".kaiza-{txn}-{number}"


def _parse_path(value: object) -> RelPath:
    if not isinstance(value, list) or not value or not all(isinstance(part, str) for part in value):
        raise ValueError("not a path")
    return RelPath(tuple(value))  # refuses `..`, empty and absolute parts


def _parse_hash(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ValueError("not a hash")
    return value


@dataclass(slots=True)
class ActiveOperation:
    """An operation being performed or rolled back, in directories held by descriptor."""

    operation: Operation
    directories: DirectoryHandles
    blobs: BlobStore
    our_inode: int | None = None
    """Inode of the file that this operation brings in: the staged one, or the moved one."""
    is_done: bool = False
    is_stored: bool = False
    """Whether the displaced content is in the blob store already."""
    displaced: FileSnapshot | None = None
    """The file that the rename displaced, or moved."""
    created_mode: int | None = None
    """Mode that a new file got by umask and access lists, where the change names none."""

    @property
    def directory_fd(self) -> int:
        """Descriptor of the path's directory."""
        return self.directories.descriptors[self.operation.path.parent]

    @property
    def name(self) -> bytes:
        """The path's last name."""
        return last_name(self.operation.path)

    @property
    def temp(self) -> bytes:
        """The operation's temporary name, in the same directory."""
        return self.operation.temp_name.encode()

    @property
    def source_location(self) -> tuple[int, bytes]:
        """Directory and last name of the file to be moved."""
        source = self.operation.source or self.operation.path
        return self.directories.descriptors[source.parent], last_name(source)

    def perform(self) -> None:
        """Rename the files; HASH_MISMATCH where the displaced one is not the one expected."""
        # Renames without overwriting and exchanges lose nothing if another process is faster: its file is either
        # still in place or at the temporary name, from where the rollback returns it.
        try:
            if self.operation.kind == "swap":
                atomic_rename.exchange(self.directory_fd, self.temp, self.name)
            elif self.operation.kind == "take":
                atomic_rename.rename_noreplace(self.directory_fd, self.name, self.directory_fd, self.temp)
            elif self.operation.kind == "put":
                atomic_rename.rename_noreplace(self.directory_fd, self.temp, self.directory_fd, self.name)
            else:
                atomic_rename.rename_noreplace(*self.source_location, self.directory_fd, self.name)
        except FileExistsError as error:
            raise exists_error(self.operation.path) from error
        self.is_done = True
        if self.operation.kind == "put":
            return
        # Checked after the rename and read whole: between the preflight and the rename the file was not ours.
        is_move, metadata = self.operation.kind == "move", self.operation.metadata
        displaced = self.displaced = snapshot(self.directory_fd, self.name if is_move else self.temp, lone=True)
        if (
            displaced is not None
            and displaced.link_count == 1  # linked since the preflight: the other name would keep the old content
            and displaced.digest == self.operation.before_hash
            and metadata in (None, displaced.metadata)
        ):
            return
        if is_move:  # undone here: `roll_back` leaves a file that it does not recognize
            self.is_done = False
            atomic_rename.rename_noreplace(self.directory_fd, self.name, *self.source_location)
        raise mismatch_error(self.operation.source or self.operation.path, self.operation.before_hash, None)

    def roll_back(self) -> str | None:
        """Undo the operation; where the file was changed since, leave it and return the reason."""
        self.is_done = False
        if self.operation.kind == "take":
            return self._undo_delete()
        if inode_at(self.directory_fd, self.name) != self.our_inode:
            return self._leave_changed()
        current = snapshot(self.directory_fd, self.name)
        if self.operation.kind == "move":
            return self._undo_move(current)
        if current is None or current.digest != self.operation.after_hash:
            return self._leave_changed()
        return self._undo_replace() if self.operation.kind == "swap" else self._undo_create()

    def remove_temporary(self) -> None:
        """Remove the temporary file. One that this operation did not stage is stored as a blob first."""
        inode = inode_at(self.directory_fd, self.temp)
        if inode is None:
            return
        if self.operation.kind in {"put", "swap"} and (self.our_inode is None or inode == self.our_inode):
            os.unlink(self.temp, dir_fd=self.directory_fd)
        else:
            self._store_temporary()

    def finalize(self) -> None:
        """Store the displaced file as a blob, unless it is stored already, and remove its temporary name."""
        if self.is_done and self.is_stored:
            os.unlink(self.temp, dir_fd=self.directory_fd)
        elif inode_at(self.directory_fd, self.temp) is not None:
            self._store_temporary()

    def _undo_delete(self) -> str | None:
        try:
            atomic_rename.rename_noreplace(self.directory_fd, self.temp, self.directory_fd, self.name)
        except FileExistsError:
            return self._leave_changed()
        return None

    def _undo_move(self, current: FileSnapshot | None) -> str | None:
        if current is None or current.digest != self.operation.before_hash:
            return CHANGED_SINCE
        try:
            atomic_rename.rename_noreplace(self.directory_fd, self.name, *self.source_location)
        except FileExistsError:
            return CHANGED_SINCE
        return None

    def _undo_replace(self) -> str | None:
        # Another process may replace the file between the check and the exchange. Then the exchange displaces a file
        # that was not known before: exchange again, so that the newest file of the other process ends up in place.
        known = {(self.our_inode, self.operation.after_hash)}
        original = inode_at(self.directory_fd, self.temp)
        for _ in range(MAX_EXCHANGES):
            known.add(self._identify_temporary())
            atomic_rename.exchange(self.directory_fd, self.temp, self.name)
            if self._identify_temporary() in known:
                break
        is_restored = inode_at(self.directory_fd, self.name) == original
        if self._identify_temporary() == (self.our_inode, self.operation.after_hash):
            os.unlink(self.temp, dir_fd=self.directory_fd)
        else:
            self._store_temporary()
        return None if is_restored else CHANGED_SINCE

    def _undo_create(self) -> str | None:
        # Renamed away before it is unlinked: what was written into it since the check is noticed, and put back.
        atomic_rename.rename_noreplace(self.directory_fd, self.name, self.directory_fd, self.temp)
        if self._identify_temporary() == (self.our_inode, self.operation.after_hash):
            os.unlink(self.temp, dir_fd=self.directory_fd)
            return None
        return self._undo_delete() or CHANGED_SINCE

    def _identify_temporary(self) -> tuple[int | None, str | None]:
        """Inode and hash of the temporary file: an inode number alone may be reused, or its content rewritten."""
        current = snapshot(self.directory_fd, self.temp)
        return (inode_at(self.directory_fd, self.temp), None) if current is None else (current.inode, current.digest)

    def _leave_changed(self) -> str:
        self.finalize()
        return CHANGED_SINCE

    def _store_temporary(self) -> None:
        displaced = self.displaced
        # A large file is not hashed a second time, unless a process had it open for writing when it was displaced.
        known = {displaced.stamp: displaced.digest} if displaced and displaced.has_no_writer else NO_KNOWN_DIGESTS
        with suppress(FileNotFoundError):
            store_and_unlink(self.blobs, self.directory_fd, self.temp, known)


def store_and_unlink(
    blobs: BlobStore, dir_fd: int, name: bytes, known: Mapping[tuple[int, ...], str] = NO_KNOWN_DIGESTS
) -> None:
    """Store a regular file as a blob and remove its name; anything else is only unlinked."""
    current = snapshot(dir_fd, name, known)
    if current is None:
        os.unlink(name, dir_fd=dir_fd)
    else:
        blobs.adopt(current.digest, dir_fd, name)


def mismatch_error(path: RelPath, expected: str | None, current: str | None) -> errors.SystemError:
    """HASH_MISMATCH for a file that is not in the state a change was made for."""
    cause: dict[str, object] = {"path": str(path), "expected_hash": expected}
    if current is not None:
        cause["current_hash"] = current
    return errors.SystemError.tool_failure(
        "HASH_MISMATCH", human_message="The file is not what was expected. Read it again.", cause=cause
    )


def exists_error(path: RelPath, current: str | None = None) -> errors.SystemError:
    """FILE_ALREADY_EXISTS for a path where a file is to be created."""
    cause: dict[str, object] = {"path": str(path)}
    if current is not None:
        cause["current_hash"] = current
    return errors.SystemError.tool_failure(
        "FILE_ALREADY_EXISTS",
        human_message="The path already exists. Read it, then replace it with its hash.",
        cause=cause,
    )
