"""`.kaiza/`, what Kaiza keeps for itself in a workspace: made with the first change, never reached through a link."""

import os
import threading
from contextlib import suppress

NAME = b".kaiza"
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_IGNORE = b"*\n"


class Own:
    """The directory and those in it, held open once they are there."""

    def __init__(self, root_fd: int) -> None:
        self._root_fd = root_fd
        self._held: dict[bytes, int] = {}
        self._turn = threading.Lock()

    def directory(self, name: str) -> int:
        """Hold one of the directories; it is there when this returns. OSError where it cannot be."""
        with self._turn:
            held = self._held.get(name.encode())
            if held is not None and os.fstat(held).st_nlink:
                return held
            home = self._hold(NAME, self._root_fd)
            return self._hold(name.encode(), home)

    def existing(self, name: str) -> int | None:
        """Hold one of the directories if it has been made. OSError where something else is in its place."""
        try:
            home = os.open(NAME, _OPEN, dir_fd=self._root_fd)
            try:
                os.close(os.open(name, _OPEN, dir_fd=home))
            finally:
                os.close(home)
        except FileNotFoundError:
            return None
        return self.directory(name)

    def close(self) -> None:
        """Let all of them go."""
        with self._turn:
            for fd in self._held.values():
                os.close(fd)
            self._held.clear()

    def _hold(self, name: bytes, above: int) -> int:
        fd = self._held.get(name)
        if fd is not None:
            if os.fstat(fd).st_nlink:
                return fd
            os.close(self._held.pop(name))
        with suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=above)
            os.fsync(above)
        self._held[name] = os.open(name, _OPEN, dir_fd=above)
        if name == NAME:
            self._ignore_in_git()
        return self._held[name]

    def _ignore_in_git(self) -> None:
        with suppress(FileExistsError):
            fd = os.open(
                b".gitignore", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._held[NAME]
            )
            try:
                os.write(fd, _IGNORE)
            finally:
                os.close(fd)
