"""Loads the `.gitignore` rules that apply in a directory: its own and those of its parent directories.

Matching is in `domain.paths.gitignore`. git's index is not read: a tracked file that matches a rule counts as ignored.
"""

from dataclasses import dataclass
from functools import lru_cache

from kaiza.domain import errors
from kaiza.domain.paths import gitignore
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files.confined_root import ConfinedRoot

NAME = ".gitignore"
# The workspace may be hostile: of a larger file, only this much is read.
MAX_BYTES = 256 * 1024

_EXCLUDE = RelPath((".git", "info", "exclude"))


@dataclass(frozen=True, slots=True)
class DirectoryRules:
    """Rules of one directory; they match a path without its first `prefix_length` bytes."""

    prefix_length: int
    rules: gitignore.IgnoreFile


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
    data = _read_rules_file(workspace, path)
    return (*chain, DirectoryRules(prefix_length, _parse_rules(data))) if data else chain


def _read_rules_file(workspace: ConfinedRoot, path: RelPath) -> bytes:
    """Content of a rules file; empty where there is none."""
    try:
        with workspace.open_file(path, lambda _real: None) as file:
            return file.read(MAX_BYTES) if file.real == path else b""  # git does not read one through a link either
    except errors.SystemError:
        return b""


_parse_rules = lru_cache(maxsize=128)(gitignore.parse)
