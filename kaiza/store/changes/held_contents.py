"""Stores contents that only files of the workspace have, before they are moved or replaced."""

import os
from collections.abc import Iterable
from contextlib import closing

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, READ_NOFOLLOW, read_all
from kaiza.store.disk.file_metadata import inode_at, snapshot
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.resolved import OwnedDescriptor


def store_held_content(files: ConfinedRoot, blobs: BlobStore, digest: str, paths: Iterable[RelPath]) -> None:
    """Store the content with this hash from one of these files, if one has it; it is on disk when this returns."""
    with closing(DirectoryHandles(files)) as directories, closing(FsyncBatch()) as batch:
        for path in filter(lambda path: directories.open_existing(path.parent), paths):
            dir_fd, name = directories.descriptors[path.parent], last_name(path)
            found = snapshot(dir_fd, name) if inode_at(dir_fd, name) is not None else None
            if found is not None and found.digest == digest:
                with OwnedDescriptor(os.open(name, READ_NOFOLLOW, dir_fd=dir_fd)) as file:
                    blobs.store(digest, read_all(file.fd), pack=found.size <= MAX_PACKED_BYTES, batch=batch)
                batch.sync()
                return
