"""A plan before a person: what it says and touches, with everything that is easily overlooked written out."""

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kaiza.domain.paths.confusables import make_visible
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import QUOTE, escape, paint, wrap

_LIST_COLUMNS = (
    Column("plan", min_width=16),
    Column("status"),
    Column("allows changes", min_width=16),
    Column("used"),
    Column("title", min_width=12),
)
_TOUCHED_COLUMNS = (Column("file", min_width=24, kept_end="end"), Column("may be"))
_PAST_TENSE = {"modify": "modified", "delete": "deleted", "move": "moved"}
_SCOPE_LABELS = {"deny": "never", "unlock": "UNLOCKS"}
_SCOPE_ORDER = ("deny", "modify", "create", "delete", "move", "unlock")
_INDENT = "  "
_DEFAULT_WIDTH = 80
"""Quoted text keeps to so many columns where the reader's are not known."""


def render_list(told: Iterable[Mapping[str, Any]], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """Plans, a line each."""
    return render_table(_LIST_COLUMNS, map(_plan_row, told), width, colour=colour)


def render_plan(told: Mapping[str, Any], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """One plan, whole: its own text first and quoted, the facts last, where a question follows them."""
    title = wrap([f"{escape_visibly(told['plan_id'])}  {escape(told['title'])}"], width)
    yield from (paint(line, "bold", colour=colour) for line in title)
    if "scope" in told:
        yield from _prose_lines(told, width, colour=colour)
        yield from render_change_since_approval(told["difference"], width, colour=colour)
        yield from _permission_lines(told, width, colour=colour)
    errors = (format_finding(told["path"], one) for one in told["findings"] if "scope" not in told)
    yield from render_section("Errors", errors, width, colour=colour)
    yield ""
    yield from wrap(_fact_lines(told), width)


def render_change_since_approval(
    told: Mapping[str, Any] | None, width: int | None, *, colour: bool = False
) -> Iterator[str]:
    """What became of the bytes that were approved."""
    if told is None:
        return
    if told["diff"] is None:
        sentence = "The bytes that were approved are not kept any more, so what changed cannot be shown."
        yield from render_section(
            "Since its approval", [sentence, f"Their hash is {escape(told['approved_hash'])}"], colour=colour
        )
        return
    yield from ("", paint("Since its approval:", "bold", colour=colour))
    yield from render_diff(told["diff"], width or _DEFAULT_WIDTH, QUOTE, colour=colour)
    if told["truncated"]:
        yield "The rest of the difference is not shown: look at the file."


def render_diff(text: str, width: int | None, mark: str = "", *, colour: bool = False) -> Iterator[str]:
    """A diff, line by line, safe to show; each line after the mark."""
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in text.removesuffix("\n").split("\n"):
        for part in wrap([mark + escape(line)], width):
            yield paint(part, styles.get(line[:1], ""), colour=colour)


def format_finding(path: str, told: Mapping[str, Any]) -> str:
    """A finding as editors understand it: lines and columns from 1."""
    place = f"{escape(path)}:{told['line'] + 1}:{told['column'] + 1}"
    return escape(f"{place}: {told['severity']}: {told['message']}. {told['fix']} [{told['rule']}]")


def render_section(
    title: str, told: Iterable[str], width: int | None = None, *, colour: bool, style: str = "bold"
) -> Iterator[str]:
    """Lines under a title; nothing where there are none."""
    rows = list(told)
    if rows:
        yield from ("", paint(f"{title}:", style, colour=colour))
        yield from wrap((f"{_INDENT}{row}".rstrip() for row in rows), width)


def escape_visibly(text: str) -> str:
    """A name or a pattern with everything that does not show, or looks like something else, spelled out."""
    return escape(make_visible(text))


def format_usage(limits: Mapping[str, int], used: Mapping[str, int]) -> str:
    """What was used of what is limited, in a few words."""
    return ", ".join(f"{name} {used[name]}/{limit}" for name, limit in limits.items())


def _plan_row(told: Mapping[str, Any]) -> tuple[Cell, ...]:
    allows = "yes" if told["allows"] else f"no: {told['why_not']}"
    return (
        Cell(escape_visibly(told["plan_id"]), "bold"),
        Cell(escape(told["status"])),
        Cell(escape(allows), "green" if told["allows"] else ""),
        Cell(format_usage(told["limits"], told["used"])),
        Cell(escape(told["title"])),
    )


def _prose_lines(told: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    """The plan's prose, quoted so that no line of it can be taken for a fact."""
    yield from ("", paint("Text:", "bold", colour=colour))
    yield from wrap((QUOTE + escape(line) for line in told["prose"].split("\n")), width or _DEFAULT_WIDTH)
    if told["more_prose"]:
        yield f"{told['more_prose']:,} lines more are in the file and not shown here."


def _permission_lines(told: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    """What the plan allows; what matters most comes last."""
    yield from _touched_lines(told["touches"], width, colour=colour)
    phases = (line for phase in told["phases"] for line in _phase_lines(phase))
    yield from render_section("Phases", phases, width, colour=colour)
    yield from render_section("Limits", _limit_lines(told), colour=colour)
    yield from render_section("Refuses in what is added", [_format_policy(told["policy"])], colour=colour)
    yield from render_section("What it allows", _scope_lines(told["scope"], told["touches"]), width, colour=colour)
    warnings = map(_format_warning, told["warnings"])
    yield from render_section("Look twice", warnings, width, colour=colour, style="yellow")


def _fact_lines(told: Mapping[str, Any]) -> Iterator[str]:
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
        yield f"sealed    {escape(seal['plan_hash'])}"
        yield f"          {escape(seal['how'])}{who}; record {seal['seq']}"
    if "touches" in told:
        least = "at least " if told["touches"]["broken_off"] else ""
        yield f"touches   {least}{_format_file_count(told['touches']['files'])} now"


def _scope_lines(scope: Mapping[str, Any], touches: Mapping[str, Any]) -> Iterator[str]:
    counts = {(one["operation"], one["pattern"]): one["files"] for one in touches["patterns"]}
    for name in _SCOPE_ORDER:
        for one in scope[name]:
            pattern = one["from"] if name == "move" else one
            target = f" to {escape_visibly(one['to'])}" if name == "move" else ""
            count = counts.get((name, pattern))
            told = "" if count is None else f"  ({_format_file_count(count)} now)"
            yield f"{_SCOPE_LABELS.get(name, name).ljust(8)}{escape_visibly(pattern)}{target}{told}"


def _touched_lines(touches: Mapping[str, Any], width: int | None, *, colour: bool) -> Iterator[str]:
    total, named = touches["files"], touches["named"]
    least = "at least " if touches["broken_off"] else ""
    yield from ("", paint(f"Files it touches now: {least}{total:,}", "bold", colour=colour))
    room = None if width is None else width - len(_INDENT)
    rows = render_table(_TOUCHED_COLUMNS, map(_touched_row, named), room, colour=colour) if named else ()
    yield from (f"{_INDENT}{row}" for row in rows)
    if total > len(named):
        yield f"{_INDENT}… and {total - len(named):,} more"


def _touched_row(one: Mapping[str, Any]) -> tuple[Cell, ...]:
    return Cell(escape_visibly(one["path"])), Cell(
        ", ".join(_PAST_TENSE[operation] for operation in one["operations"]), "dim"
    )


def _format_warning(one: Mapping[str, Any]) -> str:
    where = "" if one["line"] is None else f"line {one['line'] + 1}: "
    return f"{where}{escape(one['message'])} [{one['rule']}]"


def _limit_lines(told: Mapping[str, Any]) -> Iterator[str]:
    for name, count in told["used"].items():
        limit = told["limits"].get(name)
        if limit is not None:
            yield f"{name.ljust(12)}{count:,} of {limit:,} used"
        elif count:
            yield f"{name.ljust(12)}{count:,} used, no limit"
    if not told["limits"]:
        yield "none are set"


def _phase_lines(phase: Mapping[str, Any]) -> Iterator[str]:
    yield f"{escape_visibly(phase['phase_id'])}  {escape(phase['objective'])}".rstrip()
    for name in _SCOPE_ORDER if phase["scope"] else ():
        for one in phase["scope"][name]:
            pattern = (
                f"{escape_visibly(one['from'])} to {escape_visibly(one['to'])}"
                if name == "move"
                else escape_visibly(one)
            )
            yield f"{_INDENT}{_SCOPE_LABELS.get(name, name).ljust(8)}{pattern}"
    for command in phase["verify"]:
        yield f"{_INDENT}runs    {escape_visibly(shlex.join(command))}"


def _format_policy(policy: Mapping[str, str]) -> str:
    return ", ".join(rule for rule, word in policy.items() if word == "refuse") or "nothing"


def _format_file_count(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
