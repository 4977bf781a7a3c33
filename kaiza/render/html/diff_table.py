"""Table of one diff: line numbers, the call that wrote each line, words that differ, syntax."""

from itertools import pairwise

from kaiza.domain.review.diff import WITHOUT_KAIZA, DiffHunk, DiffLine, LineAuthor, ReviewDiff
from kaiza.render.html.markup import EMPTY, Html, escape, join, tag
from kaiza.render.html.parts import MINUS, link_record
from kaiza.render.html.syntax import Span, find_spans
from kaiza.render.terminal import format_count

_SIGNS = {"context": "", "added": "+", "removed": MINUS}
_WORD_TAGS = {"added": "ins", "removed": "del"}


def render_diff(path: str, diff: ReviewDiff) -> Html:
    """The hunks of a diff, or the reason why they are not shown; a large diff is folded."""
    table = _render_table(path, diff) if diff.hunks else EMPTY
    if diff.fold is None:
        return table
    sentence = escape(diff.fold.sentence)
    if not diff.hunks:
        return tag("p", {"class": "note"}, sentence)
    return tag("details", {}, tag("summary", {}, sentence), table)


def _render_table(path: str, diff: ReviewDiff) -> Html:
    hunks = [_render_hunk(path, hunk) for hunk in diff.hunks]
    rows = tag("tbody", {}, *hunks, _render_gap(diff.unchanged_after))
    attributes = {"class": "diff", "tabindex": 0, "role": "group", "aria-label": f"Changes of {path}"}
    return tag("div", attributes, tag("table", {}, rows))


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
    words = escape(f"{format_count(count, 'unchanged line')}")
    return tag("tr", {"class": "gap"}, tag("td", {"colspan": 5}, words))


def _render_line(line: DiffLine, spans: list[Span], author: Html) -> Html:
    is_outside = line.author == WITHOUT_KAIZA
    name = None if line.kind == "context" else f"{line.kind} outside" if is_outside else line.kind
    return tag(
        "tr",
        {"class": name},
        _render_number(line.old_number),
        _render_number(line.new_number),
        tag("td", {"class": "by"}, author),
        tag("td", {"class": "sign"}, escape(_SIGNS[line.kind])),
        tag("td", {}, *_render_text(line, spans), _render_ending(line)),
    )


def _render_number(number: int | None) -> Html:
    return tag("td", {"class": "no"}, escape("" if number is None else str(number)))


def _render_author(author: LineAuthor | None) -> Html:
    if author is None:
        return EMPTY
    if author.seq is None:
        return escape("no call" if author.is_known else "?")
    return link_record(author.seq)


def _render_text(line: DiffLine, spans: list[Span]) -> list[Html]:
    """The line in pieces: each lies in one token, and in or out of the words that differ."""
    bounds = {0, len(line.text)}
    for start, end, _name in spans:
        bounds.update((start, end))
    for start, end in line.words:
        bounds.update((start, end))
    edges = sorted(bounds)
    return [_render_piece(line, spans, *piece) for piece in pairwise(edges)]


def _render_piece(line: DiffLine, spans: list[Span], start: int, end: int) -> Html:
    piece = escape(line.text[start:end])
    name = next((name for first, last, name in spans if first <= start and end <= last), None)
    if name:
        piece = tag("span", {"class": name}, piece)
    if any(first <= start and end <= last for first, last in line.words):
        piece = tag(_WORD_TAGS[line.kind], {}, piece)
    return piece


def _render_ending(line: DiffLine) -> Html:
    words = f" … {format_count(line.omitted, 'character')} more" if line.omitted else ""
    if line.lacks_newline:
        words += " (no newline at the end)"
    return tag("span", {"class": "soft"}, escape(words)) if words else EMPTY
