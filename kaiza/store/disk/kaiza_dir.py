"""`.kaiza/`, Kaiza's own directory in a workspace: created with the first change, never reached through a link."""

import os
import threading
from contextlib import suppress

from kaiza.store.disk import small_files

NAME = b".kaiza"


class KaizaDir:
    """`.kaiza/` and its subdirectories, kept open from their first use."""

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._descriptors: dict[bytes, int] = {}
        self._mutex = threading.Lock()  # protects `_descriptors`

    def open_directory(self, name: str) -> int:
        """Descriptor of a subdirectory, which is created if missing. OSError if it cannot be opened."""
        with self._mutex:
            cached = self._descriptors.get(name.encode())
            if cached is not None and os.fstat(cached).st_nlink:
                return cached
            home = self._open_cached(NAME, self._root_fd)
            return self._open_cached(name.encode(), home)

    def open_home(self) -> int:
        """Descriptor of `.kaiza/` itself, which is created if missing. OSError if it cannot be opened."""
        with self._mutex:
            return self._open_cached(NAME, self._root_fd)

    def find_directory(self, name: str) -> int | None:
        """Descriptor of a subdirectory; None if it does not exist. OSError if something else has its name."""
        try:
            home = small_files.open_directory(NAME, self._root_fd)
            try:
                os.close(small_files.open_directory(name, home))
            finally:
                os.close(home)
        except FileNotFoundError:
            return None
        return self.open_directory(name)

    def close(self) -> None:
        """Close all descriptors."""
        with self._mutex:
            for fd in self._descriptors.values():
                os.close(fd)
            self._descriptors.clear()

    def _open_cached(self, name: bytes, parent_fd: int) -> int:
        fd = self._descriptors.get(name)
        if fd is not None:
            # Without a name the directory was deleted while it was open: what is created in it would be lost.
            if os.fstat(fd).st_nlink:
                return fd
            os.close(self._descriptors.pop(name))
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent_fd)
            os.fsync(parent_fd)  # a journal in here must not lose its directory in a power cut
        # Not followed: a clone may bring a link named `.kaiza`, which would lead Kaiza's writes out of the workspace.
        opened = self._descriptors[name] = small_files.open_directory(name, parent_fd)
        if name == NAME:
            with suppress(FileExistsError):
                small_files.write_new(b".gitignore", b"*\n", opened, durable=False)
        return opened
