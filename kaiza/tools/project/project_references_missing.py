"""Tool `project_references_missing`: find configured files, links and imports whose target does not exist."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paging.response_size import AnswerBudget, PageBuilder
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.references import CONFIGURED_KINDS, Reference, choose_finder, find_candidates
from kaiza.domain.text import lines
from kaiza.tools.project.workspace_walk import visit_workspace
from kaiza.tools.view import Answer, WalkEntry, WorkspaceView

MAX_ROWS = 1_000
MAX_FILE_BYTES = 512 * 1024
MAX_TARGET_CHARACTERS = 200
TOO_LARGE = "Skipped, too large: {} files."
UNREADABLE = "Skipped, may not be read: {} files."
NOT_UTF8 = "Not UTF-8, read as far as possible: {} files."
NOT_JSON = "Skipped, not valid JSON: {} files."
NOT_LOOKED_UP = "Not looked up, outside the workspace or not readable: {} targets."
_NOT_THERE = frozenset({"FILE_NOT_FOUND", "PATH_NOT_FOUND"})


def run(_request: object, view: WorkspaceView) -> Answer:
    """Check the references of every file."""
    checker = ReferenceChecker(view)
    scripts, references = checker.scripts, checker.references
    stopped, notes = visit_workspace(view, view.caps.references_guard_ms, checker.check_entry)
    cut = [
        f"Showing {len(rows.items)} of {rows.count} {name}."
        for rows, name in ((scripts, "missing scripts"), (references, "broken references"))
        if len(rows.items) < rows.count
    ]
    counted = [note.format(count) for note, count in sorted(checker.notes.items())]
    output = {"missingScripts": scripts.items, "brokenReferences": references.items}
    more = ", or more." if stopped else "."
    summary = f"{scripts.count} missing scripts, {references.count} broken references{more}"
    return Answer({**output, "summary": summary}, diagnostics=[*stopped, *cut, *counted, *notes])


class MissingRows:
    """Rows of the answer, limited in number and size, and the count of all."""

    def __init__(self, budget: AnswerBudget) -> None:
        self.count = 0
        self._page = PageBuilder(MAX_ROWS, budget)
        self._is_full = False

    @property
    def items(self) -> list[dict[str, Any]]:
        """The rows."""
        return self._page.items

    def add(self, row: dict[str, Any]) -> None:
        """Count a row, and keep it while there is room."""
        self.count += 1
        self._is_full = self._is_full or not self._page.add(row)


class ReferenceChecker:
    """Checks the references of file after file, and collects what is missing."""

    def __init__(self, view: WorkspaceView) -> None:
        half = AnswerBudget(AnswerBudget.choose(view.caps).max_bytes // 2)
        self.scripts, self.references = MissingRows(half), MissingRows(half)
        self.notes: Counter[str] = Counter()
        self._view = view

    def check_entry(self, entry: WalkEntry, is_over: Callable[[], bool]) -> None:
        """Check the references of one entry until the time is up."""
        finder = choose_finder(entry.real) if entry.type == "file" else None
        text = self._read_text(entry) if finder else None
        if finder is None or text is None:
            return
        found: list[Reference] = []
        try:
            found.extend(finder(text))  # those before a fault are checked
        except ValueError:
            self.notes[NOT_JSON] += 1
        for reference in sorted(found):
            if is_over():
                return
            if self._is_missing(entry.real, reference):
                rows = self.scripts if reference.kind in CONFIGURED_KINDS else self.references
                target = escape_name(reference.target)[:MAX_TARGET_CHARACTERS]
                path = escape_name(entry.path)
                rows.add({"path": path, "line": reference.line, "target": target, "kind": reference.kind})

    def _read_text(self, entry: WalkEntry) -> str | None:
        opened = None if self._view.is_unreadable(entry.real) else entry.open()
        if opened is None:
            self.notes[UNREADABLE] += 1
            return None
        with opened as content:
            data = content.read(min(content.size, MAX_FILE_BYTES) + 1)
        if len(data) > MAX_FILE_BYTES:
            self.notes[TOO_LARGE] += 1
            return None
        text = data.decode(errors="surrogateescape")
        if not text.isascii() and lines.LONE_BYTE.search(text):
            self.notes[NOT_UTF8] += 1
        return text

    def _is_missing(self, source: RelPath, reference: Reference) -> bool:
        """Whether none of a target's paths exists; False if one is not looked up."""
        candidates = find_candidates(source, reference)
        if not candidates or any(map(self._view.is_unreadable, candidates)):
            self.notes[NOT_LOOKED_UP] += 1
            return False
        return not any(self._may_exist(path) for path in candidates)

    def _may_exist(self, path: RelPath) -> bool:
        try:
            entry = self._view.stat(path)
        except errors.SystemError as error:
            if error.error_code in _NOT_THERE:
                return False
        else:
            if entry.real == path or not self._view.is_unreadable(entry.real):
                return True
        self.notes[NOT_LOOKED_UP] += 1
        return True
