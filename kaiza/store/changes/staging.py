"""What is at hand before anything is exchanged: what a change will take away is kept, what it brings stands beside."""

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.changes.journal import JournalStore
from kaiza.store.changes.operation import ActiveOperation, Operation, mismatch_error
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, READ_NOFOLLOW, read_all, update_hash, write_all
from kaiza.store.disk.file_metadata import FileMetadata, inode_at
from kaiza.store.disk.fsync_batch import FsyncBatch

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Staging:
    """Writes it; on disk once `batch` is."""

    blobs: BlobStore
    journals: JournalStore
    directories: DirectoryHandles
    batch: FsyncBatch
    undone_txns: Sequence[str] = ()
    """The changes that this one puts back, newest first."""

    def store_preimage(self, step: Operation) -> bool:
        """Keep what the step will take away, where that is small; whether it is kept."""
        if step.kind not in {"swap", "take"} or step.before_hash is None:
            return False
        fd = self._open_current(step.path)
        try:
            if os.fstat(fd).st_size > MAX_PACKED_BYTES:
                return False
            self.blobs.store(step.before_hash, read_all(fd), pack=True, batch=self.batch)
        finally:
            os.close(fd)
        return True

    def stage_content(self, part: ActiveOperation, change: Change | None) -> None:
        """Write what the step brings in beside its place."""
        step = part.operation
        if step.kind == "move":
            part.our_inode = inode_at(*part.source_location)
        if step.kind not in {"put", "swap"} or change is None:
            return
        fd = os.open(part.temp, _CREATE, 0o600 if step.metadata else 0o666, dir_fd=part.directory_fd)
        try:
            part.our_inode = os.fstat(fd).st_ino
            write_all(fd, self._new_content(change))
            self._apply_metadata(fd, step, change)
        except BaseException:
            os.close(fd)
            raise
        self.batch.add(fd)

    def _new_content(self, change: Change) -> Iterator[bytes]:
        """What the change brings; at its end an error where that is not what was announced."""
        if change.content is not None:
            yield from _verify_content([change.content], change)
        elif change.operation == "move" and change.source is not None:
            fd = self._open_current(change.source)
            try:
                yield from _verify_content(read_all(fd), change)
            finally:
                os.close(fd)
        else:
            yield from self.blobs.chunks(change.after_hash or "")

    def _apply_metadata(self, fd: int, step: Operation, change: Change) -> None:
        """Give the new file the mode, owner and attributes that it is to have."""
        facts = step.metadata
        for txn in self.undone_txns:
            facts = self._metadata_before(txn, change.path) or facts
        if facts is not None:
            facts.apply_to(fd, change.mode)
        elif change.mode is not None:
            os.fchmod(fd, change.mode)

    def _metadata_before(self, txn: str, path: RelPath) -> FileMetadata | None:
        """Tell what a file had beside its bytes before a settled change."""
        head = self.journals.finished_head(txn)
        for number, told in enumerate(head["steps"] if head else ()):
            step = Operation.from_json(told, txn, number)
            if path == (step.source if step.kind == "move" else step.path) and step.kind != "put":
                return step.metadata
        return None

    def _open_current(self, path: RelPath) -> int:
        """A file as it stands there now; its directory may have gone away."""
        where = self.directories.descriptors.get(path.parent)
        if where is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        return os.open(last_name(path), READ_NOFOLLOW, dir_fd=where)


def _verify_content(content: Iterable[bytes], change: Change) -> Iterator[bytes]:
    check = hashlib.sha256()
    yield from update_hash(check, content)
    expected = change.after_hash or change.before_hash
    if check.hexdigest() != expected:
        raise mismatch_error(change.source or change.path, expected, check.hexdigest())
