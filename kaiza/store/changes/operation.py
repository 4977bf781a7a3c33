"""One step of a change: files trade places or names, what comes out is looked at, and all of it can be taken back."""

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

OperationKind = Literal["put", "swap", "take", "move"]
_OPERATION_KINDS: tuple[OperationKind, ...] = get_args(OperationKind)
MAX_EXCHANGES = 1000
CHANGED_SINCE = "changed_since"


@dataclass(frozen=True, slots=True)
class Operation:
    """Put a new file, swap it for the old one, take a file away, or move it; as a journal tells it."""

    kind: OperationKind
    path: RelPath
    temp_name: str
    before_hash: str | None = None
    after_hash: str | None = None
    source: RelPath | None = None
    metadata: FileMetadata | None = None

    @classmethod
    def from_json(cls, told: Mapping[str, Any], txn: str, number: int) -> "Operation":
        """Read it from a journal; the temporary name is worked out, not read. ValueError where it is no step."""
        try:
            source, facts = told["source"], told["facts"]
            return cls(
                _OPERATION_KINDS[_OPERATION_KINDS.index(told["do"])],
                _parse_path(told["path"]),
                temporary_name(txn, number),
                _parse_text(told["before"]),
                _parse_text(told["after"]),
                None if source is None else _parse_path(source),
                None if facts is None else FileMetadata.from_json(facts),
            )
        except (KeyError, TypeError, AttributeError) as fault:
            raise ValueError("not a step") from fault

    def as_json(self) -> Mapping[str, Any]:
        """Write it for a journal."""
        return {
            "do": self.kind,
            "path": self.path.parts,
            "before": self.before_hash,
            "after": self.after_hash,
            "source": None if self.source is None else self.source.parts,
            "facts": None if self.metadata is None else self.metadata.as_json(),
        }


def temporary_name(txn: str, number: int) -> str:
    """Name beside a path that only one step of one change uses."""
    return f".kaiza-{txn}-{number}"


def _parse_path(told: object) -> RelPath:
    """The path whose names a journal lists; the root is none that a step could change."""
    if not isinstance(told, list) or not told or not all(isinstance(part, str) for part in told):
        raise ValueError("not a path")
    return RelPath(tuple(told))


def _parse_text(told: object) -> str | None:
    if told is not None and not isinstance(told, str):
        raise ValueError("not a text")
    return told


