"""What can be undone, and the diffs of what an undo would change."""

from collections.abc import Iterator, Mapping, Sequence

from kaiza.domain.audit.inverse_changes import may_be_in_effect, took_effect
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import iter_effective
from kaiza.domain.change import Change
from kaiza.domain.text import unified_diff
from kaiza.queries.audit_log import read_backward
from kaiza.store.audit.reader import member_text, search_backward
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace

MAX_SHOWN_BYTES = 1 << 20
"""Diffs of larger files are not shown."""
MAX_DIFF_LINES = 2000
"""Diff lines shown in all."""
MAX_DIFF_BYTES = 1 << 20
"""Bytes of the diffs shown in all."""


def read_changes(workspace: Workspace) -> Iterator[Record]:
    """The records of all changes that may be in effect, undos included, newest first, one at a time."""
    return filter(may_be_in_effect, read_backward(workspace.root))


def iter_all_effective(workspace: Workspace) -> Iterator[Record]:
    """The records of all changes that are still in effect, without undos, newest first."""
    return iter_effective(filter(took_effect, read_backward(workspace.root)))


def has_been_cleaned(workspace: Workspace) -> bool:
    """Whether a person has run `kaiza gc` here."""
    found = search_backward(workspace.root, member_text("action", "gc"))
    return any(record.kind == "person" for record in found)


def diff_changes(changes: Sequence[Change], workspace: Workspace, view: ToolView) -> Iterator[str]:
    """One diff for each change, up to MAX_DIFF_LINES lines and MAX_DIFF_BYTES in all; then empty ones."""
    room, space = MAX_DIFF_LINES, MAX_DIFF_BYTES
    holders = {change.before_hash: change for change in changes if change.before_hash is not None}
    for change in changes:
        if room <= 0 or space <= 0:
            yield ""
            continue
        text = _format_diff(change, workspace, view, holders)
        lines = text.splitlines(keepends=True)
        cut = ["… the rest is not shown\n"] if len(lines) > room else []
        yield "".join([*lines[:room], *cut])
        room, space = room - len(lines), space - len(text)


def _format_diff(change: Change, workspace: Workspace, view: ToolView, holders: Mapping[str, Change]) -> str:
    before = after = _current_content(change, view)
    if change.operation != "move":
        after = None
        if change.after_hash is not None and change.size <= MAX_SHOWN_BYTES:
            # A content that another of these changes displaces may not be stored yet.
            holder = holders.get(change.after_hash)
            after = _current_content(holder, view) if holder else b"".join(workspace.blobs.chunks(change.after_hash))
    if (before is None) != (change.before_hash is None) or (after is None) != (change.operation == "delete"):
        return f"{change.operation} {change.path}: too large to show\n"
    mode = view.stat(change.source or change.path).mode if change.before_hash is not None else 0o644
    old = unified_diff.FileVersion(change.source or change.path, before, mode)
    new = unified_diff.FileVersion(change.path, after, mode if change.mode is None else change.mode)
    diff = unified_diff.compare(old, new)
    return diff.text + ("… the rest is not shown\n" if diff.truncated else "")


def _current_content(change: Change, view: ToolView) -> bytes | None:
    """The file's content now; None if there is no file or it is too large to show."""
    if change.before_hash is None:
        return None
    with view.open_file(change.source or change.path) as file:
        return b"".join(file.chunks()) if file.size <= MAX_SHOWN_BYTES else None
