"""Everything below a directory, sorted by path; links are not followed, and what `.gitignore` names is left out."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from kaiza.domain import errors
from kaiza.domain.paths.file_entry import FileEntry, FileKind
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.byte_io import READ_NOFOLLOW
from kaiza.store.files import ignore_rules
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory
from kaiza.store.files.resolved import OwnedDescriptor

SKIPPED_NAMES = frozenset({".git", ".kaiza"})


@dataclass(slots=True)
class WalkedFile(OwnedDescriptor):
    """A plain file met on a walk, open for reading."""

    size: int

    def read(self, size: int) -> bytes:
        """Read on, at most so many bytes; what fails to be read ends the file."""
        try:
            return os.read(self.fd, size)
        except OSError:
            return b""


class DirectoryLevel:
    """A directory on the way: what is still to come in it. Its descriptor is open only while it is looked into."""

    __slots__ = ("_open", "_workspace", "chain", "kinds", "prefix", "real", "waiting")

    def __init__(self, workspace: ConfinedRoot, real: RelPath) -> None:
        self.real = real
        self.prefix = f"{real}/" if real.parts else ""
        self.chain: ignore_rules.RuleChain = ()
        self.waiting: list[str] = []
        self.kinds: dict[str, FileKind] = {}
        self._workspace = workspace
        self._open: OpenDirectory | None = None

    def open_directory(self) -> OpenDirectory | None:
        """The directory, opened again if it was let go; None if another stands there by now."""
        if self._open is None:
            try:
                opened = self._workspace.open_directory(self.real, lambda _real: None)
            except errors.SystemError:
                return None
            if opened.real != self.real:
                opened.close()
                return None
            self._open = opened
        return self._open

    def close(self) -> None:
        """Close the descriptor."""
        if self._open is not None:
            self._open.close()
            self._open = None


@dataclass(frozen=True, slots=True)
class WalkedEntry:
    """One thing that the walk met. Good for a look until the walk goes on."""

    path: str
    name: str
    type: FileKind
    _level: DirectoryLevel

    @property
    def real(self) -> RelPath:
        """The path as a value."""
        return self._level.real / self.name

    def stat_entry(self) -> FileEntry | None:
        """Its size and time; None if it is gone."""
        directory = self._level.open_directory()
        return directory.stat_entry(self.name) if directory else None

    def open(self) -> WalkedFile | None:
        """Its content, if it is a plain file that lets itself be read."""
        directory = self._level.open_directory()
        if directory is None:
            return None
        try:
            fd = os.open(self.name, READ_NOFOLLOW, dir_fd=directory.fd)
        except OSError:
            return None
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return WalkedFile(fd, status.st_size)
        os.close(fd)
        return None


class TreeWalk:
    """A walk in the order of paths, each before what is below it; it may begin in the middle, and be broken off."""

    def __init__(
        self,
        workspace: ConfinedRoot,
        start: RelPath,
        *,
        include_ignored: bool,
        over: Callable[[], bool],
        since: str,
    ) -> None:
        self.listed_count = 0
        """How many names were listed so far."""
        self.visited_count = 0
        """How many of them were looked at."""
        self.unlisted_count = 0
        """How many directories could not be listed."""
        self.stopped_early = False
        self._workspace = workspace
        self._include_ignored = include_ignored
        self._should_stop = over
        self._since = since
        chain = () if include_ignored else ignore_rules.load_inherited(workspace, start)
        self._levels = [self._enter_directory(start, chain)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for level in self._levels:
            level.close()

    def __iter__(self) -> Iterator[WalkedEntry]:
        while self._levels and not self.stopped_early:
            level = self._levels[-1]
            if not level.waiting:
                level.close()
                self._levels.pop()
            elif self._should_stop():
                self.stopped_early = True
            else:
                found = self._visit_name(level, level.waiting.pop())
                if found is not None:
                    yield found

    def _visit_name(self, level: DirectoryLevel, key: str) -> WalkedEntry | None:
        if key.endswith("/"):
            level.close()
            self._levels.append(self._enter_directory(level.real / key[:-1], level.chain))
            return None
        self.visited_count += 1
        return WalkedEntry(level.prefix + key, key, level.kinds[key], level)

    def _enter_directory(self, real: RelPath, chain: ignore_rules.RuleChain) -> DirectoryLevel:
        level = DirectoryLevel(self._workspace, real)
        directory = level.open_directory()
        if directory is None:
            self.unlisted_count += 1
            return level
        try:
            with os.scandir(directory.fd) as entries:
                kinds = {entry.name: _entry_kind(entry) for entry in entries if entry.name not in SKIPPED_NAMES}
        except OSError:
            self.unlisted_count += 1
            return level
        if not self._include_ignored and ignore_rules.NAME in kinds:
            chain = ignore_rules.add_directory(self._workspace, chain, real)
        level.chain, level.kinds = chain, kinds
        level.waiting = sorted(self._pending_names(level), reverse=True)
        return level

    def _pending_names(self, level: DirectoryLevel) -> Iterator[str]:
        """What is to come: each name, and a directory's once more with a slash, where it is entered."""
        since = self._since[len(level.prefix) :] if self._since.startswith(level.prefix) else ""
        for name, kind in level.kinds.items():
            directory = kind == "directory"
            if level.chain and ignore_rules.is_ignored(level.chain, level.prefix + name, directory=directory):
                continue
            self.listed_count += 1
            if name >= since:
                yield name
            if directory and (f"{name}/" >= since or since.startswith(f"{name}/")):
                yield f"{name}/"


def walk(
    workspace: ConfinedRoot,
    start: RelPath,
    *,
    include_ignored: bool,
    over: Callable[[], bool],
    since: str = "",
) -> TreeWalk:
    """Walk what is below a directory, from the path `since` on (itself included), until it is over."""
    return TreeWalk(workspace, start, include_ignored=include_ignored, over=over, since=since)


def _entry_kind(entry: "os.DirEntry[str]") -> FileKind:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"
