"""A review as Markdown. Everything that is not Kaiza's own is in code spans or fences, where nothing becomes alive.

A backslash is not enough: GitHub makes links of addresses and mentions in escaped text as well.
"""

import re
from collections.abc import Iterable, Iterator

from kaiza.domain.review.diff import ReviewDiff
from kaiza.domain.review.report import (
    APPROVAL_WORDS,
    FileReview,
    PlanCard,
    RefusalReview,
    ReviewFinding,
    ReviewReport,
    UngovernedReview,
)
from kaiza.domain.review.sentence import Sentence
from kaiza.render.terminal import escape, escape_name, format_count, format_time

_SIGNS = {"context": " ", "removed": "-", "added": "+"}
_BACKTICKS = re.compile("`+")
_MIN_FENCE = 3


def render_markdown(report: ReviewReport) -> Iterator[str]:
    """The lines of the document."""
    counts, source = report.verdict.counts, report.source
    yield from (f"# {report.verdict.sentence}", "", _say(report.verdict.why), "")
    yield from (f"- {chip.text}" for chip in report.verdict.chips)
    yield ""
    calls, changes = format_count(counts.calls, "call"), format_count(counts.changes, "change")
    lines = f"+{counts.lines_added:,} -{counts.lines_removed:,} lines"
    yield f"{calls}, {changes}, {format_count(counts.refusals, 'refusal')}, {lines}"
    yield from _section("Look here first", map(_finding_line, report.findings))
    yield from _section("Plan", (line for plan in report.plans for line in _plan_lines(plan)))
    yield from _section("Files changed", (line for file in report.files for line in _file_lines(file)))
    yield from _section("Changed without Kaiza", _ungoverned_lines(report.ungoverned))
    yield from _section("Refused", map(_refusal_line, report.refusals))
    yield from _section("What you can do", (f"- {each.purpose}: {code(each.command)}" for each in report.commands))
    yield from ("", f"Made from {code(source.workspace)} by Kaiza {source.kaiza}, {format_time(source.made_at)},")
    yield f"record {source.head_seq} {code(source.head_hash)}."


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
    return "".join(code(escape_name(phrase.text)) if phrase.is_quoted else phrase.text for phrase in sentence.phrases)


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """Lines under a title; nothing if there are no lines."""
    listed = list(lines)
    if listed:
        yield from ("", f"## {title}", "", *listed)


def _finding_line(finding: ReviewFinding) -> str:
    record = f" (record {finding.link.seq})" if finding.link.seq is not None else ""
    return f"1. **{finding.title}.** {_say(finding.fact)}{record}"


def _plan_lines(plan: PlanCard) -> Iterator[str]:
    title = f": {code(plan.title)}" if plan.title else ""
    yield f"- {code(plan.plan_id)}{title}"
    if plan.how is None:
        yield "- Not approved by anything that was recorded"
    else:
        name = f" {code(plan.approver)}," if plan.approver else ""
        doubt = "; the name is a claim" if plan.how == "edited" else ""
        yield f"- Approved{name} {APPROVAL_WORDS[plan.how].way}{doubt}"
    if plan.plan_hash is not None:
        yield f"- Sealed in record {plan.sealed_seq}: {code(plan.plan_hash)}"
    yield from (f"- {label}: {', '.join(map(code, patterns))}" for label, patterns in plan.scope.items())
    yield from (f"- {limit.label}: {limit.used:,} of {limit.allowed:,}" for limit in plan.limits)


def _file_lines(file: FileReview) -> Iterator[str]:
    source = f" from {code(escape_name(file.source))}" if file.source else ""
    calls = ", ".join(
        f"{call.seq} {code(call.tool_name)}{' (undone)' if call.is_undone else ''}" for call in file.calls
    )
    yield from (f"### {code(escape_name(file.path))}", "")
    yield f"{file.operation}{source}, +{file.lines_added} -{file.lines_removed}, {file.state_words}. Calls: {calls}."
    yield ""
    if file.diff.fold is not None:
        yield from (file.diff.fold.sentence, "")
    elif file.diff.hunks:
        yield from (*fence_lines(_hunk_lines(file.diff)), "")


def _hunk_lines(diff: ReviewDiff) -> Iterator[str]:
    for hunk in diff.hunks:
        yield f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@"
        for line in hunk.lines:
            by, author = "", line.author
            if author is not None:
                by = str(author.seq) if author.seq is not None else "no call" if author.is_known else "?"
            more = f" … {line.omitted:,} more characters" if line.omitted else ""
            yield f"{by:>8} {_SIGNS[line.kind]} {line.text}{more}"


def _ungoverned_lines(ungoverned: UngovernedReview) -> Iterator[str]:
    for file in ungoverned.files:
        source = f" from {code(escape_name(file.source))}" if file.source else ""
        yield f"- {file.change}{source}: {code(escape_name(file.path))}. {file.note}"
        if file.diff.fold is not None:
            yield f"  {file.diff.fold.sentence}"
        elif file.diff.hunks:
            yield from ("", *(f"  {line}" for line in fence_lines(_hunk_lines(file.diff))), "")
    if ungoverned.count > len(ungoverned.files):
        yield f"- and {ungoverned.count - len(ungoverned.files):,} more"
    if ungoverned.manifest is None:
        yield "Other files were not compared: there is no manifest of this session."
    elif ungoverned.manifest == "partial":
        yield f"The comparison is partial: {ungoverned.not_covered:,} files were not compared."


def _refusal_line(refusal: RefusalReview) -> str:
    on = f" on {', '.join(code(escape_name(path)) for path in refusal.paths)}" if refusal.paths else ""
    report = refusal.report
    written = f", {code(escape_name(report.path))}" if report and report.path else ""
    followed = f" Report: record {report.seq}{written}." if report else ""
    locked = " It locked the role." if refusal.is_locking else ""
    return (
        f"- **{refusal.words}**: {code(refusal.tool_name)}{on}, record {refusal.seq}, {code(refusal.error_code)}. "
        f"{code(refusal.rule)}{locked}{followed}"
    )
