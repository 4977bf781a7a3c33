"""Records as a person reads them: one line each, in the columns time, seq, role, tool, path, outcome, code."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from kaiza.render.tables import GAP, SAMPLE_SIZE, Cell, Column, fit
from kaiza.render.terminal import escape, paint

MIN_WIDE_COLUMNS = 110
"""Where a terminal is narrower, the day has a line of its own and rows show the time and a role's beginning."""

_COLUMNS = (
    Column("time"),
    Column("seq", align_right=True, natural_width=5),
    Column("role"),
    Column("tool", natural_width=12),
    Column("path", min_width=8, kept_end="end", natural_width=12),
    Column("outcome", natural_width=6),
    Column("code", min_width=20, shrink_order=1),
)
_EXPECTED_WIDTHS = (8, 6, 8, 16, 32, 7, 20)
_MAX_SHORT_ROLE = 4
_PATH_ARGUMENTS = ("path", "source", "destination", "uri")
_STYLES = {"ok": "green", "error": "red"}


def render_timeline(
    records: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False, endless: bool = False
) -> Iterator[str]:
    """The timeline, lazily: measured on its first records or, where nobody knows what will come, on what is usual."""
    records = iter(records)
    sample = [] if endless else list(islice(records, SAMPLE_SIZE))
    daily = width is not None and width < MIN_WIDE_COLUMNS
    measured = [_record_cells(record, daily=daily) for record in sample] or [
        tuple(Cell(" " * size) for size in _EXPECTED_WIDTHS)
    ]
    table = fit(_COLUMNS, measured, width, colour=colour, gap=" " if daily else GAP)
    yield table.header()
    day = ""
    for record in chain(sample, records):
        if daily and _field_text(record, "timestamp")[:10] != day:
            day = _field_text(record, "timestamp")[:10]
            yield paint(day, "bold", colour=colour)
        yield table.row(_record_cells(record, daily=daily))


def recorded_paths(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Every path that a record names, in the order it names them, each once."""
    arguments = record.get("arguments")
    found = list(_argument_paths(arguments)) if isinstance(arguments, Mapping) else []
    for change in record.get("changes") or ():
        if isinstance(change, Mapping):
            found += [change.get("source"), change.get("path")]
    return tuple(dict.fromkeys(path for path in found if isinstance(path, str)))


def _record_cells(record: Mapping[str, Any], *, daily: bool) -> tuple[Cell, ...]:
    kind, outcome, time = (
        _field_text(record, "kind"),
        _field_text(record, "outcome"),
        _field_text(record, "timestamp")[:19],
    )
    return (
        Cell(time[11:] if daily else time.replace("T", " "), "dim"),
        Cell(_field_text(record, "seq"), "dim"),
        Cell(_field_text(record, "role")[: _MAX_SHORT_ROLE if daily else None]),
        Cell(_field_text(record, "tool_name") or kind),
        Cell(
            _format_paths(recorded_paths(record))
            or (_field_text(record, "plan_id") if kind in {"plan", "person"} else "")
        ),
        Cell(outcome if outcome and kind == "call" else _describe_result(record, kind), _STYLES.get(outcome, "yellow")),
        Cell(_field_text(record, "error_code"), "red"),
    )


def _describe_result(record: Mapping[str, Any], kind: str) -> str:
    """What a record that is no call's outcome says: a plan was sealed, what a person did, how a recovery ended."""
    detail = record.get("detail")
    told = detail if isinstance(detail, Mapping) else {}
    if kind == "plan":
        return "sealed"
    return _field_text(told, {"person": "action", "recovery": "result"}.get(kind, "")) or kind


def _argument_paths(arguments: Mapping[str, Any]) -> Iterator[Any]:
    yield from (arguments.get(name) for name in _PATH_ARGUMENTS)
    several = arguments.get("paths")
    if isinstance(several, list):
        yield from several


def _field_text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return "" if value is None else escape(str(value))


def _format_paths(found: tuple[str, ...]) -> str:
    if not found:
        return ""
    return escape(found[0]) + (f" +{len(found) - 1}" if len(found) > 1 else "")
