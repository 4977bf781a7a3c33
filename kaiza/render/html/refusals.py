"""Refused calls and changes without Kaiza."""

from collections.abc import Iterator, Sequence

from kaiza.domain.review.report import RefusalReview, ReviewReport, UngovernedFile, UngovernedReview
from kaiza.render.html.files import file_anchor, render_diff
from kaiza.render.html.markup import (
    EMPTY,
    Html,
    escape,
    join,
    link_record,
    render_counts,
    render_path,
    render_section,
    render_table,
    render_tag,
    tag,
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
    table = render_table(("What", "File", "Lines", "Note"), map(_ungoverned_row, ungoverned.files))
    more = ungoverned.count - len(ungoverned.files)
    rest = tag("p", {"class": "soft"}, escape(f"and {format_count(more, 'more file')}")) if more > 0 else EMPTY
    diffs = (_render_change(report, file) for file in ungoverned.files)
    return render_section("outside", "Changed without Kaiza", remark, table, rest, *diffs)


def _describe_coverage(ungoverned: UngovernedReview) -> str:
    if ungoverned.manifest is None:
        return "not known: no earlier state of the workspace to compare with"
    compared = f"{ungoverned.compared:,} files and directories compared with the begin"
    since = f", {format_time(ungoverned.compared_since)}" if ungoverned.compared_since else ""
    gap = ""
    if ungoverned.manifest == "partial":
        gap = f"; not complete: {format_count(ungoverned.not_covered, 'file')} could not be compared"
    return compared + since + gap


def _ungoverned_row(file: UngovernedFile) -> tuple[Html, ...]:
    path = render_path(file.path)
    if file.source:
        path = join([render_path(file.source), escape(" → "), path])
    return (
        render_tag("bad" if file.is_in_scope or file.is_over_governed else "warn", file.change),
        path,
        render_counts(file.diff.lines_added, file.diff.lines_removed),
        escape(file.note),
    )


def _render_change(report: ReviewReport, file: UngovernedFile) -> Html:
    if not file.diff.hunks:
        return EMPTY
    anchor = file_anchor(report, file.path)
    if file.is_over_governed and anchor is not None:  # the same lines are in the file's own diff
        link = tag("a", {"href": f"#{anchor}"}, escape("shown with the file's other changes"))
        return tag("p", {"class": "note"}, render_path(file.path), escape(": "), link)
    header = tag("header", {}, tag("h3", {}, render_path(file.path)), render_tag("warn", "no call"))
    return tag("article", {"class": "file"}, header, render_diff(file.path, file.diff))


def render_refusals(refusals: Sequence[RefusalReview]) -> Html:
    """Refused calls in words, the gravest first."""
    if not refusals:
        return render_section("refusals", "Refused", "", tag("p", {}, escape("No call was refused.")))
    titles = ("Why", "What was asked", "What the agent was answered", "Code", "Record")
    table = render_table(titles, map(_refusal_row, refusals[:_SHOWN_REFUSALS]))
    remark = f"{format_count(len(refusals), 'call')}; none of them changed a file"
    more = len(refusals) - _SHOWN_REFUSALS
    words = f"and {more:,} more, less grave: choose Refusals in the list of records"
    rest = tag("p", {"class": "soft"}, escape(words)) if more > 0 else EMPTY
    return render_section("refusals", "Refused", remark, table, rest)


def _refusal_row(refusal: RefusalReview) -> tuple[Html, ...]:
    paths = (join([render_path(path), escape(" ")]) for path in refusal.paths)
    return (
        render_tag(refusal.tone, refusal.words),
        join([escape(f"{refusal.tool_name} "), *paths]),
        join([escape(refusal.rule), *_render_report(refusal)]),
        tag("code", {"class": "code"}, escape(refusal.error_code)),
        link_record(refusal.seq),
    )


def _render_report(refusal: RefusalReview) -> Iterator[Html]:
    """What the agent reported after the refusal, if that locked its role."""
    report = refusal.report
    if report is None:
        yield escape(" Not reported." if refusal.is_locking else "")
        return
    yield from (escape(" The agent reported it in "), link_record(report.seq))
    if report.path:
        yield from (escape(" "), render_path(report.path))
    if report.text is not None:
        lines = (escape(line) for line in report.text.split("\n"))
        text = tag("pre", {"class": "report"}, join(lines, Html("\n")))
        yield tag("details", {}, tag("summary", {}, escape("What it says")), text)