@dataclass(slots=True)
class ActiveOperation:
    """A step under way, in directories held by descriptor."""

    operation: Operation
    directories: DirectoryHandles
    blobs: BlobStore
    our_inode: int | None = None
    """The identity of the file that this step brings in: the staged one, or the moved one."""
    is_done: bool = False
    is_stored: bool = False
    """Whether what the step takes away is kept, whole and durable."""
    displaced: FileSnapshot | None = None
    """What came out when the step was done."""

    @property
    def directory_fd(self) -> int:
        """Where the path's last name stands."""
        return self.directories.descriptors[self.operation.path.parent]

    @property
    def name(self) -> bytes:
        """The path's last name."""
        return last_name(self.operation.path)

    @property
    def temp(self) -> bytes:
        """The name beside it that only this step uses."""
        return self.operation.temp_name.encode()

    @property
    def source_location(self) -> tuple[int, bytes]:
        """Where a moved file stood, and the last name it had."""
        source = self.operation.source or self.operation.path
        return self.directories.descriptors[source.parent], last_name(source)

    def perform(self) -> None:
        """Do the step; HASH_MISMATCH where what came out is not what was expected."""
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
            raise _exists_error(self.operation.path) from error
        self.is_done = True
        if self.operation.kind == "put":
            return
        self.displaced = snapshot(self.directory_fd, self._displaced_name(), lone=True)
        if self._is_expected(self.displaced):
            return
        if self.operation.kind == "move":
            self.is_done = False
            atomic_rename.rename_noreplace(self.directory_fd, self.name, *self.source_location)
        raise mismatch_error(self.operation.source or self.operation.path, self.operation.before_hash, None)

    def roll_back(self) -> str | None:
        """Undo the step where the file still is what the step left; else say why it stays."""
        self.is_done = False
        if self.operation.kind == "take":
            return self._undo_delete()
        if inode_at(self.directory_fd, self.name) != self.our_inode:
            return self._leave_changed()
        seen = snapshot(self.directory_fd, self.name)
        if self.operation.kind == "move":
            return self._undo_move(seen)
        if seen is None or seen.digest != self.operation.after_hash:
            return self._leave_changed()
        return self._undo_replace() if self.operation.kind == "swap" else self._undo_create()

    def remove_temporary(self) -> None:
        """Leave no temporary: ours goes, anybody else's content is kept first."""
        found = inode_at(self.directory_fd, self.temp)
        if found is None:
            return
        if self.operation.kind in {"put", "swap"} and (self.our_inode is None or found == self.our_inode):
            os.unlink(self.temp, dir_fd=self.directory_fd)
        else:
            self._store_temporary()

    def finalize(self) -> None:
        """Keep what the step replaced, and leave no temporary."""
        if self.is_done and self.is_stored:
            os.unlink(self.temp, dir_fd=self.directory_fd)
        elif inode_at(self.directory_fd, self.temp) is not None:
            self._store_temporary()

    def _displaced_name(self) -> bytes:
        return self.name if self.operation.kind == "move" else self.temp

    def _is_expected(self, seen: FileSnapshot | None) -> bool:
        return (
            seen is not None
            and seen.link_count == 1
            and seen.digest == self.operation.before_hash
            and (self.operation.metadata is None or seen.metadata == self.operation.metadata)
        )

    def _undo_delete(self) -> str | None:
        try:
            atomic_rename.rename_noreplace(self.directory_fd, self.temp, self.directory_fd, self.name)
        except FileExistsError:
            return self._leave_changed()
        return None

    def _undo_move(self, seen: FileSnapshot | None) -> str | None:
        if seen is None or seen.digest != self.operation.before_hash:
            return CHANGED_SINCE
        try:
            atomic_rename.rename_noreplace(self.directory_fd, self.name, *self.source_location)
        except FileExistsError:
            return CHANGED_SINCE
        return None

    def _undo_replace(self) -> str | None:
        """Exchange until nothing newer than ours is taken away from anybody; ours is ours only with our content."""
        known = {(self.our_inode, self.operation.after_hash)}
        original = inode_at(self.directory_fd, self.temp)
        for _ in range(MAX_EXCHANGES):
            known.add(self._identify_temporary())
            atomic_rename.exchange(self.directory_fd, self.temp, self.name)
            if self._identify_temporary() in known:
                break
        kept = inode_at(self.directory_fd, self.name) == original
        if self._identify_temporary() == (self.our_inode, self.operation.after_hash):
            os.unlink(self.temp, dir_fd=self.directory_fd)
        else:
            self._store_temporary()
        return None if kept else CHANGED_SINCE

    def _undo_create(self) -> str | None:
        atomic_rename.rename_noreplace(self.directory_fd, self.name, self.directory_fd, self.temp)
        if self._identify_temporary() == (self.our_inode, self.operation.after_hash):
            os.unlink(self.temp, dir_fd=self.directory_fd)
            return None
        return self._undo_delete() or CHANGED_SINCE

    def _identify_temporary(self) -> tuple[int | None, str | None]:
        """Tell apart what stands at the temporary name: by identity and content."""
        seen = snapshot(self.directory_fd, self.temp)
        return (inode_at(self.directory_fd, self.temp), None) if seen is None else (seen.inode, seen.digest)

    def _leave_changed(self) -> str:
        self.finalize()
        return CHANGED_SINCE

    def _store_temporary(self) -> None:
        """Keep whatever stands at the temporary name under its hash, and free the name."""
        out = self.displaced
        known = {out.stamp: out.digest} if out is not None and out.has_no_writer else NO_KNOWN_DIGESTS
        with suppress(FileNotFoundError):
            store_and_unlink(self.blobs, self.directory_fd, self.temp, known)


def store_and_unlink(
    objects: BlobStore, where: int, name: bytes, known: Mapping[tuple[int, ...], str] = NO_KNOWN_DIGESTS
) -> None:
    """Keep what stands at a name under its hash, if it has a content, and free the name."""
    seen = snapshot(where, name, known)
    if seen is None:
        os.unlink(name, dir_fd=where)
    else:
        objects.adopt(seen.digest, where, name)


def mismatch_error(path: RelPath, expected: str | None, current: str | None) -> errors.SystemError:
    """Say that a file is not what a change was made for."""
    cause: dict[str, object] = {"path": str(path), "expected_hash": expected}
    if current is not None:
        cause["current_hash"] = current
    return errors.SystemError.tool_failure(
        "HASH_MISMATCH", human_message="The file is not what was expected. Read it again.", cause=cause
    )


def _exists_error(path: RelPath) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_ALREADY_EXISTS",
        human_message="Something is there already. Read it, then replace it with its hash.",
        cause={"path": str(path)},
    )
