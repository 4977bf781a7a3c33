"""A review as Markdown. Everything that is not Kaiza's own is in code spans or fences, where nothing becomes alive.

A backslash is not enough: GitHub makes links of addresses and mentions in escaped text, too.
"""

import re
from collections.abc import Iterable, Iterator

from kaiza.domain.review.diff import DiffLine, ReviewDiff
from kaiza.domain.review.phrase import Sentence
from kaiza.domain.review.report import (
    FileReview,
    PlanCard,
    RefusalReview,
    ReviewFinding,
    ReviewReport,
    UngovernedFile,
)
from kaiza.render.terminal import escape, escape_name, format_time

_SIGNS = {"context": " ", "removed": "-", "added": "+"}
_BACKTICKS = re.compile("`+")
_MIN_FENCE = 3
_HOWS = {
    "edited": "by an edit of its file; the name is a claim",
    "command": "by command",
    "merged": "by a merge",
    "signed": "by a signature",
    "unproven": "not proven",
}


def render_markdown(report: ReviewReport) -> Iterator[str]:
    """The lines of the document."""
    counts, source = report.verdict.counts, report.source
    yield from (f"# {report.verdict.sentence}", "", _say(report.verdict.why), "")
    yield from (f"- {chip.text}" for chip in report.verdict.chips)
    yield ""
    yield (
        f"{_count(counts.calls, 'call')}, {_count(counts.changes, 'change')}, {_count(counts.refusals, 'refusal')}, "
        f"+{counts.lines_added:,} -{counts.lines_removed:,} lines"
    )
    yield from _section("Look here first", [line for finding in report.findings for line in _finding_lines(finding)])
    yield from _section("Plan", [line for plan in report.plans for line in _plan_lines(plan)])
    yield from _section("Files changed", [line for file in report.files for line in _file_lines(file)])
    yield from _section("Changed without Kaiza", list(_ungoverned_lines(report)))
    yield from _section("Refused", [_refusal_line(refusal) for refusal in report.refusals])
    yield from _section("What you can do", [_command_line(each.purpose, each.command) for each in report.commands])
    yield from ("", f"Made from {code(source.workspace)} by Kaiza {source.kaiza}, {format_time(source.made_at)},")
    yield f"record {source.head_seq} {code(source.head_hash)}."


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def code(text: str) -> str:
    """A code span that shows a text as it is; control characters by name."""
    shown = escape(text)
    fence = "`" * (max(map(len, _BACKTICKS.findall(shown)), default=0) + 1)
    padding = " " if shown.startswith("`") or shown.endswith("`") or not shown.strip() else ""
    return f"{fence}{padding}{shown}{padding}{fence}"


def fence_lines(lines: Iterable[str]) -> Iterator[str]:
    """A fenced block of lines, longer than any fence in them."""
    shown = ["\t".join(map(escape, line.split("\t"))) for line in lines]
    longest = max((len(run) for line in shown for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(longest + 1, _MIN_FENCE)
    yield from (f"{fence}text", *shown, fence)


def _say(sentence: Sentence) -> str:
    return "".join(code(escape_name(part.text)) if part.is_quoted else part.text for part in sentence)


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"## {title}", "", *lines)


def _finding_lines(finding: ReviewFinding) -> Iterator[str]:
    record = f" (record {finding.link.seq})" if finding.link.seq is not None else ""
    yield f"1. **{finding.title}.** {_say(finding.fact)}{record}"


def _plan_lines(plan: PlanCard) -> Iterator[str]:
    title = f": {code(plan.title)}" if plan.title else ""
    yield f"- {code(plan.plan_id)}{title}"
    if plan.how is None:
        yield "- Not approved by anything that was recorded"
    else:
        name = f" {code(plan.approver)}," if plan.approver else ""
        yield f"- Approved{name} {_HOWS[plan.how]}"
    if plan.plan_hash is not None:
        yield f"- Sealed in record {plan.sealed_seq}: {code(plan.plan_hash)}"
    for row in plan.scope:
        yield f"- {row.label}: {', '.join(map(code, row.patterns))}"
    for limit in plan.limits:
        yield f"- {limit.label}: {limit.used:,} of {limit.allowed:,}"


def _file_lines(file: FileReview) -> Iterator[str]:
    source = f" from {code(escape_name(file.source))}" if file.source else ""
    yield f"### {code(escape_name(file.path))}"
    yield ""
    calls = ", ".join(
        f"{call.seq} {code(call.tool_name)}{' (undone)' if call.is_undone else ''}" for call in file.calls
    )
    yield f"{file.operation}{source}, +{file.lines_added} -{file.lines_removed}, {file.state_words}. Calls: {calls}."
    yield ""
    yield from _diff_lines(file.diff)


def _diff_lines(diff: ReviewDiff) -> Iterator[str]:
    if diff.fold is not None:
        yield from (diff.fold.sentence, "")
    elif diff.hunks:
        yield from fence_lines(_hunk_lines(diff))
        yield ""


def _hunk_lines(diff: ReviewDiff) -> Iterator[str]:
    for hunk in diff.hunks:
        yield f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
        yield from (f"{_author_of(line):>8} {_SIGNS[line.kind]} {_text_of(line)}" for line in hunk.lines)


def _author_of(line: DiffLine) -> str:
    if line.author is None:
        return ""
    if line.author.seq is not None:
        return str(line.author.seq)
    return "no call" if line.author.is_known else "?"


def _text_of(line: DiffLine) -> str:
    more = f" … {line.omitted:,} more characters" if line.omitted else ""
    return f"{line.text}{more}"


def _ungoverned_lines(report: ReviewReport) -> Iterator[str]:
    ungoverned = report.ungoverned
    for file in ungoverned.files:
        yield from _ungoverned_file(file)
    if ungoverned.count > len(ungoverned.files):
        yield f"- and {ungoverned.count - len(ungoverned.files):,} more"
    if ungoverned.manifest is None:
        yield "Other files were not compared: there is no manifest of this session."
    elif ungoverned.manifest == "partial":
        yield f"The comparison is partial: {ungoverned.not_covered:,} files were not compared."


def _ungoverned_file(file: UngovernedFile) -> Iterator[str]:
    source = f" from {code(escape_name(file.source))}" if file.source else ""
    yield f"- {file.change}{source}: {code(escape_name(file.path))}. {file.note}"
    if file.diff.fold is not None:
        yield f"  {file.diff.fold.sentence}"
    elif file.diff.hunks:
        yield ""
        yield from (f"  {line}" for line in fence_lines(_hunk_lines(file.diff)))
        yield ""


def _refusal_line(refusal: RefusalReview) -> str:
    on = f" on {', '.join(code(escape_name(path)) for path in refusal.paths)}" if refusal.paths else ""
    report = refusal.report
    followed = (
        f" Report: record {report.seq}{f', {code(escape_name(report.path))}' if report.path else ''}." if report else ""
    )
    locked = " It locked the role." if refusal.is_locking else ""
    return (
        f"- **{refusal.words}**: {code(refusal.tool_name)}{on}, record {refusal.seq}, {code(refusal.error_code)}. "
        f"{code(refusal.rule)}{locked}{followed}"
    )


def _command_line(purpose: str, command: str) -> str:
    return f"- {purpose}: {code(command)}"
