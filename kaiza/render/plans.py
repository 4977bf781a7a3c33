"""A plan before a person: what it says and touches, with everything that is easily overlooked written out."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kaiza.domain.lookalike import visible
from kaiza.render.tables import Cell, Column, lines
from kaiza.render.terminal import escape, paint

_LISTED = (
    Column("plan", least=16),
    Column("status"),
    Column("allows changes", least=16),
    Column("used"),
    Column("title", least=12),
)
_TOUCHED = (Column("file", least=24, keep="end"), Column("may be"))
_PAST = {"modify": "modified", "delete": "deleted", "move": "moved"}
_WORDS = {"deny": "never", "unlock": "UNLOCKS"}
_ORDER = ("modify", "create", "delete", "move", "deny", "unlock")
_INDENT = "  "


def listed(told: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """Plans, a line each."""
    return lines(_LISTED, map(_row, told), width, colour=colour)


def shown(told: Mapping[str, Any], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One plan, whole."""
    yield paint(f"{seen(told['plan_id'])}  {escape(told['title'])}", "bold", colour=colour)
    yield from _facts(told)
    if told["findings"] and "scope" not in told:
        yield from headed("Errors", (finding_line(told["path"], one) for one in told["findings"]), colour=colour)
        return
    yield from headed("What it allows", _scope(told["scope"], told["touches"]), colour=colour)
    yield from _touches(told["touches"], width, colour=colour)
    warnings = [_warning(one) for one in told["warnings"]]
    yield from headed("Look twice", warnings, colour=colour, style="yellow")
    yield from headed("Limits", _limits(told), colour=colour)
    yield from headed("Phases", (line for phase in told["phases"] for line in _phase(phase)), colour=colour)
    yield from headed("Refuses in what is added", [_policy(told["policy"])], colour=colour)
    yield from headed("Text", map(escape, told["prose"].split("\n")), colour=colour)
    yield from changed(told["difference"], colour=colour)


def changed(told: Mapping[str, Any] | None, *, colour: bool = False) -> Iterator[str]:
    """What became of the bytes that were approved."""
    if told is None:
        return
    if told["diff"] is None:
        sentence = "The bytes that were approved are not kept any more, so what changed cannot be shown."
        yield from headed("Since its approval", [sentence, f"Their hash is {told['approved_hash']}"], colour=colour)
    else:
        yield from headed("Since its approval", difference(told["diff"], colour=colour), colour=colour)


def difference(text: str, *, colour: bool = False) -> Iterator[str]:
    """A diff, line by line, safe to show."""
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in text.removesuffix("\n").split("\n"):
        yield paint(escape(line), styles.get(line[:1], ""), colour=colour)


def finding_line(path: str, told: Mapping[str, Any]) -> str:
    """A finding as editors understand it: lines and columns from 1."""
    place = f"{escape(path)}:{told['line'] + 1}:{told['column'] + 1}"
    return escape(f"{place}: {told['severity']}: {told['message']}. {told['fix']} [{told['rule']}]")


def headed(title: str, told: Iterable[str], *, colour: bool, style: str = "bold") -> Iterator[str]:
    """Lines under a title; nothing where there are none."""
    rows = list(told)
    if rows:
        yield from ("", paint(f"{title}:", style, colour=colour))
        yield from (f"{_INDENT}{row}".rstrip() for row in rows)


def seen(text: str) -> str:
    """A name or a pattern with everything that does not show, or looks like something else, spelled out."""
    return escape(visible(text))


def use(limits: Mapping[str, int], used: Mapping[str, int]) -> str:
    """What was used of what is limited, in a few words."""
    return ", ".join(f"{name} {used[name]}/{limit}" for name, limit in limits.items())


def _row(told: Mapping[str, Any]) -> tuple[Cell, ...]:
    allows = "yes" if told["allows"] else f"no: {told['why_not']}"
    return (
        Cell(seen(told["plan_id"]), "bold"),
        Cell(escape(told["status"])),
        Cell(escape(allows), "green" if told["allows"] else ""),
        Cell(use(told["limits"], told["used"])),
        Cell(escape(told["title"])),
    )


def _facts(told: Mapping[str, Any]) -> Iterator[str]:
    now = "allows changes now" if told["allows"] else f"allows nothing now: {told['why_not']}"
    yield f"status    {escape(told['status'])}; {escape(now)}"
    yield f"hash      {told['plan_hash']}"
    if "author" in told:
        yield f"author    {escape(told['author'])}, {escape(told['created'])}"
    if told.get("approved_by") or told.get("approved_at"):
        who, when = told["approved_by"] or "nobody named", told["approved_at"] or "no date"
        yield f"approved  by {escape(who)}, {escape(when)}"
    if told.get("expires"):
        yield f"expires   {escape(told['expires'])}"
    seal = told["sealed"]
    if seal is not None:
        who = f", by {escape(seal['approved_by'])}" if seal["approved_by"] else ""
        yield f"sealed    {seal['plan_hash']} ({escape(seal['how'])}{who}; record {seal['seq']})"


def _scope(scope: Mapping[str, Any], touches: Mapping[str, Any]) -> Iterator[str]:
    counts = {(one["operation"], one["pattern"]): one["files"] for one in touches["patterns"]}
    for name in _ORDER:
        for one in scope[name]:
            pattern = one["from"] if name == "move" else one
            target = f" to {seen(one['to'])}" if name == "move" else ""
            count = counts.get((name, pattern))
            told = "" if count is None else f"  ({_files(count)} now)"
            yield f"{_WORDS.get(name, name).ljust(8)}{seen(pattern)}{target}{told}"


def _touches(touches: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    total, named = touches["files"], touches["named"]
    least = "at least " if touches["broken_off"] else ""
    yield from ("", paint(f"Files it touches now: {least}{total:,}", "bold", colour=colour))
    room = None if width is None else width - len(_INDENT)
    rows = lines(_TOUCHED, map(_touched, named), room, colour=colour) if named else ()
    yield from (f"{_INDENT}{row}" for row in rows)
    if total > len(named):
        yield f"{_INDENT}… and {total - len(named):,} more"


def _touched(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return Cell(seen(one["path"])), Cell(", ".join(_PAST[operation] for operation in one["operations"]), "dim")


def _warning(one: Mapping[str, Any]) -> str:
    where = "" if one["line"] is None else f"line {one['line'] + 1}: "
    return f"{where}{escape(one['message'])} [{one['rule']}]"


def _limits(told: Mapping[str, Any]) -> Iterator[str]:
    for name, count in told["used"].items():
        limit = told["limits"].get(name)
        if limit is not None:
            yield f"{name.ljust(12)}{count:,} of {limit:,} used"
        elif count:
            yield f"{name.ljust(12)}{count:,} used, no limit"
    if not told["limits"]:
        yield "none are set"


def _phase(phase: Mapping[str, Any]) -> Iterator[str]:
    yield f"{seen(phase['phase_id'])}  {escape(phase['objective'])}".rstrip()
    for name in _ORDER if phase["scope"] else ():
        for one in phase["scope"][name]:
            pattern = f"{seen(one['from'])} to {seen(one['to'])}" if name == "move" else seen(one)
            yield f"{_INDENT}{_WORDS.get(name, name).ljust(8)}{pattern}"
    for command in phase["verify"]:
        yield f"{_INDENT}runs    {seen(shlex.join(command))}"


def _policy(policy: Mapping[str, str]) -> str:
    return ", ".join(rule for rule, word in policy.items() if word == "refuse") or "nothing"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
