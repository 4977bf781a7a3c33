"""What a terminal may be shown: odd characters made visible, text fitted to columns, colour only where it is wanted."""

import unicodedata
from collections.abc import Iterable, Iterator

QUOTE = "│ "
"""Begins each line that is not Kaiza's own: quoted text, and what is left of a line that is too long."""
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_BLANK_LETTERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
_SELECTORS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_INVISIBLE = frozenset(_BLANK_LETTERS + _SELECTORS)
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_MIN_COLUMNS = 20
_MAX_BYTE, _MAX_BMP = 0xFF, 0xFFFF
_ODD_BYTES = range(0xDC80, 0xDD00)


def escape(text: str) -> str:
    """The text with everything that is invisible, steers a terminal or turns its direction written out."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_plain(char) else _escape_character(char) for char in text)


def escape_json(line: str) -> str:
    """A line of JSON that means the same and is safe to show: only JSON's own escapes are added."""
    if line.isascii() and line.isprintable():
        return line
    return "".join(char if _is_plain(char) else _escape_json_character(char) for char in line)


def display_width(text: str) -> int:
    """How many columns a terminal gives the text."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def truncate(text: str, columns: int, keep: str = "start") -> str:
    """The text in at most so many columns; what is missing is an ellipsis at the end, or at the start for paths."""
    if display_width(text) <= columns:
        return text
    if columns < 1:
        return ""
    kept = _fitting_prefix(text if keep == "start" else text[::-1], columns - 1)
    return kept + "…" if keep == "start" else "…" + kept[::-1]


def wrap(lines: Iterable[str], columns: int | None) -> Iterator[str]:
    """Lines of at most so many columns, none of them cut; a terminal's own wrapping would begin a line unquoted."""
    for line in lines:
        yield from (line,) if columns is None else _wrap_line(line, max(columns, _MIN_COLUMNS))


def paint(text: str, style: str, *, colour: bool) -> str:
    """The text in a style, or as it is."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colour and style and text else text


def _is_plain(char: str) -> bool:
    return char.isprintable() and ord(char) not in _INVISIBLE


def _escape_character(char: str) -> str:
    point = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if point in _ODD_BYTES:
        return f"\\x{point - 0xDC00:02x}"
    if point <= _MAX_BYTE:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= _MAX_BMP else f"\\U{point:08x}"


def _escape_json_character(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


def _character_width(char: str) -> int:
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _wrap_line(line: str, columns: int) -> Iterator[str]:
    kept = _fitting_prefix(line, columns)
    while len(kept) < len(line):
        blank = kept.rfind(" ") + 1
        end = blank if blank > columns // 2 else len(kept)
        yield line[:end]
        line = QUOTE + line[end:]
        kept = _fitting_prefix(line, columns)
    yield line


def _fitting_prefix(text: str, columns: int) -> str:
    for at, char in enumerate(text):
        columns -= _character_width(char)
        if columns < 0:
            return text[:at]
    return text
