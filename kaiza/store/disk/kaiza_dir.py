"""`.kaiza/`, what Kaiza keeps for itself in a workspace: made with the first change, never reached through a link."""

import os
import threading
from contextlib import suppress

NAME = b".kaiza"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_GITIGNORE_CONTENT = b"*\n"


class KaizaDir:
    """The directory and those in it, held open once they are there."""

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._descriptors: dict[bytes, int] = {}
        self._mutex = threading.Lock()

    def open_directory(self, name: str) -> int:
        """Hold one of the directories; it is there when this returns. OSError where it cannot be."""
        with self._mutex:
            held = self._descriptors.get(name.encode())
            if held is not None and os.fstat(held).st_nlink:
                return held
            home = self._open_cached(NAME, self._root_fd)
            return self._open_cached(name.encode(), home)

    def find_directory(self, name: str) -> int | None:
        """Hold one of the directories if it has been made. OSError where something else is in its place."""
        try:
            home = os.open(NAME, _OPEN, dir_fd=self._root_fd)
            try:
                os.close(os.open(name, _OPEN, dir_fd=home))
            finally:
                os.close(home)
        except FileNotFoundError:
            return None
        return self.open_directory(name)

    def close(self) -> None:
        """Let all of them go."""
        with self._mutex:
            for fd in self._descriptors.values():
                os.close(fd)
            self._descriptors.clear()

    def _open_cached(self, name: bytes, above: int) -> int:
        fd = self._descriptors.get(name)
        if fd is not None:
            if os.fstat(fd).st_nlink:
                return fd
            os.close(self._descriptors.pop(name))
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
            os.fsync(above)
        self._descriptors[name] = os.open(name, _OPEN, dir_fd=above)
        if name == NAME:
            self._ignore_in_git()
        return self._descriptors[name]

    def _ignore_in_git(self) -> None:
        with suppress(FileExistsError):
            fd = os.open(
                b".gitignore",
                os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                0o600,
                dir_fd=self._descriptors[NAME],
            )
            try:
                os.write(fd, _GITIGNORE_CONTENT)
            finally:
                os.close(fd)
