"""Paths resolved name by name without ever letting the kernel follow a link: the portable way to the same answers."""

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass, field

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.resolved import HANDLE_FLAGS, ResolvedPath

MAX_LINKS = 40
MAX_OPEN_DIRECTORIES = 256
_DIRECTORY_FLAGS = HANDLE_FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW
_CURRENT = b"."


@dataclass(frozen=True, slots=True)
class NoFollowResolver:
    """Finds places below the root by one open for each name."""

    root_fd: int
    name: str = "walk"

    def resolve(self, path: RelPath, *, follow: bool = True) -> ResolvedPath:
        """Find the place that a path leads to; EXDEV where a link leads out, EAGAIN where it should be tried again."""
        walk = _PathWalk(deque([os.dup(self.root_fd)]), list(reversed(path.to_bytes().split(b"/"))), follow=follow)
        try:
            while walk.pending_names:
                if found := walk.step():
                    return found
            return walk.finish_at(_CURRENT, os.fstat(walk.descriptors[-1]))
        finally:
            walk.close()


@dataclass(slots=True)
class _PathWalk:
    descriptors: deque[int]
    """Descriptors of the directories on the way down, the innermost last: `..` goes back to one, never asks."""
    pending_names: list[bytes]
    """Names still to be walked, the next one last; an empty one at the end of a link asks for a directory."""
    follow: bool
    names: list[bytes] = field(default_factory=list)
    link_count: int = 0

    def step(self) -> ResolvedPath | None:
        """Walk one name; a place if it was the last one."""
        name = self.pending_names.pop()
        if name in {b"", _CURRENT, b".."}:
            self._walk_dots(name)
            return None
        if any(self.pending_names):
            self._enter_directory(name)
            return None
        found = os.stat(name, dir_fd=self.descriptors[-1], follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            self._expand_link(name)
            return None
        if self.pending_names and not stat.S_ISDIR(found.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return self.finish_at(name, found)

    def finish_at(self, name: bytes, found: os.stat_result) -> ResolvedPath:
        """Hand the innermost directory over to the place found in it."""
        names = self.names if name == _CURRENT else [*self.names, name]
        return ResolvedPath(self.descriptors.pop(), RelPath.from_bytes(b"/".join(names)), found, name)

    def close(self) -> None:
        """Let every directory go."""
        for fd in self.descriptors:
            os.close(fd)

    def _enter_directory(self, name: bytes) -> None:
        try:
            self.descriptors.append(os.open(name, _DIRECTORY_FLAGS, dir_fd=self.descriptors[-1]))
        except OSError as error:
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            self._expand_link(name)
            return
        self.names.append(name)
        if len(self.descriptors) > MAX_OPEN_DIRECTORIES:
            os.close(self.descriptors.popleft())

    def _walk_dots(self, name: bytes) -> None:
        if name:
            os.stat(_CURRENT, dir_fd=self.descriptors[-1])
        if name != b"..":
            return
        if not self.names:
            raise OSError(errno.EXDEV, "climbs out")
        if len(self.descriptors) == 1:
            raise OSError(errno.EMFILE, "too deep to climb back")
        os.close(self.descriptors.pop())
        self.names.pop()

    def _expand_link(self, name: bytes) -> None:
        try:
            target = os.readlink(name, dir_fd=self.descriptors[-1])
        except OSError as error:
            if error.errno == errno.EINVAL:
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
            raise
        self.link_count += 1
        if not self.follow or self.link_count > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            raise OSError(errno.EXDEV, "an absolute link")
        names = [part for part in target.split(b"/") if part]
        trailing = [b""] if target.endswith(b"/") else []
        self.pending_names += [*trailing, *reversed(names)]
