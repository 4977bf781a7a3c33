"""HTML text, made only by `escape` and `tag`, so that mypy finds every string that is not escaped.

A tag's name and the names of its attributes come from this package; texts and the values of attributes come from
anywhere.
"""

import html
import json
import re
from collections.abc import Iterable, Mapping
from typing import NewType

from kaiza.render import terminal

Html = NewType("Html", str)

EMPTY = Html("")
_NAME = re.compile(r"[a-z][a-z0-9-]*|viewBox")
_VOID = frozenset({"meta", "br", "input"})
_PLAIN_LINE = re.compile(r"[\t -~]*")


def escape(text: str) -> Html:
    """Text of a page; characters that are invisible, control or reorder are shown by their code points."""
    if _PLAIN_LINE.fullmatch(text):
        return Html(html.escape(text))
    return Html("".join(_escape_character(char) for char in text))


def escape_plain(text: str) -> Html:
    """The same without elements, for a place that can hold none, such as the title."""
    return Html(html.escape(terminal.escape(text)))


def tag(name: str, attributes: Mapping[str, object], *children: Html) -> Html:
    """An element. An attribute that is None is left out.

    The policy of the page allows no inline style and no inline handler, so neither can be made here.
    """
    opening = f"<{_checked(name)}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Html(opening if name in _VOID else f"{opening}{''.join(children)}</{name}>")


def join(parts: Iterable[Html], separator: Html = EMPTY) -> Html:
    """Several pieces, one after another."""
    return Html(separator.join(parts))


def script_data(identifier: str, value: object) -> Html:
    """JSON for the page's script: ASCII without `<`, `>` and `&`, so that no content ends the element."""
    text = json.dumps(value, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Html(f'<script id="{_checked(identifier)}" type="application/json">{safe}</script>')


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "style" or name.startswith("on"):
        raise ValueError(f"{name!r} cannot be the name of an element or attribute")
    return name


def _attribute(name: str, value: object) -> str:
    if value is None:
        return ""
    return f' {_checked(name)}="{escape_plain(str(value))}"'


def _escape_character(char: str) -> str:
    if char == "\t" or terminal.is_plain(char):
        return html.escape(char)
    return f'<span class="ctl">{terminal.code_point_of(char)}</span>'
