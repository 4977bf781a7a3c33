"""Which entries are known by stat only: what `.gitignore` excludes, and what must not be read."""

import stat
from collections.abc import Callable

from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.tree_walk import RuleChain
from kaiza.store.manifest.database import HIDDEN, IGNORED
from kaiza.store.manifest.tree import Stat, join

_MAX_DIRECTORIES = 512


class IgnoredPaths:
    """The rules of the directories that were asked for last, and whether they are ignored themselves."""

    def __init__(self, root: ConfinedRoot, is_unreadable: Callable[[RelPath], bool]) -> None:
        self._root = root
        self._is_unreadable = is_unreadable
        self._known: dict[bytes, tuple[RuleChain, bool]] = {}

    def flags(self, directory: bytes, name: bytes, status: Stat) -> int:
        """IGNORED where `.gitignore` excludes an entry or a directory above it, HIDDEN where it must not be read."""
        path, is_directory = join(directory, name), stat.S_ISDIR(status.mode)
        is_ignored = _excludes(self._rules_in(directory), path, is_directory=is_directory)
        is_hidden = stat.S_ISREG(status.mode) and self._is_unreadable(RelPath.from_bytes(path))
        return (IGNORED if is_ignored else 0) | (HIDDEN if is_hidden else 0)

    def _rules_in(self, directory: bytes) -> tuple[RuleChain, bool]:
        """The rules in a directory, and whether it is ignored. Not by recursion: a tree may have 2,000 levels."""
        pending = list[bytes]()
        while directory and directory not in self._known:
            pending.append(directory)
            directory = directory.rpartition(b"/")[0]
        found = self._known.get(directory)
        if found is None:
            inherited = tree_walk.load_inherited(self._root, ROOT)
            found = self._keep(directory, tree_walk.add_directory(self._root, inherited, ROOT), False)
        while pending:
            directory = pending.pop()
            if _excludes(found, directory, is_directory=True):
                found = self._keep(directory, (), True)
            else:
                found = self._keep(
                    directory, tree_walk.add_directory(self._root, found[0], RelPath.from_bytes(directory)), False
                )
        return found

    def _keep(self, directory: bytes, chain: RuleChain, is_excluded: bool) -> tuple[RuleChain, bool]:  # noqa: FBT001
        if len(self._known) >= _MAX_DIRECTORIES:
            self._known.clear()
        self._known[directory] = chain, is_excluded
        return chain, is_excluded


def _excludes(rules: tuple[RuleChain, bool], path: bytes, *, is_directory: bool) -> bool:
    chain, is_excluded = rules
    return is_excluded or tree_walk.is_ignored(chain, path.decode(errors="surrogateescape"), directory=is_directory)
