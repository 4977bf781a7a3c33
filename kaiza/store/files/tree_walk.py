"""Walk of a directory tree in the order of paths, without what `.gitignore` excludes. Links are not followed.

Kaiza's log is never walked, also where no `.gitignore` excludes it.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from kaiza.domain import errors
from kaiza.domain.paths import gitignore
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, is_in_log_directory
from kaiza.domain.paths.rel_path import ROOT, FileEntry, FileKind, RelPath
from kaiza.domain.paths.repository_names import is_bare_entry, is_bare_repository, is_repository_directory
from kaiza.store.disk.small_files import READ_NOFOLLOW
from kaiza.store.files.confined_root import ConfinedRoot, OpenDirectory
from kaiza.store.files.resolved import OwnedDescriptor

NAME = ".gitignore"
# The workspace may be hostile: of a larger file, only this much is read.
MAX_BYTES = 256 * 1024

_EXCLUDE = RelPath((".git", "info", "exclude"))


@dataclass(frozen=True, slots=True)
class DirectoryRules:
    """Rules of one directory; they match a path without its first `prefix_length` bytes."""

    prefix_length: int
    rules: gitignore.IgnoreFile


FileCheck = Callable[[RelPath, os.stat_result], bool]
RuleChain = tuple[DirectoryRules, ...]
"""The rules that apply in a directory, the outermost first."""


def is_ignored(chain: RuleChain, path: str, *, directory: bool) -> bool:
    """Whether a path is ignored. The innermost directory with a matching rule decides, as in git."""
    if not chain:
        return False
    encoded = path.encode(errors="surrogateescape")
    for level in reversed(chain):
        verdict = level.rules.is_ignored(encoded[level.prefix_length :], directory=directory)
        if verdict is not None:
            return verdict
    return False


def load_inherited(workspace: ConfinedRoot, directory: RelPath) -> RuleChain:
    """The rules that a directory inherits: `.git/info/exclude` and those of its parent directories."""
    chain = _add_rules(workspace, (), _EXCLUDE, 0)
    for depth in range(len(directory.parts)):
        chain = add_directory(workspace, chain, RelPath(directory.parts[:depth]))
    return chain


def add_directory(workspace: ConfinedRoot, chain: RuleChain, directory: RelPath) -> RuleChain:
    """The chain with a directory's own rules added, if it has any."""
    prefix_length = 0 if directory == ROOT else len(str(directory).encode(errors="surrogateescape")) + 1
    return _add_rules(workspace, chain, directory / NAME, prefix_length)


def _add_rules(workspace: ConfinedRoot, chain: RuleChain, path: RelPath, prefix_length: int) -> RuleChain:
    try:
        with workspace.open_file(path, lambda _real: None) as file:
            data = file.read(MAX_BYTES) if file.real == path else b""  # git does not read one through a link either
    except errors.SystemError:
        return chain
    return (*chain, DirectoryRules(prefix_length, _parse_rules(data))) if data else chain


_parse_rules = lru_cache(maxsize=128)(gitignore.parse)


_OWN_DIRECTORY = ".kaiza"


@dataclass(slots=True)
class WalkedFile(OwnedDescriptor):
    """A regular file of a walk, open for reading."""

    size: int

    def read(self, size: int) -> bytes:
        """Read the next bytes, at most `size`; empty at the end and where reading fails."""
        try:
            return os.read(self.fd, size)
        except OSError:
            return b""


class DirectoryLevel:
    """A directory that the walk is in: the names still to visit, and its descriptor while it is needed."""

    __slots__ = ("_open", "_workspace", "chain", "is_refused", "kinds", "pending", "prefix", "real")

    def __init__(self, workspace: ConfinedRoot, real: RelPath, is_refused: FileCheck) -> None:
        self.real = real
        self.is_refused = is_refused
        self.prefix = f"{real}/" if real.parts else ""
        self.chain: RuleChain = ()
        self.pending: list[str] = []
        self.kinds: dict[str, FileKind] = {}
        self._workspace = workspace
        self._open: OpenDirectory | None = None

    def open_directory(self) -> OpenDirectory | None:
        """The open directory, reopened where it was closed; None where the path leads elsewhere by now."""
        if self._open is None:
            try:
                opened = self._workspace.open_directory(self.real, lambda _real: None)
            except errors.SystemError:
                return None
            # A parent was swapped for a link: its entries would be reported under paths that are not theirs.
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
    """An entry of a walk, valid until the next one is requested."""

    path: str
    name: str
    type: FileKind
    _level: DirectoryLevel

    @property
    def real(self) -> RelPath:
        """The path as a RelPath."""
        return self._level.real / self.name

    def stat_entry(self) -> FileEntry | None:
        """Type, size and time; None where it is gone."""
        directory = self._level.open_directory()
        return directory.stat_entry(self.name) if directory else None

    def open(self) -> WalkedFile | None:
        """Open it for reading; None unless it is a readable regular file and not refused."""
        directory = self._level.open_directory()
        if directory is None:
            return None
        try:
            # The entry may be a link or a FIFO by now: neither followed nor waited for.
            fd = os.open(self.name, READ_NOFOLLOW, dir_fd=directory.fd)
        except OSError:
            return None
        status = os.fstat(fd)
        if stat.S_ISREG(status.st_mode) and not self._level.is_refused(self.real, status):
            return WalkedFile(fd, status.st_size)
        os.close(fd)
        return None


