"""The directories a change works in, held by descriptor from the check to the end, and made where they are missing."""

import errno
import os
import stat
from contextlib import suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.disk.fsync_batch import fsync_all
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.os_errors import to_system_error
from kaiza.store.files.resolved import ResolvedPath

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(slots=True)
class DirectoryHandles:
    """Directories below one root, each opened without following a link."""

    files: ConfinedRoot
    descriptors: dict[RelPath, int] = field(default_factory=dict)
    missing: list[RelPath] = field(default_factory=list)
    created: list[RelPath] = field(default_factory=list)

    def open_existing(self, path: RelPath) -> bool:
        """Hold a directory; False where it is not there."""
        if path in self.descriptors:
            return True
        try:
            self.descriptors[path] = self.files.with_resolved(path, _open_directory, follow=False)
        except FileNotFoundError:
            return False
        return True

    def open_or_plan(self, path: RelPath) -> None:
        """Hold a directory, or plan to make it below the nearest that is there."""
        if path in self.missing or self.open_existing(path):
            return
        self.open_or_plan(path.parent)
        self.missing.append(path)

    def nearest_descriptor(self, path: RelPath) -> int:
        """Tell the descriptor of the nearest directory upwards that is there."""
        while path not in self.descriptors:
            path = path.parent
        return self.descriptors[path]

    def create_missing(self) -> None:
        """Make what is missing; a directory that somebody else made meanwhile will do."""
        for path in self.missing:
            above, name = self.descriptors[path.parent], last_name(path)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=above)
                self.created.append(path)
            self.descriptors[path] = os.open(name, _OPEN, dir_fd=above)

    def remove_created(self) -> None:
        """Take away what was made, as far as it is empty."""
        for path in reversed(self.created):
            remove_empty(self.descriptors[path.parent], path)
        self.created.clear()

    def sync(self, paths: set[RelPath]) -> None:
        """Make the names in these directories durable, and those of directories that were made."""
        fsync_all([self.descriptors[path] for path in sorted(paths | {made.parent for made in self.created})])

    def close(self) -> None:
        """Let all of them go."""
        for fd in self.descriptors.values():
            os.close(fd)
        self.descriptors.clear()


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


def to_write_error(error: OSError, workspace: ConfinedRoot, path: RelPath, *, missing: str) -> errors.SystemError:
    """Turn a system call's error on the way to a change into a code; a link on the way is named by where it leads."""
    if error.errno != errno.ELOOP:
        return to_system_error(error, path, missing=missing, otherwise="FILE_WRITE_FAILED")
    try:
        real = workspace.real_path(path)
    except errors.SystemError as refused:
        return refused
    return errors.SystemError.tool_failure(
        "INVALID_PATH",
        human_message="The path goes through a link, and changes go only to the real path. Use real_path.",
        cause={"path": str(path), "real_path": str(real)},
    )


def _open_directory(place: ResolvedPath) -> int:
    if not stat.S_ISDIR(place.stat.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if place.real == ROOT:
        return os.open(b".", _OPEN, dir_fd=place.fd)
    return place.open(os.O_RDONLY | os.O_DIRECTORY)
