"""Tool `project_references_missing`: find configured files, links and imports whose target does not exist."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.tools.project.reference_check import MissingRows, ReferenceChecker
from kaiza.tools.project.workspace_walk import visit_workspace
from kaiza.tools.view import Answer, FilesView

NAME = "project_references_missing"


@dataclass(frozen=True, slots=True)
class Request:
    """A request without arguments."""


def parse(_arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Return the request; the tool has no arguments of its own."""
    return Request()


def run(_request: Request, view: FilesView) -> Answer:
    """Check the references of every file."""
    checker = ReferenceChecker(view)
    stopped, notes = visit_workspace(view, view.caps.references_guard_ms, checker.check_entry)
    cut = [*_describe_cut(checker.scripts, "missing scripts"), *_describe_cut(checker.references, "broken references")]
    counted = [note.format(count) for note, count in sorted(checker.notes.items())]
    output = {"missingScripts": checker.scripts.items, "brokenReferences": checker.references.items}
    summary = f"{checker.scripts.count} missing scripts, {checker.references.count} broken references"
    summary += ", or more." if stopped else "."
    return Answer({**output, "summary": summary}, diagnostics=[*stopped, *cut, *counted, *notes])


def _describe_cut(rows: MissingRows, name: str) -> list[str]:
    shown = len(rows.items)
    return [f"Showing {shown} of {rows.count} {name}."] if shown < rows.count else []
