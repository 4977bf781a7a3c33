"""How a patch spells a file's name: with a prefix, perhaps quoted as in C, perhaps ended by a tab."""

import re

from kaiza.domain.patch.errors import invalid_patch

DEV_NULL = b"/dev/null"

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_SELF_ESCAPED = frozenset({b'"', b"\\"})
_OCTAL = 3


def read_quoted(text: bytes, line: int) -> tuple[bytes, bytes]:
    """Read a quoted name at the beginning; give it back with what follows it."""
    quoted = _QUOTED.match(text)
    if not quoted:
        raise invalid_patch(line, "quoting")
    return _unquote(quoted[1], line), text[quoted.end() :]


def read_whole(text: bytes, line: int) -> bytes:
    """Read a name that fills the rest of its line."""
    if not text.startswith(b'"'):
        return text
    name, rest = read_quoted(text, line)
    if rest:
        raise invalid_patch(line, "quoting")
    return name


def read_until_tab(text: bytes, line: int) -> bytes:
    """Read a name as `---` and `+++` carry it: a tab ends it, and a time may follow."""
    if not text.startswith(b'"'):
        return text.partition(b"\t")[0]
    name, rest = read_quoted(text, line)
    if rest and not rest.startswith(b"\t"):
        raise invalid_patch(line, "quoting")
    return name


def strip_prefix(prefix: bytes, name: bytes, line: int) -> bytes:
    """Take the `a/` or `b/` away; a name without it is refused."""
    if not name.startswith(prefix) or name == prefix:
        raise invalid_patch(line, "prefix")
    return name[len(prefix) :]


def read_first(text: bytes, line: int) -> bytes:
    """Read the first of the two names in a `diff --git` line; whether the other agrees is for `spells` to say."""
    if text.startswith(b'"'):
        return strip_prefix(b"a/", read_quoted(text, line)[0], line)
    return strip_prefix(b"a/", text[: len(text) // 2], line)


def is_pair(text: bytes, old: bytes, new: bytes, line: int) -> bool:
    """Judge whether a `diff --git` line names exactly these two files."""
    if text.startswith(b'"'):
        first, rest = read_quoted(text, line)
    else:
        first = b"a/" + old
        rest = text.removeprefix(first) if text.startswith(first + b" ") else b""
    return first == b"a/" + old and rest[:1] == b" " and read_whole(rest[1:], line) == b"b/" + new


def _unquote(text: bytes, line: int) -> bytes:
    def plain(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        if len(code) == _OCTAL:
            return bytes([int(code, 8)])
        if code in _SELF_ESCAPED:
            return code
        if code not in _LETTERS:
            raise invalid_patch(line, "quoting")
        return _LETTERS[code]

    return _ESCAPE.sub(plain, text)
