"""Tool `project_info`: name, root and commit of the workspace, and how many files and directories it has."""

from collections import Counter
from typing import Any

from kaiza.domain.paths import rel_path
from kaiza.domain.paths.shown_names import escape_name
from kaiza.tools.project.workspace_walk import visit_workspace
from kaiza.tools.view import Answer, WorkspaceView


def run(_request: object, view: WorkspaceView) -> Answer:
    """Count what is in the workspace."""
    counts: Counter[str] = Counter()
    stopped, notes = visit_workspace(view, view.caps.find_guard_ms, lambda entry, _is_over: counts.update([entry.type]))
    output: dict[str, Any] = {
        "name": escape_name(view.root.rpartition("/")[2]),
        "root": rel_path.to_uri(view.root, rel_path.ROOT),
        "files": counts["file"],
        "directories": counts["directory"],
    }
    head = view.read_vcs_head()
    if head is not None:
        output["head"] = head
    summary = f"{counts['file']} files in {counts['directory']} directories{', or more' if stopped else ''}."
    return Answer({**output, "summary": summary}, diagnostics=[*stopped, *notes])
