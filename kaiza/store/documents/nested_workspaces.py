"""Workspaces below the root: directories with a log, `.kaiza` or a plan of their own, found by what is on disk."""

from collections.abc import Callable, Sequence

from kaiza.domain import errors
from kaiza.domain.paths import nested_names, protected_names
from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.nested_names import NestedPath
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.domain.plans import parser
from kaiza.store.documents.plan_files import MAX_PLANS, read_limited
from kaiza.store.files.confined_root import ConfinedRoot

MAX_WALKED = 500_000


def find_nested_path(files: ConfinedRoot, path: RelPath) -> NestedPath | None:
    """The workspace below the root that the path controls, or would control once there is a file at the path."""
    for directory in nested_names.possible_workspaces(path):
        # The directories on disk that another file system could take for this one.
        found = [ROOT]
        for part in directory.parts:
            found = [above / name for above in found for name in _list_names(files, above) if _is_same(name, part)]
        for same in found:
            if is_workspace(files, same):
                return NestedPath(path, same, is_new=False)
    new = nested_names.find_new_workspace(path)
    return None if new is None else NestedPath(path, new, is_new=True)


def find_workspaces(files: ConfinedRoot, progress: Callable[[int, int], None]) -> tuple[list[RelPath], bool]:
    """All workspaces below the root, and whether the whole tree was searched; ignored directories too."""
    from kaiza.store.files import tree_walk  # noqa: PLC0415  a server does not need it

    with tree_walk.TreeWalk(files, ROOT, include_ignored=True, over=lambda: walk.visited_count >= MAX_WALKED) as walk:
        found = []
        for entry in walk:
            progress(walk.visited_count, 0)
            if entry.type == "directory" and is_workspace(files, entry.real):
                found.append(entry.real)
        return found, not walk.stopped_early


def find_new_plan(path: RelPath, read_content: Callable[[], bytes]) -> NestedPath | None:
    """The workspace below the root that the path would make by the plan that is written to it."""
    if nested_names.has_plan_place(path) and is_plan(read_content()):
        return NestedPath(path, path.parent.parent, is_new=True)
    return None


def is_workspace(files: ConfinedRoot, directory: RelPath) -> bool:
    """Whether a directory has `.kaiza`, a log, or a plan, in any spelling of their names."""
    for name in _list_names(files, directory):
        match skeleton(name):
            case ".kaiza":
                return True
            case protected_names.LOG_DIRECTORY:
                if any(skeleton(each) == protected_names.LOG_NAME for each in _list_names(files, directory / name)):
                    return True
            case "plans":
                plans = [each for each in _list_names(files, directory / name) if nested_names.is_plan_name(each)]
                if any(is_plan(_read_file(files, directory / name / each)) for each in plans[:MAX_PLANS]):
                    return True
    return False


def is_plan(content: bytes) -> bool:
    """Whether the plan reader takes the content for a plan, sound or with errors."""
    parsed = parser.parse(content)
    return parsed.plan is not None or "kaiza_plan" in parsed.scalars


def _is_same(name: str, other: str) -> bool:
    return name == other or skeleton(name) == skeleton(other) != ""


def _list_names(files: ConfinedRoot, directory: RelPath) -> Sequence[str]:
    """Names in a directory; none where it is a link or cannot be listed: no workspace could be served from there."""
    try:
        with files.open_directory(directory, lambda _real: None) as opened:
            return opened.names() if opened.real == directory else ()
    except errors.SystemError:
        return ()


def _read_file(files: ConfinedRoot, path: RelPath) -> bytes:
    try:
        with files.open_file(path, lambda _real: None) as file:
            return read_limited(file)[0] if file.real == path else b""
    except errors.SystemError:
        return b""
