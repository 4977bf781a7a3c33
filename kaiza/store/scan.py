"""Everything below a directory, sorted by path; links are not followed, and what `.gitignore` names is left out."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

from kaiza.domain import errors
from kaiza.domain.file_entry import FileEntry, Kind
from kaiza.domain.paths import RelPath
from kaiza.store import ignore
from kaiza.store.byte_io import READ_NOFOLLOW
from kaiza.store.place import Held
from kaiza.store.workspace import OpenDirectory, Workspace

NEVER_WALKED = frozenset({".git", ".kaiza"})


@dataclass(slots=True)
class Content(Held):
    """A plain file met on a walk, open for reading."""

    size: int

    def read(self, size: int) -> bytes:
        """Read on, at most so many bytes; what fails to be read ends the file."""
        try:
            return os.read(self.fd, size)
        except OSError:
            return b""


class Level:
    """A directory on the way: what is still to come in it. Its descriptor is open only while it is looked into."""

    __slots__ = ("_open", "_workspace", "chain", "kinds", "prefix", "real", "waiting")

    def __init__(self, workspace: Workspace, real: RelPath) -> None:
        self.real = real
        self.prefix = f"{real}/" if real.parts else ""
        self.chain: ignore.Chain = ()
        self.waiting: list[str] = []
        self.kinds: dict[str, Kind] = {}
        self._workspace = workspace
        self._open: OpenDirectory | None = None

    def directory(self) -> OpenDirectory | None:
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

    def let_go(self) -> None:
        """Close the descriptor."""
        if self._open is not None:
            self._open.close()
            self._open = None


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that the walk met. Good for a look until the walk goes on."""

    path: str
    name: str
    type: Kind
    _level: Level

    @property
    def real(self) -> RelPath:
        """The path as a value."""
        return self._level.real / self.name

    def entry(self) -> FileEntry | None:
        """Its size and time; None if it is gone."""
        directory = self._level.directory()
        return directory.entry(self.name) if directory else None

    def open(self) -> Content | None:
        """Its content, if it is a plain file that lets itself be read."""
        directory = self._level.directory()
        if directory is None:
            return None
        try:
            fd = os.open(self.name, READ_NOFOLLOW, dir_fd=directory.fd)
        except OSError:
            return None
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode):
            return Content(fd, status.st_size)
        os.close(fd)
        return None


class Walk:
    """A walk in the order of paths, each before what is below it; it may begin in the middle, and be broken off."""

    def __init__(
        self,
        workspace: Workspace,
        start: RelPath,
        *,
        include_ignored: bool,
        over: Callable[[], bool],
        since: str,
    ) -> None:
        self.seen = 0
        """How many names were listed so far."""
        self.passed = 0
        """How many of them were looked at."""
        self.closed = 0
        """How many directories could not be listed."""
        self.broken_off = False
        self._workspace = workspace
        self._include_ignored = include_ignored
        self._over = over
        self._since = since
        chain = () if include_ignored else ignore.above(workspace, start)
        self._levels = [self._entered(start, chain)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for level in self._levels:
            level.let_go()

    def __iter__(self) -> Iterator[Found]:
        while self._levels and not self.broken_off:
            level = self._levels[-1]
            if not level.waiting:
                level.let_go()
                self._levels.pop()
            elif self._over():
                self.broken_off = True
            else:
                found = self._next(level, level.waiting.pop())
                if found is not None:
                    yield found

    def _next(self, level: Level, key: str) -> Found | None:
        if key.endswith("/"):
            level.let_go()
            self._levels.append(self._entered(level.real / key[:-1], level.chain))
            return None
        self.passed += 1
        return Found(level.prefix + key, key, level.kinds[key], level)

    def _entered(self, real: RelPath, chain: ignore.Chain) -> Level:
        level = Level(self._workspace, real)
        directory = level.directory()
        if directory is None:
            self.closed += 1
            return level
        try:
            with os.scandir(directory.fd) as entries:
                kinds = {entry.name: _kind(entry) for entry in entries if entry.name not in NEVER_WALKED}
        except OSError:
            self.closed += 1
            return level
        if not self._include_ignored and ignore.NAME in kinds:
            chain = ignore.within(self._workspace, chain, real)
        level.chain, level.kinds = chain, kinds
        level.waiting = sorted(self._waiting(level), reverse=True)
        return level

    def _waiting(self, level: Level) -> Iterator[str]:
        """What is to come: each name, and a directory's once more with a slash, where it is entered."""
        since = self._since[len(level.prefix) :] if self._since.startswith(level.prefix) else ""
        for name, kind in level.kinds.items():
            directory = kind == "directory"
            if level.chain and ignore.leaves_out(level.chain, level.prefix + name, directory=directory):
                continue
            self.seen += 1
            if name >= since:
                yield name
            if directory and (f"{name}/" >= since or since.startswith(f"{name}/")):
                yield f"{name}/"


def walk(
    workspace: Workspace,
    start: RelPath,
    *,
    include_ignored: bool,
    over: Callable[[], bool],
    since: str = "",
) -> Walk:
    """Walk what is below a directory, from the path `since` on (itself included), until it is over."""
    return Walk(workspace, start, include_ignored=include_ignored, over=over, since=since)


def _kind(entry: "os.DirEntry[str]") -> Kind:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:
        return "other"
