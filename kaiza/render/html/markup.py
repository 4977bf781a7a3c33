"""HTML text, made only by `escape` and `tag`, so that mypy finds every string that is not escaped.

A tag's name and the names of its attributes come from this package; texts and the values of attributes come from
anywhere.
"""

import html
import re
from collections.abc import Iterable, Mapping
from typing import NewType

from kaiza.render import terminal

Html = NewType("Html", str)

EMPTY = Html("")
_NAME = re.compile(r"[a-z][a-z0-9-]*|viewBox")
_VOID = frozenset({"meta", "br", "input", "col", "line", "path", "rect", "circle", "polygon"})
_PLAIN_LINE = re.compile(r"[\t -~]*")


def escape(text: str) -> Html:
    """Text of a page; characters that are invisible, control or reorder are shown by their code points."""
    if _PLAIN_LINE.fullmatch(text):
        return Html(html.escape(text))
    return Html("".join(_escape_character(char) for char in text))


def escape_block(text: str) -> Html:
    """The same for text of several lines."""
    return join((escape(line) for line in text.split("\n")), Html("\n"))


def tag(name: str, attributes: Mapping[str, str | int | None], *children: Html) -> Html:
    """An element. An attribute that is None is left out.

    The policy of the page allows no inline style and no inline handler, so neither can be made here.
    """
    opening = f"<{_checked(name)}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in _VOID:
        return Html(opening if not children else opening + "".join(children))
    return Html(f"{opening}{''.join(children)}</{name}>")


def join(parts: Iterable[Html], separator: Html = EMPTY) -> Html:
    """Several pieces, one after another."""
    return Html(separator.join(parts))


def script_data(identifier: str, json_text: str) -> Html:
    """JSON for the page's script. It is ASCII without `<`, `>` and `&`, so it cannot end its element."""
    safe = json_text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    attributes = f' id="{_checked(identifier)}" type="application/json"'
    return Html(f"<script{attributes}>{safe.encode('ascii', 'backslashreplace').decode()}</script>")


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name) or name == "style" or name.startswith("on"):
        raise ValueError(name)
    return name


def _attribute(name: str, value: str | int | None) -> str:
    if value is None:
        return ""
    return f' {_checked(name)}="{html.escape(terminal.escape(str(value)))}"'


def _escape_character(char: str) -> str:
    if char == "\t" or terminal.is_plain(char):
        return html.escape(char)
    return f'<span class="ctl">{terminal.code_point_of(char)}</span>'