class TreeWalk:
    """Iterator over the entries of a tree, sorted by path, from the path `since` on (included).

    It stops early once `over` returns True. A file for which `is_refused` is True is not opened.
    """

    def __init__(
        self,
        workspace: ConfinedRoot,
        start: RelPath,
        *,
        include_ignored: bool,
        over: Callable[[], bool],
        since: str = "",
        is_refused: FileCheck = lambda _real, _status: False,
    ) -> None:
        self.listed_count = 0
        """Names listed so far."""
        self.visited_count = 0
        """Entries yielded so far."""
        self.unlisted_count = 0
        """Directories that could not be listed."""
        self.ignored_directory_count = 0
        """Directories left out because `.gitignore` excludes them."""
        self.stopped_early = False
        self._workspace = workspace
        self._include_ignored = include_ignored
        self._should_stop = over
        self._since = since
        self._is_refused = is_refused
        chain = () if include_ignored else load_inherited(workspace, start)
        self._levels = [self._enter_directory(start, chain)]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for level in self._levels:
            level.close()

    def __iter__(self) -> Iterator[WalkedEntry]:
        while self._levels and not self.stopped_early:
            level = self._levels[-1]
            if not level.pending:
                level.close()
                self._levels.pop()
            elif self._should_stop():
                self.stopped_early = True
            else:
                entry = self._visit_name(level, level.pending.pop())
                if entry is not None:
                    yield entry

    def _visit_name(self, level: DirectoryLevel, key: str) -> WalkedEntry | None:
        if key.endswith("/"):
            level.close()  # reopened when the walk is back: a deep tree needs few descriptors
            self._levels.append(self._enter_directory(level.real / key[:-1], level.chain))
            return None
        self.visited_count += 1
        return WalkedEntry(level.prefix + key, key, level.kinds[key], level)

    def _enter_directory(self, real: RelPath, chain: RuleChain) -> DirectoryLevel:
        level = DirectoryLevel(self._workspace, real, self._is_refused)
        if is_in_log_directory(real):
            return level
        directory = level.open_directory()
        if directory is None:
            self.unlisted_count += 1
            return level
        try:
            with os.scandir(directory.fd) as entries:
                kinds = {entry.name: _entry_kind(entry) for entry in entries if not is_skipped(entry.name)}
        except OSError:
            self.unlisted_count += 1
            return level
        if not self._include_ignored and NAME in kinds:
            chain = add_directory(self._workspace, chain, real)
        if is_bare_repository(kinds):
            kinds = {name: kind for name, kind in kinds.items() if not is_bare_entry(name)}
        if not real.parts:
            kinds.pop(LOG_DIRECTORY, None)
        level.chain, level.kinds = chain, kinds
        level.pending = sorted(self._pending_names(level), reverse=True)
        return level

    def _pending_names(self, level: DirectoryLevel) -> Iterator[str]:
        """The names to visit, and each directory's name a second time with a slash, at which it is entered.

        Sorted together they give the order of whole paths: `a`, `a.txt`, `a/b`.
        """
        since = self._since[len(level.prefix) :] if self._since.startswith(level.prefix) else ""
        for name, kind in level.kinds.items():
            is_directory = kind == "directory"
            if level.chain and is_ignored(level.chain, level.prefix + name, directory=is_directory):
                self.ignored_directory_count += is_directory
                continue
            self.listed_count += 1
            if name >= since:
                yield name
            if is_directory and (f"{name}/" >= since or since.startswith(f"{name}/")):
                yield f"{name}/"


def is_skipped(name: str) -> bool:
    """Whether no walk shows or enters what has this name: version control and Kaiza's own directory."""
    return name == _OWN_DIRECTORY or is_repository_directory(name)


def _entry_kind(entry: "os.DirEntry[str]") -> FileKind:
    try:
        if entry.is_symlink():
            return "link"
        if entry.is_dir(follow_symlinks=False):
            return "directory"
        return "file" if entry.is_file(follow_symlinks=False) else "other"
    except OSError:  # deleted since it was listed
        return "other"
