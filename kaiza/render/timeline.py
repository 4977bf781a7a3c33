"""Records as a person reads them: one line each, in the columns time, seq, role, tool, path, outcome, code."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from kaiza.render.tables import GAP, SAMPLE, Cell, Column, fit
from kaiza.render.terminal import escape, paint

ROOMY = 110
"""Where a terminal is narrower, the day has a line of its own and rows show the time and a role's beginning."""

_COLUMNS = (
    Column("time"),
    Column("seq", right=True, natural=5),
    Column("role"),
    Column("tool", natural=12),
    Column("path", least=8, keep="end", natural=12),
    Column("outcome", natural=6),
    Column("code", least=20, turn=1),
)
_FORESEEN = (8, 6, 8, 16, 32, 7, 20)
_SHORT_ROLE = 4
_PATH_ARGUMENTS = ("path", "source", "destination", "uri")
_STYLES = {"ok": "green", "error": "red"}


def lines(
    records: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False, endless: bool = False
) -> Iterator[str]:
    """The timeline, lazily: measured on its first records or, where nobody knows what will come, on what is usual."""
    records = iter(records)
    sample = [] if endless else list(islice(records, SAMPLE))
    daily = width is not None and width < ROOMY
    measured = [_cells(record, daily=daily) for record in sample] or [tuple(Cell(" " * size) for size in _FORESEEN)]
    table = fit(_COLUMNS, measured, width, colour=colour, gap=" " if daily else GAP)
    yield table.head()
    day = ""
    for record in chain(sample, records):
        if daily and _text(record, "timestamp")[:10] != day:
            day = _text(record, "timestamp")[:10]
            yield paint(day, "bold", colour=colour)
        yield table.line(_cells(record, daily=daily))


def paths(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Every path that a record names, in the order it names them, each once."""
    arguments = record.get("arguments")
    found = list(_argued(arguments)) if isinstance(arguments, Mapping) else []
    for change in record.get("changes") or ():
        if isinstance(change, Mapping):
            found += [change.get("source"), change.get("path")]
    return tuple(dict.fromkeys(path for path in found if isinstance(path, str)))


def _cells(record: Mapping[str, Any], *, daily: bool) -> tuple[Cell, ...]:
    kind, outcome, time = _text(record, "kind"), _text(record, "outcome"), _text(record, "timestamp")[:19]
    return (
        Cell(time[11:] if daily else time.replace("T", " "), "dim"),
        Cell(_text(record, "seq"), "dim"),
        Cell(_text(record, "role")[: _SHORT_ROLE if daily else None]),
        Cell(_text(record, "tool_name") or kind),
        Cell(_where(paths(record)) or (_text(record, "plan_id") if kind in {"plan", "person"} else "")),
        Cell(outcome if outcome and kind == "call" else _came_to(record, kind), _STYLES.get(outcome, "yellow")),
        Cell(_text(record, "error_code"), "red"),
    )


def _came_to(record: Mapping[str, Any], kind: str) -> str:
    """What a record that is no call's outcome says: a plan was sealed, what a person did, how a recovery ended."""
    detail = record.get("detail")
    told = detail if isinstance(detail, Mapping) else {}
    if kind == "plan":
        return "sealed"
    return _text(told, {"person": "action", "recovery": "result"}.get(kind, "")) or kind


def _argued(arguments: Mapping[str, Any]) -> Iterator[Any]:
    yield from (arguments.get(name) for name in _PATH_ARGUMENTS)
    several = arguments.get("paths")
    if isinstance(several, list):
        yield from several


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return "" if value is None else escape(str(value))


def _where(found: tuple[str, ...]) -> str:
    if not found:
        return ""
    return escape(found[0]) + (f" +{len(found) - 1}" if len(found) > 1 else "")
