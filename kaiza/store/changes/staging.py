"""Staging of a transaction: saves pre-images to the blob store and writes new content beside its targets.

Nothing of the user's is replaced here. After the batch is synced, the renames that follow need no more disk space.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.changes.journal import JournalStore
from kaiza.store.changes.operation import ActiveOperation, Operation, mismatch_error
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, read_all, update_hash, write_all
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS
from kaiza.store.disk.file_metadata import FileMetadata, inode_at, snapshot
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.resolved import OwnedDescriptor


@dataclass(frozen=True, slots=True)
class UndoSources:
    """Where an undo finds what it puts back, besides the blob store."""

    txns: Sequence[str]
    """The transactions that it undoes, newest first."""
    holders: Mapping[str, Operation]
    """The operations on existing files, by the content that these have before any of them is performed."""
    moved: Collection[str]
    """Contents of the holders that were not stored before: their files were moved and never replaced."""


@dataclass(frozen=True, slots=True)
class Staging:
    """Writes pre-images and temporary files; they are on disk once `batch` is synced."""

    blobs: BlobStore
    journals: JournalStore
    directories: DirectoryHandles
    batch: FsyncBatch
    undo: UndoSources

    def store_preimage(self, operation: Operation) -> bool:
        """Store the content that an operation will displace, unless it is large; whether it was stored."""
        if operation.kind not in {"swap", "take"} or operation.before_hash is None:
            return False
        with self._open_current(operation.path) as file:
            # A large file is not copied: `finalize` renames the displaced file itself into the blob store.
            if os.fstat(file.fd).st_size > MAX_PACKED_BYTES:
                return False
            try:
                self.blobs.store(operation.before_hash, read_all(file.fd), pack=True, batch=self.batch)
            except OSError as error:
                if error.errno not in FULL_DISK_ERRNOS:
                    raise
                return False  # renamed into the store like a large one, which needs no room
        return True

    def stage_content(self, active: ActiveOperation, change: Change | None) -> None:
        """Write the new content to the temporary name beside its target, and note the inode that is brought in."""
        operation = active.operation
        if operation.kind == "move":
            active.our_inode = inode_at(*active.source_location)
        if operation.kind not in {"put", "swap"} or change is None:
            return
        # 0600 until owner and mode are set: the new content of a private file is never readable by others.
        # A new file gets the usual mode of the umask.
        fd = small_files.create(active.temp, active.directory_fd, mode=0o600 if operation.metadata else 0o666)
        try:
            active.our_inode = os.fstat(fd).st_ino
            write_all(fd, self._new_content(change))
            self._apply_metadata(fd, operation, change)
            if operation.metadata is None and change.mode is None:
                active.created_mode = stat.S_IMODE(os.fstat(fd).st_mode)
        except BaseException:
            os.close(fd)
            raise
        self.batch.add(fd)

    def _new_content(self, change: Change) -> Iterator[bytes]:
        """The new content in chunks; raises after the last one where its hash is not the one in the intent."""
        if change.content is not None:
            yield from _verify_content([change.content], change)
        elif change.operation == "move" and change.source is not None:
            with self._open_current(change.source) as file:
                yield from _verify_content(read_all(file.fd), change)
        else:
            holder = self.undo.holders.get(change.after_hash or "")
            if holder is None:
                yield from self.blobs.chunks(change.after_hash or "")
            else:  # nothing is renamed before all contents are staged
                with self._open_current(holder.source or holder.path) as file:
                    yield from _verify_content(read_all(file.fd), change)

    def _apply_metadata(self, fd: int, operation: Operation, change: Change) -> None:
        """Set mode, owner and attributes: those of the replaced file or, in an undo, those before the oldest change."""
        metadata = operation.metadata
        # A file that was moved goes back with its owner and attributes.
        if change.after_hash is not None and change.after_hash in self.undo.moved:
            metadata = self.undo.holders[change.after_hash].metadata
        for txn in self.undo.txns:
            metadata = self._metadata_before(txn, change.path) or metadata
        if metadata is not None:
            metadata.apply_to(fd, change.mode)
        elif change.mode is not None:
            os.fchmod(fd, change.mode)

    def _metadata_before(self, txn: str, path: RelPath) -> FileMetadata | None:
        """Metadata of a file before a finished transaction, from its journal."""
        head = self.journals.finished_head(txn)
        for number, value in enumerate(head["steps"] if head else ()):
            operation = Operation.from_json(value, txn, number)
            original_path = operation.source if operation.kind == "move" else operation.path
            if path == original_path and operation.kind != "put":
                return operation.metadata
        return None

    def _open_current(self, path: RelPath) -> OwnedDescriptor:
        dir_fd = self.directories.descriptors.get(path.parent)
        if dir_fd is None:  # the directory was removed since the preflight
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        try:
            return OwnedDescriptor(small_files.open_for_reading(last_name(path), dir_fd))
        except small_files.NotRegularError as other:  # put in its place since the preflight
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT)) from other


def _verify_content(content: Iterable[bytes], change: Change) -> Iterator[bytes]:
    check = hashlib.sha256()
    yield from update_hash(check, content)
    expected = change.after_hash or change.before_hash
    if check.hexdigest() != expected:
        raise mismatch_error(change.source or change.path, expected, check.hexdigest())


def store_held_content(files: ConfinedRoot, blobs: BlobStore, digest: str, paths: Iterable[RelPath]) -> None:
    """Store the content with this hash from one of these files, if one has it; it is on disk when this returns."""
    with closing(DirectoryHandles(files)) as directories, closing(FsyncBatch()) as batch:
        for path in filter(lambda path: directories.open_existing(path.parent), paths):
            dir_fd, name = directories.descriptors[path.parent], last_name(path)
            found = snapshot(dir_fd, name) if inode_at(dir_fd, name) is not None else None
            if found is not None and found.digest == digest:
                with OwnedDescriptor(small_files.open_for_reading(name, dir_fd)) as file:
                    blobs.store(digest, read_all(file.fd), pack=found.size <= MAX_PACKED_BYTES, batch=batch)
                batch.sync()
                return
