"""Audit records for people: a timeline with one row a record, or one record in full."""

from collections.abc import Iterable, Iterator
from itertools import chain, islice

import orjson

from kaiza.domain.audit.projection import is_late_count
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.recorded_names import recorded_paths
from kaiza.domain.roles import describe_role
from kaiza.render.tables import GAP, SAMPLE_SIZE, Cell, Column, fit
from kaiza.render.terminal import INDENT, display_width, escape, escape_name, paint, wrap

MIN_WIDE_COLUMNS = 110
"""On a narrower terminal the day has a line of its own and rows show only the time."""
_COLUMNS = (
    Column("time UTC"),
    Column("seq", align_right=True, expected_width=5),
    Column("by"),
    Column("tool", expected_width=12),
    Column("path", min_width=12, is_whole=True, expected_width=12),
    Column("outcome", expected_width=6),
    Column("code", moves_below=True),
)
# A followed log is measured before its first record: widths that are usual, the time by the layout.
_EXPECTED_WIDTHS = (6, 11, 16, 32, 7, 20)
_TIME_WIDTH, _DATE_TIME_WIDTH = 8, 19
_MAX_PERSON_WIDTH = 16
"""A longer name is cut in the timeline; the record in full has all of it."""
_STYLES = {"ok": "green", "error": "red"}
_FIRST_MEMBERS = ("seq", "timestamp", "kind", "outcome", "error_code", "human_message", "invariant_id", "cause")
_LAST_MEMBERS = ("prev_hash", "entry_hash")


def render_timeline(
    records: Iterable[Record], width: int | None, *, colour: bool = False, endless: bool = False
) -> Iterator[str]:
    """The timeline, lazily. Columns are measured on the first records, or on usual widths where the log is followed."""
    records = iter(records)
    sample = [] if endless else list(islice(records, SAMPLE_SIZE))
    is_daily = width is not None and width < MIN_WIDE_COLUMNS
    usual = (_TIME_WIDTH if is_daily else _DATE_TIME_WIDTH, *_EXPECTED_WIDTHS)
    measured = [_record_cells(record, is_daily=is_daily) for record in sample]
    measured = measured or [tuple(Cell(" " * columns) for columns in usual)]
    table = fit(_COLUMNS, measured, width, colour=colour, gap=" " if is_daily else GAP)
    yield table.header()
    last_day = ""
    for record in chain(sample, records):
        day = _plain(record.timestamp)[:10]
        if is_daily and day != last_day:
            last_day = day
            yield paint(day, "bold", colour=colour)
        yield from table.lines(_record_cells(record, is_daily=is_daily))


def render_record(record: Record, width: int | None = None, *, colour: bool = False) -> Iterator[str]:
    """Every member of a record that is not null: the outcome first, the hashes last."""
    members = record.members
    middle = [name for name in members if name not in _FIRST_MEMBERS + _LAST_MEMBERS]
    names = [name for name in (*_FIRST_MEMBERS, *middle, *_LAST_MEMBERS) if members.get(name) is not None]
    room = max(map(len, names), default=0)
    for name in names:
        value = members[name]
        is_list = isinstance(value, list) and value and all(isinstance(item, dict) for item in value)
        for at, parts in enumerate(map(_format_parts, value if is_list else [value])):
            label, text = (escape(name) if at == 0 else "").ljust(room), GAP.join(parts)
            if width is None or display_width(label + GAP + text) <= width:
                yield f"{paint(label, 'dim', colour=colour)}{GAP}{paint(text, _STYLES.get(text, ''), colour=colour)}"
            else:
                yield paint(label.rstrip(), "dim", colour=colour)
                yield from _lines_of_parts(parts, width)


def _record_cells(record: Record, *, is_daily: bool) -> tuple[Cell, ...]:
    time = _plain(record.timestamp)[:_DATE_TIME_WIDTH]
    paths = recorded_paths(record)
    what = _plain(record.plan_id) if record.kind in ("plan", "person") else ""
    if paths:
        what = escape_name(paths[0]) + (f" +{len(paths) - 1}" if len(paths) > 1 else "")
    # Who made the call or the decision: a role, with the token over HTTP, or a person's name.
    by = f"{describe_role(_plain(record.role))} {_plain(record.principal)}".strip()
    person = _plain(record.detail.get("person"))
    if person:
        by = person if display_width(person) <= _MAX_PERSON_WIDTH else f"{person[: _MAX_PERSON_WIDTH - 1]}…"
    is_dry_run = record.arguments.get("dry_run") is True
    style = "yellow" if is_dry_run else _STYLES.get(_plain(record.outcome), "yellow")
    return (
        Cell(time[11:] if is_daily else time.replace("T", " "), "dim"),
        Cell(_plain(record.members.get("seq")), "dim"),
        Cell(by),
        Cell(_plain(record.tool_name) or _plain(record.detail.get("action")) or _plain(record.kind)),
        Cell(what),
        Cell(_format_outcome(record, is_dry_run=is_dry_run), style),
        Cell(_plain(record.error_code), "red"),
    )


def _format_outcome(record: Record, *, is_dry_run: bool) -> str:
    """The outcome of a call or of a person's command; else `intent`, `sealed`, or how a recovery ended."""
    kind, outcome = _plain(record.kind), _plain(record.outcome)
    if kind == "call" and outcome and is_dry_run:
        return "dry run" if outcome == "ok" else f"{outcome}, dry run"
    if kind in ("call", "person") and outcome:
        return outcome
    if kind == "plan":
        return "counted" if is_late_count(record) else "sealed"
    return (_plain(record.detail.get("result")) if kind == "recovery" else "") or kind


def _plain(value: object) -> str:
    """A member as text; a log from elsewhere may hold any value."""
    return "" if value is None else escape(str(value))


def _lines_of_parts(parts: Iterable[str], width: int) -> Iterator[str]:
    """Each part on a line of its own; of one that is still too long the value, which people copy, on the next."""
    for part in parts:
        line = INDENT * 2 + part
        name, sign, value = part.partition("=")
        if display_width(line) <= width:
            yield line
        elif sign and " " not in name:
            yield f"{INDENT * 2}{name}="
            yield from wrap([value], width)
        else:
            yield from wrap([line if " " in part else part], width)


def _format_parts(value: object) -> list[str]:
    if isinstance(value, dict):
        members = {name: item for name, item in value.items() if item is not None}
        return [f"{escape(str(name))}={GAP.join(_format_parts(item))}" for name, item in members.items()] or ["{}"]
    if isinstance(value, str):
        return [escape(value)]
    return [escape(orjson.dumps(value).decode("utf-8", "replace"))]
