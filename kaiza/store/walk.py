"""Paths resolved name by name without ever letting the kernel follow a link: the portable way to the same answers."""

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass, field

from kaiza.domain.paths import RelPath
from kaiza.store.place import HANDLE, Place

MOST_LINKS = 40
MOST_HELD = 256
_ENTER = HANDLE | os.O_DIRECTORY | os.O_NOFOLLOW
_HERE = b"."


@dataclass(frozen=True, slots=True)
class WalkResolver:
    """Finds places below the root by one open for each name."""

    root_fd: int
    name: str = "walk"

    def locate(self, path: RelPath, *, follow: bool = True) -> Place:
        """Find the place that a path leads to; EXDEV where a link leads out, EAGAIN where it should be tried again."""
        walk = _Walk(deque([os.dup(self.root_fd)]), list(reversed(path.as_bytes().split(b"/"))), follow=follow)
        try:
            while walk.todo:
                if found := walk.step():
                    return found
            return walk.arrive(_HERE, os.fstat(walk.held[-1]))
        finally:
            walk.close()


@dataclass(slots=True)
class _Walk:
    held: deque[int]
    """Descriptors of the directories on the way down, the innermost last: `..` goes back to one, never asks."""
    todo: list[bytes]
    """Names still to be walked, the next one last; an empty one at the end of a link asks for a directory."""
    follow: bool
    names: list[bytes] = field(default_factory=list)
    links: int = 0

    def step(self) -> Place | None:
        """Walk one name; a place if it was the last one."""
        name = self.todo.pop()
        if name in {b"", _HERE, b".."}:
            self._stay_or_leave(name)
            return None
        if any(self.todo):
            self._enter(name)
            return None
        found = os.stat(name, dir_fd=self.held[-1], follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            self._expand(name)
            return None
        if self.todo and not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return self.arrive(name, found)

    def arrive(self, name: bytes, found: os.stat_result) -> Place:
        """Hand the innermost directory over to the place found in it."""
        names = self.names if name == _HERE else [*self.names, name]
        return Place(self.held.pop(), RelPath.of_bytes(b"/".join(names)), found, name)

    def close(self) -> None:
        """Let every directory go."""
        for fd in self.held:
            os.close(fd)

    def _enter(self, name: bytes) -> None:
        try:
            self.held.append(os.open(name, _ENTER, dir_fd=self.held[-1]))
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            self._expand(name)
            return
        self.names.append(name)
        if len(self.held) > MOST_HELD:
            os.close(self.held.popleft())

    def _stay_or_leave(self, name: bytes) -> None:
        if name:
            os.stat(_HERE, dir_fd=self.held[-1])
        if name != b"..":
            return
        if not self.names:
            raise OSError(errno.EXDEV, "climbs out")
        if len(self.held) == 1:
            raise OSError(errno.EMFILE, "too deep to climb back")
        os.close(self.held.pop())
        self.names.pop()

    def _expand(self, name: bytes) -> None:
        try:
            target = os.readlink(name, dir_fd=self.held[-1])
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
            raise
        self.links += 1
        if not self.follow or self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            raise OSError(errno.EXDEV, "an absolute link")
        names = [part for part in target.split(b"/") if part]
        trailing = [b""] if target.endswith(b"/") else []
        self.todo += [*trailing, *reversed(names)]
