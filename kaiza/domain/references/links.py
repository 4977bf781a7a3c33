"""Finds relative links in Markdown and HTML."""

import html
import re
from collections.abc import Iterator

from kaiza.domain.references.reference import Reference

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n]*)")
_CODE_MARK = re.compile(r"(`+)")
_DESTINATION = re.compile(r"[ \t]*(?:<([^<>]{0,1024})>|([^\s()<>]{0,1024}(?:\([^\s()<>]{0,1024}\)[^\s()<>]{0,1024})?))")
_DEFINITION = re.compile(r" {0,3}\[[^\]^][^\]]*\]:[ \t]*<?([^\s<>]{1,1024})")
_TAG = re.compile(r"<!--|<([A-Za-z][A-Za-z0-9-]*+)([^<>]*+)>")
_ATTRIBUTE = re.compile(r"""(?<![\w-])(?:href|src)\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s"'=<>`]++))""", re.IGNORECASE)
_CODE_ENDS = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_MAX_VALUE = 4096  # no path is longer, and `html.unescape` fails on a number of more digits than 4300
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def find_markdown_links(text: str) -> Iterator[Reference]:
    """Links, images, definitions of links, and HTML tags; not in code."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = _FENCE.match(line)
        if fence:
            fence = "" if mark and mark[1].startswith(fence) and not mark[2].strip() else fence
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
        else:
            yield from _make_links(number, _line_targets(_remove_code_spans(line)))


def find_html_links(text: str) -> Iterator[Reference]:
    """Values of `href` and `src`; none of a page with `<base>`, which gives them another meaning."""
    number, counted, found = 1, 0, []
    for offset, name, target in _tag_targets(text):
        if name == "base":
            return
        number, counted = number + text.count("\n", counted, offset), offset
        found.append((number, target))
    for line, target in found:
        yield from _make_links(line, iter([target]))


def _line_targets(line: str) -> Iterator[str]:
    position = line.find("](")
    while position >= 0:
        destination = _DESTINATION.match(line, position + 2)
        position = line.find("](", destination.end() if destination else position + 2)
        if destination:
            yield destination[1] or destination[2] or ""
    definition = _DEFINITION.match(line)
    if definition:
        yield definition[1]
    if "<" in line:
        yield from (target for _, _, target in _tag_targets(line))


def _remove_code_spans(line: str) -> str:
    """The line without its code spans, which begin and end with equally many backticks."""
    if "`" not in line:
        return line
    pieces = _CODE_MARK.split(line)
    last = {mark: index for index, mark in enumerate(pieces) if index % 2}
    kept, index = [], 0
    while index < len(pieces):
        piece = pieces[index]
        if index % 2 and last[piece] > index:
            index = next(end for end in range(index + 2, len(pieces), 2) if pieces[end] == piece)
        else:
            kept.append(piece)
        index += 1
    return "".join(kept)


def _tag_targets(text: str) -> Iterator[tuple[int, str, str]]:
    """Offset, name of the tag, and value, of each link; comments, scripts and styles are skipped."""
    position: int | None = 0
    while position is not None and (tag := _TAG.search(text, position)):
        position = tag.end()
        if tag[1] is None:
            end = text.find("-->", position)
            position = end if end >= 0 else None
            continue
        name = tag[1].lower()
        for attribute in _ATTRIBUTE.finditer(tag[2]):
            value = next(group for group in attribute.groups() if group is not None)
            if len(value) <= _MAX_VALUE:
                yield tag.start(2) + attribute.start(), name, html.unescape(value)
        if name in _CODE_ENDS:
            closing = _CODE_ENDS[name].search(text, position)
            position = closing.end() if closing else None


def _make_links(line: int, targets: Iterator[str]) -> Iterator[Reference]:
    for target in targets:
        path = target.strip().partition("#")[0].partition("?")[0]
        if path and not _is_elsewhere(path):
            yield Reference(line, path, "link")


def _is_elsewhere(path: str) -> bool:
    """Whether a target is not a relative path: a URL, a path of the site, or a template's placeholder."""
    return path.startswith(("/", "\\")) or "{" in path or "<" in path or _SCHEME.match(path) is not None
