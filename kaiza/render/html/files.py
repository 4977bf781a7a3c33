"""Files that calls changed: a tree, the net diff of each, and the diff of each call behind its number.

In a diff each line has its numbers, the call that wrote it, the words that differ, and syntax.
"""

from collections.abc import Iterator
from itertools import pairwise

from kaiza.domain.review.authorship import WITHOUT_KAIZA, LineAuthor
from kaiza.domain.review.diff import DiffHunk, DiffLine, ReviewDiff
from kaiza.domain.review.report import FileReview, ReviewReport
from kaiza.render.html.markup import (
    EMPTY,
    MINUS,
    Html,
    escape,
    join,
    link_record,
    render_counts,
    render_path,
    render_section,
    render_tag,
    tag,
)
from kaiza.render.html.syntax import Span, find_spans
from kaiza.render.terminal import format_count, format_time

_OPERATIONS = {
    "create": ("A", "created"),
    "modify": ("M", "modified"),
    "delete": ("D", "deleted"),
    "move": ("R", "moved"),
    "mode": ("M", "mode changed"),
    "none": ("=", "no change left"),
}
_TONES = {
    "as_left": "ok",
    "put_back": "note",
    "unknown": "warn",
    "changed_since": "warn",
    "changed_by_later_call": "note",
}
_SIGNS = {"context": "", "added": "+", "removed": MINUS}
_WORD_TAGS = {"added": "ins", "removed": "del"}


def file_anchor(report: ReviewReport, path: str) -> str | None:
    """The anchor of a file's diff."""
    return next((f"f-{number}" for number, each in enumerate(report.files) if each.path == path), None)


def render_files(report: ReviewReport) -> Html:
    """The section of all files."""
    if not report.files:
        return render_section("files", "Files changed", "", tag("p", {}, escape("No file was changed.")))
    articles = (_render_file(f"f-{number}", file) for number, file in enumerate(report.files))
    remark = "what is left in the end; each line names the call that wrote it"
    grid = tag("div", {"class": "files"}, _render_tree(report), tag("div", {}, *articles))
    return render_section("files", "Files changed", remark, grid)


def _render_tree(report: ReviewReport) -> Html:
    folders: dict[str, list[Html]] = {}
    for number, file in enumerate(report.files):
        folder, _slash, name = file.path.rpartition("/")
        parts = (_render_letter(file), render_path(name), _render_lines(file))
        folders.setdefault(folder, []).append(tag("li", {}, tag("a", {"href": f"#f-{number}"}, *parts)))
    items = []
    for folder, links in sorted(folders.items()):
        heading = tag("span", {"class": "folder path"}, escape(f"{folder}/")) if folder else EMPTY
        items.append(tag("li", {}, heading, tag("ul", {}, *links)))
    return tag("nav", {"class": "tree", "aria-label": "Changed files"}, tag("ul", {}, *items))


def _render_letter(file: FileReview) -> Html:
    letter, words = _OPERATIONS[file.operation]
    return tag("span", {"class": "letter", "title": words}, escape(letter))


def _render_lines(file: FileReview) -> Html:
    is_known = file.diff.lines_added is not None
    return render_counts(file.lines_added, file.lines_removed) if is_known else render_counts(None, None)


def _render_file(anchor: str, file: FileReview) -> Html:
    title = render_path(file.path)
    if file.source:
        title = join([render_path(file.source), escape(" → "), title])
    state = render_tag(_TONES[file.state], file.state_words)
    if file.diff.hunks or file.diff.fold:
        net = render_diff(file.path, file.diff)
    else:
        words = "Nothing is left of these calls: the file is what it was before."
        net = tag("p", {"class": "note"}, escape(words if file.state == "put_back" else "No line changed."))
    return tag(
        "article",
        {"id": anchor, "class": "file", "tabindex": -1, "aria-label": file.path},
        tag("header", {}, _render_letter(file), tag("h3", {}, title), _render_lines(file), state),
        tag("div", {"class": "calls"}, *_render_calls(file)),
        *_render_notes(file),
        net,
    )


