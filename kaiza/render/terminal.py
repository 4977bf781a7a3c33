"""Text made safe for a terminal and fitted to its columns: escaping, display width, wrapping, colour."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

QUOTE = "│ "
"""Begins each line that is not Kaiza's own: quoted text, and the rest of a line that was too long."""
INDENT = "  "
_WORDS = re.compile(r"(?:`[^`]*`|[^\s`])+|`")
"""Words between blanks; a command in backticks is one word, so that it is never broken."""
_LOOKALIKE = re.compile(r"\\(?:[nrt]|x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})")
_UPPER = re.compile("[\x80-\xa0\xad]")
_SHORT_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Letters and selectors that Unicode calls printable and terminals draw as nothing.
_BLANK_LETTERS = (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0)
_SELECTORS = (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))
_INVISIBLE = frozenset(_BLANK_LETTERS + _SELECTORS)
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
_MIN_COLUMNS = 20
_MAX_BYTE, _MAX_BMP = 0xFF, 0xFFFF
_ESCAPED_BYTES = range(0xDC80, 0xDD00)
"""Surrogates by which Python holds the bytes of a file name that is not UTF-8."""


def escape(text: str) -> str:
    """Escape what is invisible, controls a terminal or changes the writing direction."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if is_plain(char) else _escape_character(char) for char in text)


def escape_name(name: str) -> str:
    """Escape a name so that no two look alike: where something is or seems to be escaped, backslashes are doubled."""
    if all(map(is_plain, name)) and _LOOKALIKE.search(name) is None:
        return name
    # A character needs another form than the byte of the same number.
    return escape(_UPPER.sub(lambda char: f"\\u{ord(char[0]):04x}", name.replace("\\", "\\\\")))


def escape_json(line: str) -> str:
    """Escape a line of JSON with JSON's own escapes, so that it still parses to the same value."""
    if line.isascii() and line.isprintable():
        return line
    escaped: list[str] = []
    for char in line:
        if is_plain(char):
            escaped.append(char)
        else:
            # JSON escapes UTF-16 units: two for a character beyond U+FFFF.
            units = char.encode("utf-16-be", "surrogatepass").hex()
            escaped += [f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4)]
    return "".join(escaped)


def display_width(text: str) -> int:
    """Columns that the text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(map(_character_width, text))


def wrap(lines: Iterable[str], columns: int | None) -> Iterator[str]:
    """Fold lines to `columns`, nothing cut; each further part begins with QUOTE.

    The terminal's own wrapping would begin a row with text that an agent chose, and such a row can imitate a fact.
    """
    for line in lines:
        yield from (line,) if columns is None else _fold(line, max(columns, _MIN_COLUMNS))


def wrap_words(text: str, columns: int | None, indent: str = INDENT) -> Iterator[str]:
    """Fold a sentence between words; later lines begin with `indent`. For Kaiza's own sentences."""
    if columns is None or display_width(text) <= columns:
        yield text
        return
    line = text[: len(text) - len(text.lstrip())]
    is_empty = True
    for word in _WORDS.findall(text):
        if not is_empty and display_width(f"{line} {word}") > columns:
            yield from wrap([line], columns)
            line, is_empty = indent, True
        line, is_empty = line + word if is_empty else f"{line} {word}", False
    yield from wrap([line], columns)


def paint(text: str, style: str, *, colour: bool) -> str:
    """The text in a style, or unchanged without colour."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if colour and style and text else text


def is_plain(char: str) -> bool:
    """Whether a character is drawn as itself: it is printable, and not one of those that look like nothing."""
    return char.isprintable() and ord(char) not in _INVISIBLE


def code_point_of(char: str) -> str:
    r"""`U+202E`, or `\xff` for a byte of a file name that is not UTF-8."""
    point = ord(char)
    return f"\\x{point - 0xDC00:02x}" if point in _ESCAPED_BYTES else f"U+{point:04X}"


def _escape_character(char: str) -> str:
    point = ord(char)
    if char in _SHORT_ESCAPES:
        return _SHORT_ESCAPES[char]
    if point in _ESCAPED_BYTES:
        return f"\\x{point - 0xDC00:02x}"
    if point <= _MAX_BYTE:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= _MAX_BMP else f"\\U{point:08x}"


def _character_width(char: str) -> int:
    # Combining marks are drawn over the character before; East Asian wide characters take two columns.
    if unicodedata.category(char) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _fold(line: str, columns: int) -> Iterator[str]:
    part = _fitting_prefix(line, columns)
    while len(part) < len(line):
        # End the line after its last blank, or within a word that would not fit a line of its own either.
        blank = part.rfind(" ") + 1
        word = line[blank:].split(" ", 1)[0]
        is_whole_below = bool(line[:blank].strip(" │")) and display_width(QUOTE + word) <= columns
        end = blank if blank > columns // 2 or is_whole_below else len(part)
        yield line[:end]
        line = QUOTE + line[end:]
        part = _fitting_prefix(line, columns)
    yield line


def _fitting_prefix(text: str, columns: int) -> str:
    for at, char in enumerate(text):
        columns -= _character_width(char)
        if columns < 0:
            return text[:at]
    return text


_TO_MINUTE, _TO_SECOND = 16, 19


def format_count(count: int, noun: str) -> str:
    """A number and its noun: `1 file`, `1,204 files`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def format_time(timestamp: str) -> str:
    """A timestamp of a record for people: `2026-11-18 09:00:07 UTC`; one that is not in UTC stays as it is."""
    if not timestamp.endswith("Z"):
        return escape(timestamp)
    return escape(timestamp[:_TO_SECOND].removesuffix("Z").replace("T", " ") + " UTC")


def format_minute(timestamp: str) -> str:
    """The same to the minute, without the zone: for a column whose title names it."""
    return escape(timestamp[:_TO_MINUTE].replace("T", " "))
