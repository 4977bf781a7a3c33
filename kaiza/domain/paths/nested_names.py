"""Names that control a workspace below the root, and names that make a directory one. Does not ask the disk."""

from collections.abc import Iterator
from dataclasses import dataclass

from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.protected_names import CONTROL_PLANE_AT_ROOT, LOG_DIRECTORY, LOG_NAME
from kaiza.domain.paths.rel_path import RelPath

PLAN_SUFFIX = ".md"


@dataclass(frozen=True, slots=True)
class NestedPath:
    """A path that controls a workspace below the root. With `is_new`, the change would make that workspace."""

    path: RelPath
    workspace: RelPath
    is_new: bool


def possible_workspaces(path: RelPath) -> Iterator[RelPath]:
    """Directories below the root whose control plane the path would be if they were workspaces."""
    for depth, part in enumerate(path.parts[1:], 1):
        if skeleton(part) in CONTROL_PLANE_AT_ROOT:
            yield RelPath(path.parts[:depth])


def find_new_workspace(path: RelPath) -> RelPath | None:
    """The directory below the root that any file at the path makes a workspace: a log, or a part of `.kaiza`."""
    names = [skeleton(part) for part in path.parts]
    for depth in range(1, len(names)):
        if names[depth] == ".kaiza" or tuple(names[depth : depth + 2]) == (LOG_DIRECTORY, LOG_NAME):
            return RelPath(path.parts[:depth])
    return None


def has_plan_place(path: RelPath) -> bool:
    """Whether a plan at the path would be one of a workspace below the root."""
    return len(path.parts) > 2 and skeleton(path.parts[-2]) == "plans" and is_plan_name(path.name)  # noqa: PLR2004


def is_plan_name(name: str) -> bool:
    """Whether a file in `plans/` with this name could be read as a plan."""
    return skeleton(name).endswith(PLAN_SUFFIX)
