"""Plans for people: a list, and one plan with everything that is easily overlooked spelled out.

Whatever an agent wrote is quoted or wrapped with a mark, so that no line of it can imitate Kaiza's own.
"""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kaiza.domain.paths.confusables import make_visible
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import INDENT, QUOTE, escape, format_count, format_time, paint, wrap

_LIST_COLUMNS = (
    Column("plan"),
    Column("status"),
    Column("allows changes", moves_below=True),
    Column("used", moves_below=True),
    Column("title", moves_below=True),
)
_TOUCHED_COLUMNS = (Column("file", is_whole=True), Column("may be", moves_below=True))
_PAST_TENSE = {"modify": "modified", "delete": "deleted", "move": "moved"}
_SCOPE_LABELS = {"deny": "never", "unlock": "UNLOCKS"}
_SCOPE_ORDER = ("deny", "modify", "create", "delete", "move", "unlock")
_DEFAULT_WIDTH = 80
"""Columns of quoted text where the reader's terminal is not known."""


def render_list(plans: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One row for each plan of `plan list --json`."""
    return render_table(_LIST_COLUMNS, map(_plan_row, plans), width, colour=colour)


def _plan_row(plan: Mapping[str, Any]) -> tuple[Cell, ...]:
    allows = "yes" if plan["allows"] else f"no: {plan['why_not']}"
    return (
        Cell(escape_visibly(plan["plan_id"]), "bold"),
        Cell(escape(plan["status"])),
        Cell(escape(allows), "green" if plan["allows"] else ""),
        # Each limit and what was used of it: `files 1/3, lines 20/40`.
        Cell(", ".join(f"{name} {plan['used'][name]}/{limit}" for name, limit in plan["limits"].items())),
        Cell(escape(plan["title"])),
    )


def render_plan(plan: Mapping[str, Any], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One plan: its own text first and quoted, the facts last, because a question may follow them."""
    title = wrap([f"{escape_visibly(plan['plan_id'])}  {escape(plan['title'])}"], width)
    yield from (paint(line, "bold", colour=colour) for line in title)
    if "scope" in plan:
        yield from ("", paint("Text:", "bold", colour=colour))
        yield from wrap((QUOTE + escape(line) for line in plan["prose"].split("\n")), width or _DEFAULT_WIDTH)
        if plan["more_prose"]:
            yield f"{plan['more_prose']:,} more lines are in the file and not shown here."
        yield from _render_change(plan["difference"], "Changed since approval", width, colour=colour)
        yield from _render_change(plan.get("draft_difference"), "Changed since the draft", width, colour=colour)
        yield from _permission_lines(plan, width, colour=colour)
    errors = (format_finding(plan["path"], one) for one in plan["findings"] if "scope" not in plan)
    yield from render_section("Errors", errors, width, colour=colour)
    yield ""
    yield from wrap(_fact_lines(plan), width)


def _render_change(
    difference: Mapping[str, Any] | None, title: str, width: int | None, *, colour: bool
) -> Iterator[str]:
    if difference is None:
        return
    if difference["diff"] is None:
        lines = ["The approved content is no longer stored, so the difference cannot be shown."]
        lines.append(f"Its hash: {escape(difference['approved_hash'])}")
        yield from render_section(title, lines, width, colour=colour)
        return
    yield from ("", paint(f"{title}:", "bold", colour=colour))
    yield from render_diff(difference["diff"], width or _DEFAULT_WIDTH, QUOTE, colour=colour)
    if difference["truncated"]:
        yield "The rest of the difference is not shown. Read the file."


def render_diff(text: str, width: int | None, mark: str = "", *, colour: bool = False) -> Iterator[str]:
    """A diff, escaped and wrapped; each line begins with `mark`."""
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in text.removesuffix("\n").split("\n"):
        for part in wrap([mark + escape(line)], width):
            yield paint(part, styles.get(line[:1], ""), colour=colour)


def format_finding(path: str, finding: Mapping[str, Any]) -> str:
    """A finding in the form that editors parse; lines and columns count from 1."""
    place = f"{escape(path)}:{finding['line'] + 1}:{finding['column'] + 1}"
    return escape(f"{place}: {finding['severity']}: {finding['message']}. {finding['fix']} [{finding['rule']}]")


def render_section(
    title: str, lines: Iterable[str], width: int | None = None, *, colour: bool, style: str = "bold"
) -> Iterator[str]:
    """Lines under a title; nothing if there are no lines."""
    rows = list(lines)
    if rows:
        yield from ("", paint(f"{title}:", style, colour=colour))
        yield from wrap((f"{INDENT}{row}".rstrip() for row in rows), width)


def escape_visibly(text: str) -> str:
    """A name or a pattern with invisible and lookalike characters spelled out."""
    return escape(make_visible(text))


def _permission_lines(plan: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    """What the plan allows. The scope and the warnings come last: they are still on the screen at the question."""
    yield from _touched_lines(plan["touches"], width, colour=colour)
    phases = (line for phase in plan["phases"] for line in _phase_lines(phase))
    yield from render_section("Phases", phases, width, colour=colour)
    yield from render_section("Limits", _limit_lines(plan), width, colour=colour)
    checks = ", ".join(rule for rule, action in plan["policy"].items() if action == "refuse") or "none"
    yield from render_section("Content checks", [checks], colour=colour)
    counts = {(one["operation"], one["pattern"]): one["files"] for one in plan["touches"]["patterns"]}
    yield from render_section("What it allows", _scope_lines(plan["scope"], counts), width, colour=colour)
    warnings = (
        ("" if one["line"] is None else f"line {one['line'] + 1}: ") + f"{escape(one['message'])} [{one['rule']}]"
        for one in plan["warnings"]
    )
    yield from render_section("Warnings", warnings, width, colour=colour, style="yellow")


def _touched_lines(touches: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    total, named = touches["files"], touches["named"]
    least = "at least " if touches["broken_off"] else ""
    yield from ("", paint(f"Files in scope now: {least}{total:,}", "bold", colour=colour))
    if named:
        operations = (", ".join(_PAST_TENSE[operation] for operation in file["operations"]) for file in named)
        paths = (escape_visibly(file["path"]) for file in named)
        cells = ((Cell(path), Cell(words, "dim")) for path, words in zip(paths, operations, strict=True))
        room = None if width is None else width - len(INDENT)
        yield from (f"{INDENT}{row}" for row in render_table(_TOUCHED_COLUMNS, cells, room, colour=colour))
    if total > len(named):
        yield f"{INDENT}… and {total - len(named):,} more"


def _phase_lines(phase: Mapping[str, Any]) -> Iterator[str]:
    yield f"{escape_visibly(phase['phase_id'])}  {escape(phase['objective'])}".rstrip()
    yield from (f"{INDENT}{line}" for line in _scope_lines(phase["scope"], {}))
    yield from (f"{INDENT}runs    {escape_visibly(shlex.join(command))}" for command in phase["verify"])


def _limit_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    for name, count in plan["used"].items():
        limit = plan["limits"].get(name)
        if limit is not None:
            yield f"{name.ljust(12)}{count:,} of {limit:,} used"
        elif count:
            yield f"{name.ljust(12)}{count:,} used, no limit"
    if not plan["limits"]:
        yield "none"


def _scope_lines(scope: Mapping[str, Any] | None, counts: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """Each pattern with its operation, and how many files it matches where that is known."""
    for name in _SCOPE_ORDER if scope else ():
        for one in scope[name] if scope else ():
            pattern = one["from"] if name == "move" else one
            target = f" to {escape_visibly(one['to'])}" if name == "move" else ""
            count = counts.get((name, pattern))
            matches = "" if count is None else f"  ({format_count(count, 'file')} now)"
            yield f"{_SCOPE_LABELS.get(name, name).ljust(8)}{escape_visibly(pattern)}{target}{matches}"


def _fact_lines(plan: Mapping[str, Any]) -> Iterator[str]:
    now = "allows changes now" if plan["allows"] else f"allows no changes now: {plan['why_not']}"
    yield f"status    {escape(plan['status'])}; {escape(now)}"
    yield f"hash      {plan['plan_hash']}"
    if "author" in plan:
        yield f"author    {escape(plan['author'])}, {format_time(plan['created'])}"
    if plan.get("approved_by") or plan.get("approved_at"):
        person, date = plan["approved_by"] or "no name given", plan["approved_at"] or "no date"
        yield f"approved  by {escape(person)}, {format_time(date)}"
    if plan.get("expires"):
        yield f"expires   {format_time(plan['expires'])}"
    seal = plan["sealed"]
    if seal is not None:
        by = f", by {escape(seal['approved_by'])}" if seal["approved_by"] else ""
        yield f"sealed    {escape(seal['plan_hash'])}"
        yield f"          {escape(seal['how'])}{by}; record {seal['seq']}"
    if "touches" in plan:
        least = "at least " if plan["touches"]["broken_off"] else ""
        yield f"in scope  {least}{format_count(plan['touches']['files'], 'file')} now"
