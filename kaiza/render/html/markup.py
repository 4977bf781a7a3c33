"""HTML text, made only by `escape` and `tag`, so that mypy finds every string that is not escaped.

A tag's name and the names of its attributes come from this package; texts and the values of attributes come from
anywhere. The pieces that several sections of the page share are here too.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NewType

from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.review.sentence import Sentence
from kaiza.render import terminal

Html = NewType("Html", str)

EMPTY = Html("")
MINUS = "\N{MINUS SIGN}"
_NAME = re.compile(r"[a-z][a-z0-9-]*|viewBox")
_VOID = frozenset({"meta", "br", "input"})
_PLAIN_LINE = re.compile(r"[\t -~]*")


def escape(text: str) -> Html:
    """Text of a page; characters that are invisible, control or reorder are shown by their code points."""
    if _PLAIN_LINE.fullmatch(text):
        return Html(html.escape(text))
    return Html("".join(_escape_character(char) for char in text))


def _escape_character(char: str) -> str:
    if char == "\t" or terminal.is_plain(char):
        return html.escape(char)
    return f'<span class="ctl">{terminal.code_point_of(char)}</span>'


def escape_plain(text: str) -> Html:
    """The same without elements, for a place that can hold none, such as the title."""
    return Html(html.escape(terminal.escape(text)))


def tag(name: str, attributes: Mapping[str, object], *children: Html) -> Html:
    """An element. An attribute that is None is left out.

    The policy of the page allows no inline style and no inline handler, so neither can be made here.
    """
    given = ((_checked(key), str(value)) for key, value in attributes.items() if value is not None)
    opening = f"<{_checked(name)}" + "".join(f' {key}="{escape_plain(value)}"' for key, value in given) + ">"
    return Html(opening if name in _VOID else f"{opening}{''.join(children)}</{name}>")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "style" or name.startswith("on"):
        raise ValueError(f"{name!r} cannot be the name of an element or attribute")
    return name


def join(parts: Iterable[Html], separator: Html = EMPTY) -> Html:
    """Several pieces, one after another."""
    return Html(separator.join(parts))


def script_data(identifier: str, value: object) -> Html:
    """JSON for the page's script: ASCII without `<`, `>` and `&`, so that no content ends the element."""
    text = json.dumps(value, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script id="{_checked(identifier)}" type="application/json">{safe}</script>')


def render_section(identifier: str, title: str, remark: str, *children: Html) -> Html:
    """One card of the page with its heading. It can take the focus, so that keys lead to it."""
    small = tag("small", {}, escape(remark)) if remark else EMPTY
    heading = tag("h2", {"id": f"{identifier}-title"}, escape(title), small)
    attributes = {"id": identifier, "class": "card", "tabindex": -1, "aria-labelledby": f"{identifier}-title"}
    return tag("section", attributes, heading, *children)


def render_sentence(sentence: Sentence) -> Html:
    """A sentence; what is quoted in it, and Kaiza's own words between backticks, is set as code."""
    parts: list[Html] = []
    for phrase in sentence.phrases:
        pieces = ["", phrase.text] if phrase.is_quoted else phrase.text.split("`")
        parts += [tag("code", {}, escape(text)) if at % 2 else escape(text) for at, text in enumerate(pieces)]
    return join(parts)


def render_path(path: str) -> Html:
    """A path, kept from reordering what is beside it."""
    return tag("code", {"class": "path"}, escape(escape_name(path)))


def link_record(seq: int) -> Html:
    """A link to a record by its number."""
    return tag("a", {"href": f"#r-{seq}"}, escape(f"#{seq}"))


def render_facts(rows: Iterable[tuple[Html, Html]], name: str | None = None) -> Html:
    """A list of terms and what they are."""
    return tag("dl", {"class": name}, *(join([tag("dt", {}, term), tag("dd", {}, value)]) for term, value in rows))


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
