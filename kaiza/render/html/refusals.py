"""Refused calls and changes without Kaiza."""

from collections.abc import Sequence

from kaiza.domain.review.report import RefusalReview, ReviewReport, UngovernedFile, UngovernedReview
from kaiza.render.html.diff_table import render_diff
from kaiza.render.html.markup import EMPTY, Html, escape, join, tag
from kaiza.render.html.parts import (
    file_id,
    link_record,
    render_counts,
    render_path,
    render_section,
    render_table,
    render_tag,
)
from kaiza.render.terminal import format_count, format_time

_SHOWN_REFUSALS = 500


def render_ungoverned(report: ReviewReport) -> Html:
    """Files that changed without Kaiza, with their diffs where the old content is known."""
    ungoverned = report.ungoverned
    remark = _describe_coverage(ungoverned)
    if not ungoverned.files:
        words = "Nothing changed without Kaiza." if ungoverned.manifest == "whole" else "No change is known."
        return render_section("outside", "Changed without Kaiza", remark, tag("p", {}, escape(words)))
    titles = ("What", "File", "Lines", "Note")
    table = render_table(titles, (_render_row(each) for each in ungoverned.files))
    more = ungoverned.count - len(ungoverned.files)
    rest = tag("p", {"class": "soft"}, escape(f"and {format_count(more, 'more file')}")) if more > 0 else EMPTY
    diffs = (_render_file(each, file_id(report, each.path)) for each in ungoverned.files)
    return render_section("outside", "Changed without Kaiza", remark, table, rest, *diffs)


def render_refusals(refusals: Sequence[RefusalReview]) -> Html:
    """Refused calls in words, the gravest first."""
    if not refusals:
        return render_section("refusals", "Refused", "", tag("p", {}, escape("No call was refused.")))
    titles = ("Why", "What was asked", "What the agent was answered", "Code", "Record")
    table = render_table(titles, (_render_refusal(refusal) for refusal in refusals[:_SHOWN_REFUSALS]))
    remark = f"{format_count(len(refusals), 'call')}; none of them changed a file"
    more = len(refusals) - _SHOWN_REFUSALS
    words = f"and {more:,} more, less grave: choose Refusals in the list of records"
    rest = tag("p", {"class": "soft"}, escape(words)) if more > 0 else EMPTY
    return render_section("refusals", "Refused", remark, table, rest)


def _describe_coverage(ungoverned: UngovernedReview) -> str:
    if ungoverned.manifest is None:
        return "not known: no earlier state of the workspace to compare with"
    compared = f"{ungoverned.compared:,} files and directories compared with the begin"
    since = f"{compared}, {format_time(ungoverned.compared_since)}" if ungoverned.compared_since else compared
    if ungoverned.manifest == "partial":
        return f"{since}; not complete: {format_count(ungoverned.not_covered, 'file')} could not be compared"
    return since


def _render_row(each: UngovernedFile) -> tuple[Html, ...]:
    path = render_path(each.path)
    if each.source:
        path = join([render_path(each.source), escape(" → "), path])
    tone = "bad" if each.is_in_scope or each.is_over_governed else "warn"
    return (
        render_tag(tone, each.change),
        path,
        render_counts(each.diff.lines_added, each.diff.lines_removed),
        escape(each.note),
    )


def _render_file(each: UngovernedFile, shown_at: str | None) -> Html:
    if not each.diff.hunks:
        return EMPTY
    if each.is_over_governed and shown_at is not None:  # the same lines are in the file's own diff
        link = tag("a", {"href": f"#{shown_at}"}, escape("shown with the file's other changes"))
        return tag("p", {"class": "note"}, render_path(each.path), escape(": "), link)
    header = tag("header", {}, tag("h3", {}, render_path(each.path)), render_tag("warn", "no call"))
    return tag("article", {"class": "file"}, header, render_diff(each.path, each.diff))


def _render_refusal(refusal: RefusalReview) -> tuple[Html, ...]:
    asked = join([escape(f"{refusal.tool_name} "), *(join([render_path(path), escape(" ")]) for path in refusal.paths)])
    return (
        render_tag(refusal.tone, refusal.words),
        asked,
        join([escape(refusal.rule), _render_report(refusal)]),
        tag("code", {"class": "code"}, escape(refusal.error_code)),
        link_record(refusal.seq),
    )


def _render_report(refusal: RefusalReview) -> Html:
    report = refusal.report
    if report is None:
        return escape(" Not reported.") if refusal.is_locking else EMPTY
    path = [escape(" "), render_path(report.path)] if report.path else []
    words = join([escape(" The agent reported it in "), link_record(report.seq), *path])
    if report.text is None:
        return words
    lines = (escape(line) for line in report.text.split("\n"))
    text = tag("pre", {"class": "report"}, join(lines, Html("\n")))
    return join([words, tag("details", {}, tag("summary", {}, escape("What it says")), text)])
