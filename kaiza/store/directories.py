"""The directories a change works in, held by descriptor from the check to the end, and made where they are missing."""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.paths import ROOT, RelPath
from kaiza.store.fsync_batch import fsync_all
from kaiza.store.place import Place
from kaiza.store.refusal import refusal
from kaiza.store.workspace import Workspace

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class Directories:
    """Directories below one root, each opened without following a link."""

    workspace: Workspace
    held: dict[RelPath, int] = field(default_factory=dict)
    missing: list[RelPath] = field(default_factory=list)
    made: list[RelPath] = field(default_factory=list)

    def need(self, path: RelPath) -> bool:
        """Hold a directory; False where it is not there."""
        if path in self.held:
            return True
        try:
            self.held[path] = self.workspace.at(path, _open_directory, follow=False)
        except FileNotFoundError:
            return False
        return True

    def need_or_make(self, path: RelPath) -> None:
        """Hold a directory, or plan to make it below the nearest that is there."""
        if path in self.missing or self.need(path):
            return
        self.need_or_make(path.parent)
        self.missing.append(path)

    def nearest(self, path: RelPath) -> int:
        """Tell the descriptor of the nearest directory upwards that is there."""
        while path not in self.held:
            path = path.parent
        return self.held[path]

    def make(self) -> None:
        """Make what is missing; a directory that somebody else made meanwhile will do."""
        for path in self.missing:
            above, name = self.held[path.parent], last_name(path)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
                self.made.append(path)
            self.held[path] = os.open(name, _OPEN, dir_fd=above)

    def unmake(self) -> None:
        """Take away what was made, as far as it is empty."""
        for path in reversed(self.made):
            remove_empty(self.held[path.parent], path)
        self.made.clear()

    def sync(self, paths: set[RelPath]) -> None:
        """Make the names in these directories durable, and those of directories that were made."""
        fsync_all([self.held[path] for path in sorted(paths | {made.parent for made in self.made})])

    def close(self) -> None:
        """Let all of them go."""
        for fd in self.held.values():
            os.close(fd)
        self.held.clear()


def last_name(path: RelPath) -> bytes:
    """Spell the last name as the disk does."""
    return path.name.encode(errors="surrogateescape")


def remove_empty(above: int, path: RelPath) -> bool:
    """Remove a directory if it is there and empty."""
    try:
        os.rmdir(last_name(path), dir_fd=above)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            return False
        raise
    return True


def write_refusal(error: OSError, workspace: Workspace, path: RelPath, *, missing: str) -> errors.SystemError:
    """Turn a system call's error on the way to a change into a code; a link on the way is named by where it leads."""
    if error.errno != errno.ELOOP:
        return refusal(error, path, missing=missing, otherwise="FILE_WRITE_FAILED")
    try:
        real = workspace.real(path)
    except errors.SystemError as refused:
        return refused
    return errors.SystemError.tool_failure(
        "INVALID_PATH",
        human_message="The path goes through a link, and changes go only to the real path. Use real_path.",
        cause={"path": str(path), "real_path": str(real)},
    )


def _open_directory(place: Place) -> int:
    if not stat.S_ISDIR(place.stat.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if place.real == ROOT:
        return os.open(b".", _OPEN, dir_fd=place.fd)
    return place.open(os.O_RDONLY | os.O_DIRECTORY)
