"""Which entries are known by stat only: what `.gitignore` excludes, and what must not be read."""

import stat
from collections.abc import Callable

from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.tree_walk import RuleChain
from kaiza.store.manifest.tree import Stat, to_rel_path

_MAX_DIRECTORIES = 512


class IgnoredPaths:
    """The rules of the directories that were asked for last, and whether they are ignored themselves."""

    def __init__(self, root: ConfinedRoot, is_unreadable: Callable[[RelPath], bool]) -> None:
        self._root = root
        self._is_unreadable = is_unreadable
        self._known: dict[bytes, tuple[RuleChain, bool]] = {}

    def is_ignored(self, directory: bytes, name: bytes, *, is_directory: bool) -> bool:
        """Whether `.gitignore` excludes an entry, or a directory above it."""
        chain, is_excluded = self._rules_in(directory)
        if is_excluded or not chain:
            return is_excluded
        path = (directory + b"/" + name if directory else name).decode(errors="surrogateescape")
        return tree_walk.is_ignored(chain, path, directory=is_directory)

    def is_hidden(self, path: bytes, status: Stat) -> bool:
        """Whether the content must not be read."""
        return stat.S_ISREG(status.mode) and self._is_unreadable(to_rel_path(path))

    def _rules_in(self, directory: bytes) -> tuple[RuleChain, bool]:
        found = self._known.get(directory)
        if found is None:
            found = self._load_rules(directory)
            if len(self._known) >= _MAX_DIRECTORIES:
                self._known.clear()
            self._known[directory] = found
        return found

    def _load_rules(self, directory: bytes) -> tuple[RuleChain, bool]:
        if not directory:
            return tree_walk.add_directory(self._root, tree_walk.load_inherited(self._root, ROOT), ROOT), False
        parent, _, name = directory.rpartition(b"/")
        chain, is_excluded = self._rules_in(parent)
        if is_excluded or self.is_ignored(parent, name, is_directory=True):
            return (), True
        return tree_walk.add_directory(self._root, chain, to_rel_path(directory)), False
