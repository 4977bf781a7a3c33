"""What can be undone: the last changes, and the sessions and plans with changes, each with its command."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kaiza.domain.audit.record import Record
from kaiza.domain.audit.recorded_names import recorded_paths
from kaiza.render.terminal import display_width, escape, escape_name, format_count, format_time, wrap_words

_LISTED_MEMBERS = ("seq", "timestamp", "request_id", "tool_name", "session_id", "plan_id")
_MAX_LISTED = 5
_MAX_PATHS = 3


def describe_change(record: Record) -> str:
    """One change in a sentence: its record, tool, time and files."""
    paths = [escape_name(path) for path in recorded_paths(Record({"changes": record.changes}))]
    more = f" and {len(paths) - _MAX_PATHS} more" if len(paths) > _MAX_PATHS else ""
    tool = escape(record.tool_name or "undo")
    time, named = format_time(record.timestamp), ", ".join(paths[:_MAX_PATHS])
    return f"record {record.seq}, {tool}, {time}: {named}{more}"


def summarize(effective: Sequence[Record]) -> dict[str, Any]:
    """What `kaiza undo --json` prints: changes, sessions and plans, the latest first."""
    return {
        "changes": [
            {
                **{name: record.members[name] for name in _LISTED_MEMBERS},
                "paths": list(recorded_paths(Record({"changes": record.changes}))),
            }
            for record in effective
        ],
        "sessions": _count_by(effective, "session_id"),
        "plans": _count_by(effective, "plan_id"),
    }


def render_listing(effective: Sequence[Record], width: int | None) -> Iterator[str]:
    """The same for people; every command on a line of its own, whole. The latest change is the first."""
    if not effective:
        yield "Nothing to undo: no change that an agent made is still in effect."
        return
    summary = summarize(effective)
    yield "The last changes, the latest first:"
    for record in effective[:_MAX_LISTED]:
        yield from wrap_words(f"  {describe_change(record)}", width, "    ")
        yield from _command_lines("--request", record.request_id or "", width)
    if len(effective) > _MAX_LISTED:
        yield f"  … and {len(effective) - _MAX_LISTED} more; `kaiza undo --json` lists all."
    for noun, option in (("sessions", "--session"), ("plans", "--plan")):
        yield from _render_groups(summary[noun], noun, option, width)
    yield ""
    yield from wrap_words("Add --dry-run to see the diffs and restore nothing.", width, "")


def _render_groups(groups: Sequence[Mapping[str, Any]], noun: str, option: str, width: int | None) -> Iterator[str]:
    if not groups:
        return
    yield ""
    yield f"All changes of one of these {noun}:"
    for group in groups[:_MAX_LISTED]:
        yield f"  {format_count(group['changes'], 'change')}, the last at {format_time(group['last'])}"
        yield from _command_lines(option, group["id"], width)
    if len(groups) > _MAX_LISTED:
        yield f"  … and {len(groups) - _MAX_LISTED} more; `kaiza undo --json` lists all."


def _command_lines(option: str, name: str, width: int | None) -> Iterator[str]:
    """The command; where it is too wide as two lines of shell, so that it can be copied."""
    line = f"    kaiza undo {option} {escape(name)}"
    if width is None or display_width(line) <= width:
        yield line
    else:
        yield f"    kaiza undo {option} \\"
        yield f"      {escape(name)}"


def _count_by(effective: Sequence[Record], member: str) -> list[dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for record in effective:
        if name := record.members[member]:
            last = {"id": name, "changes": 0, "last": record.timestamp}
            groups.setdefault(name, last)["changes"] += 1
    return list(groups.values())