def _render_calls(file: FileReview) -> Iterator[Html]:
    for call in file.calls:
        words = f"{call.tool_name}, {format_time(call.at)}"
        words += ", undone" if call.is_undone else ""
        words += "" if call.is_selected else ", not part of this review"
        # The only call's diff is the net diff already.
        if call.diff == file.diff or not (call.diff.hunks or call.diff.fold):
            yield tag("div", {}, link_record(call.seq), escape(f" {words}"))
        else:
            summary = tag("summary", {}, escape(f"#{call.seq} {words}"))
            record = tag("p", {"class": "note"}, escape("Record "), link_record(call.seq))
            yield tag("details", {}, summary, record, render_diff(file.path, call.diff))


def _render_notes(file: FileReview) -> Iterator[Html]:
    if file.state == "changed_since":
        words = "The lines marked “no call” were written by something else. Kaiza does not know by what, or when."
        yield tag("p", {"class": "note warn"}, escape(words))
    if file.mode_before is not None and file.mode_now is not None and file.mode_before != file.mode_now:
        yield tag("p", {"class": "note"}, escape(f"Mode {file.mode_before:o} → {file.mode_now:o}"))


def render_diff(path: str, diff: ReviewDiff) -> Html:
    """The hunks of a diff, or the reason why they are not shown; a large diff is folded."""
    table = EMPTY
    if diff.hunks:
        hunks = (_render_hunk(path, hunk) for hunk in diff.hunks)
        attributes = {"class": "diff", "tabindex": 0, "role": "group", "aria-label": f"Changes of {path}"}
        body = tag("tbody", {}, *hunks, _render_gap(diff.unchanged_after))
        table = tag("div", attributes, tag("table", {}, body))
    if diff.fold is None:
        return table
    sentence = escape(diff.fold.sentence)
    if not diff.hunks:
        return tag("p", {"class": "note"}, sentence)
    return tag("details", {}, tag("summary", {}, sentence), table)


def _render_hunk(path: str, hunk: DiffHunk) -> Html:
    spans = find_spans(path, hunk.lines)
    rows = [_render_gap(hunk.unchanged_before)]
    author = None
    for line, line_spans in zip(hunk.lines, spans, strict=True):
        # Lines of one call in sequence: the first names it.
        rows.append(_render_line(line, line_spans, EMPTY if line.author == author else _render_author(line.author)))
        author = line.author
    return join(rows)


def _render_gap(count: int) -> Html:
    if not count:
        return EMPTY
    return tag("tr", {"class": "gap"}, tag("td", {"colspan": 5}, escape(format_count(count, "unchanged line"))))


def _render_author(author: LineAuthor | None) -> Html:
    if author is None:
        return EMPTY
    if author.seq is None:
        return escape("no call" if author.is_known else "?")
    return link_record(author.seq)


def _render_line(line: DiffLine, spans: list[Span], author: Html) -> Html:
    name = f"{line.kind} outside" if line.author == WITHOUT_KAIZA else line.kind
    old, new = ("" if number is None else str(number) for number in (line.old_number, line.new_number))
    ending = f" … {format_count(line.omitted, 'character')} more" if line.omitted else ""
    ending += " (no newline at the end)" if line.lacks_newline else ""
    return tag(
        "tr",
        {"class": None if line.kind == "context" else name},
        tag("td", {"class": "no"}, escape(old)),
        tag("td", {"class": "no"}, escape(new)),
        tag("td", {"class": "by"}, author),
        tag("td", {"class": "sign"}, escape(_SIGNS[line.kind])),
        tag("td", {}, *_render_text(line, spans), tag("span", {"class": "soft"}, escape(ending)) if ending else EMPTY),
    )


def _render_text(line: DiffLine, spans: list[Span]) -> Iterator[Html]:
    """The line in pieces: each lies in one token, and in or out of the words that differ."""
    bounds = {0, len(line.text)}
    for start, end, _name in spans:
        bounds.update((start, end))
    for start, end in line.words:
        bounds.update((start, end))
    for start, end in pairwise(sorted(bounds)):
        piece = escape(line.text[start:end])
        name = next((name for first, last, name in spans if first <= start and end <= last), None)
        if name:
            piece = tag("span", {"class": name}, piece)
        if any(first <= start and end <= last for first, last in line.words):
            piece = tag(_WORD_TAGS[line.kind], {}, piece)
        yield piece
