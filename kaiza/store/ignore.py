"""The ignore rules that hold in a directory of the workspace: its own, and those of the directories above it."""

from dataclasses import dataclass
from functools import lru_cache

from kaiza.domain import errors, gitignore
from kaiza.domain.paths import ROOT, RelPath
from kaiza.store.workspace import Workspace

NAME = ".gitignore"
LARGEST = 256 * 1024
"""What follows in a larger file is not looked at."""

_EXCLUDE = RelPath((".git", "info", "exclude"))


@dataclass(frozen=True, slots=True)
class Nested:
    """The rules of one directory; `base` bytes of a path lie above it."""

    base: int
    rules: gitignore.Rules


Chain = tuple[Nested, ...]
"""The rules that hold in a directory, the outermost first."""


def leaves_out(chain: Chain, path: str, *, directory: bool) -> bool:
    """Whether the innermost rules that say something leave a path out."""
    if not chain:
        return False
    told = path.encode(errors="surrogateescape")
    for nested in reversed(chain):
        verdict = nested.rules.verdict(told[nested.base :], directory=directory)
        if verdict is not None:
            return verdict
    return False


def above(workspace: Workspace, directory: RelPath) -> Chain:
    """The rules that hold in a directory before its own are read."""
    chain = _with(workspace, (), _EXCLUDE, 0)
    for depth in range(len(directory.parts)):
        chain = within(workspace, chain, RelPath(directory.parts[:depth]))
    return chain


def within(workspace: Workspace, chain: Chain, directory: RelPath) -> Chain:
    """The same with a directory's own rules, if it has any."""
    base = 0 if directory == ROOT else len(str(directory).encode(errors="surrogateescape")) + 1
    return _with(workspace, chain, directory / NAME, base)


def _with(workspace: Workspace, chain: Chain, path: RelPath, base: int) -> Chain:
    data = _read(workspace, path)
    return (*chain, Nested(base, _rules(data))) if data else chain


def _read(workspace: Workspace, path: RelPath) -> bytes:
    """The file's bytes, nothing if there is none; like git, not through a link."""
    try:
        with workspace.open_file(path, lambda _real: None) as file:
            return file.read(LARGEST) if file.real == path else b""
    except errors.SystemError:
        return b""


_rules = lru_cache(maxsize=128)(gitignore.parse)
