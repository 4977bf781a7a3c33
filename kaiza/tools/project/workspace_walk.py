"""Walks the whole workspace within a time limit, with the diagnostics that all project tools return."""

from collections.abc import Callable, Sequence

from kaiza.domain.paths.rel_path import ROOT
from kaiza.tools.reading.tree_scan import ScanTimeout, iterate_with_progress
from kaiza.tools.view import WalkEntry, WorkspaceView


def visit_workspace(
    view: WorkspaceView, guard_ms: int, visit: Callable[[WalkEntry, Callable[[], bool]], None]
) -> tuple[Sequence[str], Sequence[str]]:
    """Call `visit` with each entry, in the order of paths, and with a function that says whether to stop.

    Return the first diagnostics, about what the walk did not reach, and the last, about ignored directories.
    """
    timeout = ScanTimeout(view, guard_ms)
    with view.walk(ROOT, include_ignored=False, over=timeout.has_expired) as walk:
        for entry in iterate_with_progress(walk, view):
            visit(entry, timeout.has_expired)
        stopped = timeout.diagnostics(walk)
    ignored = walk.ignored_directory_count
    return stopped, [f"Ignored by .gitignore: {ignored} directories."] if ignored else []
