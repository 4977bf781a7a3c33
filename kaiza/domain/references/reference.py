"""Reference of one file to another, and the paths that it may lead to."""

from typing import Literal, NamedTuple
from urllib.parse import unquote

from kaiza.domain.paths.rel_path import MAX_COMPONENT, MAX_PATH, RelPath

ReferenceKind = Literal[
    "link", "python_import", "script_import", "python_script", "package_main", "package_bin", "workflow_path"
]
_PYTHON_SUFFIXES = (".py", "", ".pyi", ".pyx", ".so", ".pyd", ".c")
_SCRIPT_SUFFIXES = ("", ".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts", ".json", ".node")
_COMPONENT_SUFFIXES = (".vue", ".svelte")
_COMPILED_FROM = {".js": (".ts", ".tsx", ".d.ts"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
"""A TypeScript module imports another by the name of the file that it is compiled to."""


class Reference(NamedTuple):
    """A target as it is written, and its line, counted from 1."""

    line: int
    target: str
    kind: ReferenceKind


def find_candidates(source: RelPath, reference: Reference) -> list[RelPath]:
    """Paths of which one must exist, likeliest first; none if the target is outside the workspace or not a path."""
    target, directory = reference.target, source.parent
    if reference.kind == "link":
        return _resolve_all(directory, [unquote(target, errors="surrogateescape")])
    if reference.kind == "python_import":
        return _python_modules(directory, target)
    if reference.kind == "python_script":
        module = target.partition(":")[0].replace(".", "/")
        return _resolve_all(directory, [f"{base}{module}{suffix}" for base in ("", "src/") for suffix in (".py", "")])
    if reference.kind == "workflow_path":
        return _resolve_all(directory.parent.parent, [target])
    return _resolve_all(directory, _script_files(target.partition("?")[0]))


def _python_modules(directory: RelPath, target: str) -> list[RelPath]:
    name = target.lstrip(".")
    above = "../" * (len(target) - len(name) - 1)
    return _resolve_all(directory, [f"{above}{name.replace('.', '/')}{suffix}" for suffix in _PYTHON_SUFFIXES])


def _script_files(target: str) -> list[str]:
    files = [target + suffix for suffix in (*_SCRIPT_SUFFIXES, *_COMPONENT_SUFFIXES)]
    for compiled, sources in _COMPILED_FROM.items():
        if target.endswith(compiled):
            files += [target.removesuffix(compiled) + suffix for suffix in sources]
    return files


def _resolve_all(directory: RelPath, targets: list[str]) -> list[RelPath]:
    return [path for path in (_resolve(directory, target) for target in targets) if path is not None]


def _resolve(directory: RelPath, target: str) -> RelPath | None:
    """The path that a relative target names; None if it leaves the workspace or cannot be a path."""
    parts = list(directory.parts)
    for part in target.split("/"):
        if part == ".." and not parts:
            return None
        if part == "..":
            parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    text = "/".join(parts)
    if "\0" in text or len(_encode(text)) > MAX_PATH or any(len(_encode(part)) > MAX_COMPONENT for part in parts):
        return None
    return RelPath(tuple(parts))


def _encode(text: str) -> bytes:
    return text.encode(errors="surrogatepass")
