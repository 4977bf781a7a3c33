"""Portable path resolution below a root: opens one name at a time and expands links itself.

The kernel never follows a link here, so that a name swapped for one during the walk cannot lead outside. It gives the
same results as `openat2`, which does it in one call.
"""

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass, field

from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.resolved import HANDLE_FLAGS, ResolvedPath

MAX_LINKS = 40  # the kernel's own limit
# A path of thousands of names must not use up the process's descriptors: only the innermost directories stay open.
MAX_OPEN_DIRECTORIES = 256
_DIRECTORY_FLAGS = HANDLE_FLAGS | os.O_DIRECTORY | os.O_NOFOLLOW
_CURRENT = b"."


@dataclass(frozen=True, slots=True)
class NoFollowResolver:
    """Resolves paths below a root with one open for each name."""

    root_fd: int
    name: str = "walk"

    def resolve(self, path: RelPath, *, follow: bool = True) -> ResolvedPath:
        """Resolve a path; EXDEV where it leads outside."""
        walk = _PathWalk(deque([os.dup(self.root_fd)]), list(reversed(path.to_bytes().split(b"/"))), follow=follow)
        try:
            while walk.pending_names:
                if resolved := walk.step():
                    return resolved
            return walk.finish_at(_CURRENT, os.fstat(walk.descriptors[-1]))
        finally:
            walk.close()


@dataclass(slots=True)
class _PathWalk:
    descriptors: deque[int]
    """The directories on the way down, the innermost last. `..` returns to one of them and is never opened by name:
    a directory that was moved since would have another parent."""
    pending_names: list[bytes]
    """Names still to resolve, the next one last; an empty one requires a directory, as a trailing slash does."""
    follow: bool
    names: list[bytes] = field(default_factory=list)
    link_count: int = 0

    def step(self) -> ResolvedPath | None:
        """Resolve one name; the result where it was the last one."""
        name = self.pending_names.pop()
        if name in {b"", _CURRENT, b".."}:
            self._walk_dots(name)
            return None
        if any(self.pending_names):
            self._enter_directory(name)
            return None
        status = os.stat(name, dir_fd=self.descriptors[-1], follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self._expand_link(name)
            return None
        if self.pending_names and not stat.S_ISDIR(status.st_mode):
            raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        return self.finish_at(name, status)

    def finish_at(self, name: bytes, status: os.stat_result) -> ResolvedPath:
        """The result: a name in the innermost directory, whose descriptor it takes over."""
        names = self.names if name == _CURRENT else [*self.names, name]
        return ResolvedPath(self.descriptors.pop(), RelPath.from_bytes(b"/".join(names)), status, name)

    def close(self) -> None:
        """Close the directories that are still open."""
        for fd in self.descriptors:
            os.close(fd)

    def _enter_directory(self, name: bytes) -> None:
        try:
            self.descriptors.append(os.open(name, _DIRECTORY_FLAGS, dir_fd=self.descriptors[-1]))
        except OSError as error:
            # O_NOFOLLOW: what a link, or another file that is not a directory, reports.
            if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
                raise
            self._expand_link(name)
            return
        self.names.append(name)
        if len(self.descriptors) > MAX_OPEN_DIRECTORIES:
            os.close(self.descriptors.popleft())

    def _walk_dots(self, name: bytes) -> None:
        if name:  # as in the kernel, `.` and `..` need permission to search the directory
            os.stat(_CURRENT, dir_fd=self.descriptors[-1])
        if name != b"..":
            return
        if not self.names:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))  # `..` above the root
        if len(self.descriptors) == 1:
            raise OSError(errno.EMFILE, "`..` to a directory that is no longer open")
        os.close(self.descriptors.pop())
        self.names.pop()

    def _expand_link(self, name: bytes) -> None:
        try:
            target = os.readlink(name, dir_fd=self.descriptors[-1])
        except OSError as error:
            if error.errno == errno.EINVAL:  # not a link, and not a directory either
                raise OSError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from error
            raise
        self.link_count += 1
        if not self.follow or self.link_count > MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith(b"/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        names = [part for part in target.split(b"/") if part]
        trailing = [b""] if target.endswith(b"/") else []
        self.pending_names += [*trailing, *reversed(names)]
