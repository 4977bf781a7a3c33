"""Pieces that several sections of the review page share: sentences, links to records and files, tables."""

from collections.abc import Iterable, Sequence

from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.review.phrase import Sentence
from kaiza.domain.review.report import LinkTarget, ReviewReport
from kaiza.render.html.markup import EMPTY, Html, escape, join, tag

_SECTION_IDS = {"ungoverned": "outside"}
MINUS = "\N{MINUS SIGN}"


def render_section(identifier: str, title: str, remark: str, *children: Html) -> Html:
    """One card of the page with its heading. It can take the focus, so that keys lead to it."""
    small = tag("small", {}, escape(remark)) if remark else EMPTY
    heading = tag("h2", {"id": f"{identifier}-title"}, escape(title), small)
    attributes = {"id": identifier, "class": "card", "tabindex": -1, "aria-labelledby": f"{identifier}-title"}
    return tag("section", attributes, heading, *children)


def render_sentence(sentence: Sentence) -> Html:
    """A sentence; what is quoted in it, and Kaiza's own words between backticks, is set as code."""
    return join(tag("code", {}, escape(part.text)) if part.is_quoted else _render_words(part.text) for part in sentence)


def _render_words(text: str) -> Html:
    pieces = (escape(piece) for piece in text.split("`"))
    return join(tag("code", {}, piece) if number % 2 else piece for number, piece in enumerate(pieces))


def render_path(path: str) -> Html:
    """A path, kept from reordering what is beside it."""
    return tag("code", {"class": "path"}, escape(escape_name(path)))


def link_record(seq: int) -> Html:
    """A link to a record by its number."""
    return tag("a", {"href": f"#r-{seq}"}, escape(f"#{seq}"))


def file_id(report: ReviewReport, path: str) -> str | None:
    """The anchor of a file's diff."""
    return next((f"f-{number}" for number, each in enumerate(report.files) if each.path == path), None)


def render_link(report: ReviewReport, link: LinkTarget) -> Html:
    """The link of a finding: to a record, a file, or a section."""
    target = f"r-{link.seq}" if link.seq is not None else None
    target = target or (file_id(report, link.path) if link.path is not None else None)
    return tag("a", {"class": "go", "href": f"#{target or section_id(link.section)}"}, escape(link.label))


def section_id(section: str) -> str:
    """The anchor of a section of the report."""
    return _SECTION_IDS.get(section, section)


def render_table(titles: Sequence[str], rows: Iterable[Sequence[Html]]) -> Html:
    """A table whose cells become lines of their own on a narrow screen."""
    head = tag("thead", {}, tag("tr", {}, *(tag("th", {"scope": "col"}, escape(title)) for title in titles)))
    body = tag("tbody", {}, *(tag("tr", {}, *(tag("td", {}, cell) for cell in row)) for row in rows))
    return tag("table", {"class": "list"}, head, body)


def render_tag(tone: str, words: str) -> Html:
    """A short state in a coloured box; the words say it, the colour repeats it."""
    return tag("span", {"class": f"tag {css_tone(tone)}"}, escape(words))


def css_tone(tone: str) -> str:
    """The class of a tone."""
    return {"ok": "good", "note": "plain"}.get(tone, tone)


def render_counts(added: int | None, removed: int | None) -> Html:
    """Lines added and removed; nothing where they are not known."""
    if added is None or removed is None:
        return tag("span", {})
    plus = tag("span", {"class": "plus"}, escape(f"+{added:,}"))
    return tag("span", {}, plus, escape(" "), tag("span", {"class": "minus"}, escape(f"{MINUS}{removed:,}")))
