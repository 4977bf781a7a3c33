"""How a patch spells a file's name: with a prefix, perhaps quoted as in C, perhaps ended by a tab."""

import re

from kaiza.domain.patch.refusal import invalid

NOWHERE = b"/dev/null"

_QUOTED = re.compile(rb'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_ESCAPE = re.compile(rb"\\([0-3][0-7]{2}|.)", re.DOTALL)
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_THEMSELVES = frozenset({b'"', b"\\"})
_OCTAL = 3


def leading(text: bytes, line: int) -> tuple[bytes, bytes]:
    """Read a quoted name at the beginning; give it back with what follows it."""
    quoted = _QUOTED.match(text)
    if not quoted:
        raise invalid(line, "quoting")
    return _unquoted(quoted[1], line), text[quoted.end() :]


def whole(text: bytes, line: int) -> bytes:
    """Read a name that fills the rest of its line."""
    if not text.startswith(b'"'):
        return text
    name, rest = leading(text, line)
    if rest:
        raise invalid(line, "quoting")
    return name


def tabbed(text: bytes, line: int) -> bytes:
    """Read a name as `---` and `+++` carry it: a tab ends it, and a time may follow."""
    if not text.startswith(b'"'):
        return text.partition(b"\t")[0]
    name, rest = leading(text, line)
    if rest and not rest.startswith(b"\t"):
        raise invalid(line, "quoting")
    return name


def without(prefix: bytes, name: bytes, line: int) -> bytes:
    """Take the `a/` or `b/` away; a name without it is refused."""
    if not name.startswith(prefix) or name == prefix:
        raise invalid(line, "prefix")
    return name[len(prefix) :]


def twice(text: bytes, line: int) -> bytes:
    """Read the first of the two names in a `diff --git` line; whether the other agrees is for `spells` to say."""
    if text.startswith(b'"'):
        return without(b"a/", leading(text, line)[0], line)
    return without(b"a/", text[: len(text) // 2], line)


def spells(text: bytes, old: bytes, new: bytes, line: int) -> bool:
    """Judge whether a `diff --git` line names exactly these two files."""
    if text.startswith(b'"'):
        first, rest = leading(text, line)
    else:
        first = b"a/" + old
        rest = text.removeprefix(first) if text.startswith(first + b" ") else b""
    return first == b"a/" + old and rest[:1] == b" " and whole(rest[1:], line) == b"b/" + new


def _unquoted(text: bytes, line: int) -> bytes:
    def plain(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        if len(code) == _OCTAL:
            return bytes([int(code, 8)])
        if code in _THEMSELVES:
            return code
        if code not in _LETTERS:
            raise invalid(line, "quoting")
        return _LETTERS[code]

    return _ESCAPE.sub(plain, text)
