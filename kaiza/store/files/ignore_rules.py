"""The ignore rules that hold in a directory of the workspace: its own, and those of the directories above it."""

from dataclasses import dataclass
from functools import lru_cache

from kaiza.domain import errors
from kaiza.domain.paths import gitignore
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.store.files.confined_root import ConfinedRoot

NAME = ".gitignore"
MAX_BYTES = 256 * 1024
"""What follows in a larger file is not looked at."""

_EXCLUDE = RelPath((".git", "info", "exclude"))


@dataclass(frozen=True, slots=True)
class DirectoryRules:
    """The rules of one directory; `base` bytes of a path lie above it."""

    prefix_length: int
    rules: gitignore.IgnoreFile


RuleChain = tuple[DirectoryRules, ...]
"""The rules that hold in a directory, the outermost first."""


def is_ignored(chain: RuleChain, path: str, *, directory: bool) -> bool:
    """Whether the innermost rules that say something leave a path out."""
    if not chain:
        return False
    told = path.encode(errors="surrogateescape")
    for nested in reversed(chain):
        verdict = nested.rules.is_ignored(told[nested.prefix_length :], directory=directory)
        if verdict is not None:
            return verdict
    return False


def load_inherited(workspace: ConfinedRoot, directory: RelPath) -> RuleChain:
    """The rules that hold in a directory before its own are read."""
    chain = _add_rules(workspace, (), _EXCLUDE, 0)
    for depth in range(len(directory.parts)):
        chain = add_directory(workspace, chain, RelPath(directory.parts[:depth]))
    return chain


def add_directory(workspace: ConfinedRoot, chain: RuleChain, directory: RelPath) -> RuleChain:
    """The same with a directory's own rules, if it has any."""
    base = 0 if directory == ROOT else len(str(directory).encode(errors="surrogateescape")) + 1
    return _add_rules(workspace, chain, directory / NAME, base)


def _add_rules(workspace: ConfinedRoot, chain: RuleChain, path: RelPath, base: int) -> RuleChain:
    data = _read_rules_file(workspace, path)
    return (*chain, DirectoryRules(base, _parse_rules(data))) if data else chain


def _read_rules_file(workspace: ConfinedRoot, path: RelPath) -> bytes:
    """The file's bytes, nothing if there is none; like git, not through a link."""
    try:
        with workspace.open_file(path, lambda _real: None) as file:
            return file.read(MAX_BYTES) if file.real == path else b""
    except errors.SystemError:
        return b""


_parse_rules = lru_cache(maxsize=128)(gitignore.parse)
