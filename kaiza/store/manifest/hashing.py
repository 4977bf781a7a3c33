"""Hashes of files and link targets, read without waiting and without opening anything but regular files."""

import os
import stat
from collections.abc import Callable
from hashlib import sha256
from typing import NamedTuple

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.byte_io import CHUNK_BYTES, FIRST_CHUNK_BYTES
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory
from kaiza.store.files.resolved import HANDLE_FLAGS, ResolvedPath
from kaiza.store.manifest.tree import Stat

MAX_HASHED_BYTES = 256 << 20
"""A larger file is known by its size and times only."""


class Content(NamedTuple):
    """Hash and lines of what was read, and the status that it had before and after. Links have no lines."""

    stat: Stat
    hash: bytes
    lines: int | None


class ContentReader:
    """Reads entries; a directory stays open while its entries are asked for one after the other."""

    def __init__(self, root: ConfinedRoot, is_stopped: Callable[[], bool]) -> None:
        self._root = root
        self._is_stopped = is_stopped
        self._directory: OpenDirectory | None = None

    def close(self) -> None:
        """Close the directory."""
        if self._directory is not None:
            self._directory.close()
            self._directory = None

    def read(self, directory: bytes, name: bytes) -> Content | None:
        """The content of an entry; None where it cannot be read, is too large or changed while it was read."""
        opened = self._open_directory(directory)
        if opened is None:
            return None
        try:
            with self._open_entry(opened, name) as handle:
                return self._read_handle(handle)
        except OSError:
            return None

    def stat(self, directory: bytes, name: bytes) -> Stat | None:
        """Status of an entry; None where there is none, or a link leads there."""
        opened = self._open_directory(directory)
        if opened is None:
            return None
        try:
            return Stat.from_result(os.stat(name, dir_fd=opened.fd, follow_symlinks=False))
        except OSError:
            return None

    def _read_handle(self, handle: ResolvedPath) -> Content | None:
        before = handle.stat
        if stat.S_ISLNK(before.st_mode):
            # An empty name is the link that the handle itself is of.
            target = os.readlink(handle.name or b"", dir_fd=handle.fd)
            return Content(Stat.from_result(before), sha256(target).digest(), None)
        if not stat.S_ISREG(before.st_mode) or before.st_size > MAX_HASHED_BYTES:
            return None
        descriptor = handle.open(os.O_RDONLY)
        try:
            digest, lines = self._hash(descriptor, before.st_size)
            after = Stat.from_result(os.fstat(descriptor))
        finally:
            os.close(descriptor)
        return Content(after, digest, lines) if digest and after == Stat.from_result(before) else None

    def _hash(self, descriptor: int, size: int) -> tuple[bytes, int]:
        """Hash and number of lines; an empty hash where it was stopped."""
        if size < FIRST_CHUNK_BYTES:
            # One byte more than the size: most files are read, and their end is seen, by one call.
            content = os.read(descriptor, size + 1)
            if len(content) == size:
                return sha256(content).digest(), content.count(b"\n") + (content[-1:] not in (b"\n", b""))
            os.lseek(descriptor, 0, os.SEEK_SET)
        digest, lines, last = sha256(), 0, b"\n"
        while chunk := os.read(descriptor, CHUNK_BYTES):
            if self._is_stopped():
                return b"", 0
            digest.update(chunk)
            lines += chunk.count(b"\n")
            last = chunk[-1:]
        return digest.digest(), lines + (last != b"\n")

    def _open_directory(self, path: bytes) -> OpenDirectory | None:
        real = RelPath.from_bytes(path)
        if self._directory is not None and self._directory.real == real:
            return self._directory
        self.close()
        try:
            opened = self._root.open_directory(real, lambda _real: None)
        except errors.SystemError:
            return None
        if opened.real != real:  # a parent was swapped for a link
            opened.close()
            return None
        self._directory = opened
        return opened

    def _open_entry(self, directory: OpenDirectory, name: bytes) -> ResolvedPath:
        """A handle of the entry itself. To open a device or a FIFO could have an effect; a handle has none."""
        if not hasattr(os, "O_PATH"):
            status = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
            return ResolvedPath(os.dup(directory.fd), directory.real, status, name)
        # O_PATH: to open the entry itself could have an effect.
        fd = os.open(name, HANDLE_FLAGS | os.O_NOFOLLOW, dir_fd=directory.fd)
        return ResolvedPath(fd, directory.real, os.fstat(fd))
