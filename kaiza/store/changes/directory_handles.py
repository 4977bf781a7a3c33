"""Directories of one transaction, held by descriptor from the check to the end, and the directories Kaiza created.

Every later call names a file by such a descriptor and its last name: a directory that is swapped for a link in the
meantime is not followed.
"""

import errno
import json
import os
import stat
from collections.abc import Collection, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.changes.journal_lines import parse_json, read_file
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.fsync_batch import fsync_all
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.os_errors import to_system_error
from kaiza.store.files.resolved import OwnedDescriptor, ResolvedPath

MAX_NEW_LEVELS = 100
"""Directories below each other that one change may create."""
_CREATED = "created directory"


@dataclass(slots=True)
class DirectoryHandles:
    """Directories below one root, each opened without following a link."""

    files: ConfinedRoot
    descriptors: dict[RelPath, int] = field(default_factory=dict)
    missing: list[RelPath] = field(default_factory=list)
    created: list[RelPath] = field(default_factory=list)

    def open_existing(self, path: RelPath) -> bool:
        """Open a directory and keep it open; False where it does not exist."""
        if path in self.descriptors:
            return True
        try:
            self.descriptors[path] = self.files.with_resolved(path, _open_directory, follow=False)
        except FileNotFoundError:
            return False
        return True

    def open_or_plan(self, path: RelPath) -> None:
        """Open a directory, or note it and its missing parents in `missing`. Nothing is created.

        INVALID_PATH if more than MAX_NEW_LEVELS are missing: each stays open while the change is made.
        """
        planned = []
        while path not in self.missing and not self.open_existing(path):
            planned.append(path)
            if len(planned) > MAX_NEW_LEVELS:
                raise errors.SystemError.tool_failure(
                    "INVALID_PATH",
                    human_message=f"The path needs more than {MAX_NEW_LEVELS} new directories. Use a shorter path.",
                    cause={"why": "depth", "limit": MAX_NEW_LEVELS},
                )
            path = path.parent
        self.missing.extend(reversed(planned))

    def nearest_descriptor(self, path: RelPath) -> int:
        """Descriptor of the directory or of its nearest parent that is open."""
        while path not in self.descriptors:
            path = path.parent
        return self.descriptors[path]

    def create_missing(self) -> None:
        """Create the directories in `missing`; one that exists by now is used as it is."""
        for path in self.missing:
            parent_fd, name = self.descriptors[path.parent], last_name(path)
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=parent_fd)
                self.created.append(path)
            # Not followed: between mkdir and open the directory may have been replaced by a link.
            self.descriptors[path] = small_files.open_directory(name, parent_fd)

    def remove_created(self) -> None:
        """Remove the created directories that are empty, the innermost first."""
        for path in reversed(self.created):
            remove_empty(self.descriptors[path.parent], path)
        self.created.clear()

    def sync(self, paths: set[RelPath]) -> None:
        """Fsync these directories and the parents of the created ones: a name is durable only with its directory."""
        fsync_all([self.descriptors[path] for path in sorted(paths | {path.parent for path in self.created})])

    def close(self) -> None:
        """Close every descriptor."""
        for fd in self.descriptors.values():
            os.close(fd)
        self.descriptors.clear()


def last_name(path: RelPath) -> bytes:
    """The last name of a path, as bytes on disk."""
    return path.name.encode(errors="surrogateescape")


def remove_empty(parent_fd: int, path: RelPath) -> bool:
    """Remove a directory if it exists and is empty; whether it was removed."""
    try:
        os.rmdir(last_name(path), dir_fd=parent_fd)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR}:
            return False
        raise
    return True


def remove_empty_tree(files: ConfinedRoot, path: RelPath, made: Collection[str]) -> list[RelPath]:
    """Remove a directory that holds nothing but empty ones, all made by Kaiza. Returns them, outermost first."""
    found, pending = [], [path]
    with closing(DirectoryHandles(files)) as directories:
        try:
            while pending:
                place = pending.pop()
                if str(place) not in made or not directories.open_existing(place):
                    return []
                found.append(place)
                pending += [place / name for name in os.listdir(directories.descriptors[place])]  # noqa: PTH208 (of a descriptor)
            directories.open_existing(path.parent)
        except OSError:  # a file, a link or what cannot be read
            return []
        directories.created.extend(found)
        directories.remove_created()
    return found


def restore_directories(files: ConfinedRoot, paths: Iterable[RelPath]) -> None:
    """Make removed directories again, outermost first, as far as possible."""
    with closing(DirectoryHandles(files)) as directories, suppress(OSError):
        for path in paths:
            directories.open_or_plan(path)
        directories.create_missing()


def record_created(kaiza_dir: KaizaDir, key: StateKey, paths: Iterable[RelPath]) -> None:
    """Append to the list of directories that Kaiza created: an undo may remove these, and no others."""
    coded = ([path, key.compute_code(_CREATED, _encode_text(path))] for path in map(str, paths))
    lines = "".join(json.dumps(pair) + "\n" for pair in coded)
    if lines:
        with OwnedDescriptor(
            small_files.open_for_update("list", kaiza_dir.open_directory("made"), create=True, append=True)
        ) as file:
            write_all(file.fd, [lines.encode()])


def read_created(kaiza_dir: KaizaDir, key: StateKey) -> set[str]:
    """The directories that Kaiza created in this workspace. Lines without a valid code may have come with a clone."""
    dir_fd = kaiza_dir.find_directory("made")
    content = read_file("list", dir_fd) if dir_fd is not None else None
    created = set()
    for line in map(parse_json, (content or b"").split(b"\n")[:-1]):
        match line:
            case [str(path), str(code)] if key.is_valid_code(code, _CREATED, _encode_text(path)):
                created.add(path)
    return created


def _encode_text(path: str) -> bytes:
    return path.encode(errors="surrogatepass")


def to_write_error(error: OSError, workspace: ConfinedRoot, path: RelPath, *, missing: str) -> errors.SystemError:
    """Map an OSError of a change to an error code. A link in the path is INVALID_PATH with the real path."""
    if error.errno != errno.ELOOP:
        return to_system_error(error, path, missing=missing, otherwise="FILE_WRITE_FAILED")
    try:
        real = workspace.real_path(path)
    except errors.SystemError as refused:
        return refused
    return errors.SystemError.tool_failure(
        "INVALID_PATH",
        human_message="The path contains a symbolic link, and changes do not follow links. Use real_path.",
        cause={"path": str(path), "real_path": str(real)},
    )


def _open_directory(place: ResolvedPath) -> int:
    if not stat.S_ISDIR(place.stat.st_mode):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if place.real == ROOT:
        return small_files.open_directory(b".", place.fd)
    return place.open(os.O_RDONLY | os.O_DIRECTORY)
