"""Outline of a line that is not decoded: measures it, and reads its id, its method and the name of its tool.

Takes a line of any length in pieces, and keeps little of it: the members of the message, of its `params` and of their
`_meta`, without long strings and without what else is nested. The time is linear, whatever the line holds.
"""

import json
import re
from collections import Counter
from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final

from kaiza.wire.numbers import parse_float, parse_integer

MAX_TEXT: Final = 1 << 12
"""Longest string that is kept, in bytes; a longer one becomes an empty one, and so does one that is not UTF-8."""

MAX_KEPT: Final = 1 << 16
"""Bytes that are kept at most. What comes after them is not read."""

# Small, so that other threads run between two pieces: the functions that read one keep them waiting.
_PIECE_BYTES: Final = 1 << 16
_STRING: Final = re.compile(rb'"[^"]*+"')
_TOKEN: Final = re.compile(rb'"[^"]*+"|[{\[]++|[}\]]++')
_KEPT_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[{}\[\],]')
_SPACE: Final = re.compile(rb"\s+")
# The key before an object whose members are kept, by the depth of the object that has the key.
_SHOWN: Final = {1: re.compile(rb'[{,] ?"params" ?: ?$'), 2: re.compile(rb'[{,] ?"_meta" ?: ?$')}
_SHOWN_TAIL: Final = 16
_SHOWN_KEYS: Final = frozenset({"params", "_meta"})
_MAX_ESCAPED_KEY: Final = len(rb'"\u0070\u0061\u0072\u0061\u006d\u0073"')
_BYTE_ORDER_MARK: Final = "\ufeff"
_CLOSING: Final = {b"{": b"}", b"[": b"]"}
_STEPS: Final = {ord("{"): 1, ord("["): 1, ord("}"): -1, ord("]"): -1}
_ONE_KIND: Final = bytes.maketrans(b"{}", b"[]")
_MAX_REMOVALS: Final = 4
# Where something that is kept stands between what is not, a piece is read in parts. Tokens are read one by one in
# parts of this size only.
_LEAST_PART: Final = 64
_NEVER: Final = -1
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))


class Outline:
    """Outline of one line. `feed` it with the pieces of the line, then `read` it."""

    def __init__(self) -> None:
        self._size = 0
        self.depth = 0
        """Deepest nesting of objects and arrays."""
        self.values = 1
        """Number of values, with those inside of objects and arrays; an empty object or array counts twice."""
        self._level = 0
        self._hidden_level: int | None = None
        """Level above the object or array whose content is not kept; _NEVER if nothing more is."""
        self._kept = bytearray()
        self._is_full = False
        self._rest = b""
        """End of the last piece, which is read with the next one."""
        self._in_string = False
        """Whether the next piece begins inside of a long string."""

    def __len__(self) -> int:
        """Bytes of the line so far."""
        return self._size

    def feed(self, piece: bytes | bytearray) -> None:
        """Read the next piece of the line."""
        self._size += len(piece)
        for start in range(0, len(piece), _PIECE_BYTES):
            self._read_piece(self._rest + piece[start : start + _PIECE_BYTES])

    def read(self) -> Mapping[str, Any]:
        """The members that can be read without doubt; none of a line that is not an object.

        A member that occurs twice is left out, and so is the last one of a line that breaks off.
        """
        is_whole = self._level <= 0 and not self._in_string and not self._is_full
        try:
            text = (bytes(self._kept) if is_whole else _close(self._kept)).decode()
            value, _ = _DECODER.raw_decode(text.removeprefix(_BYTE_ORDER_MARK).lstrip())
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def _read_piece(self, piece: bytes) -> None:
        # Of the same length, so that positions agree; every quotation mark that is left begins or ends a string.
        masked = piece.replace(rb"\\", b"..").replace(rb"\"", b"..")
        end = len(piece) - masked.endswith(b"\\")
        position = 0
        if self._in_string:
            position = masked.find(b'"', 0, end) + 1
            if not position:
                self._rest = piece[end:]
                return
            self._keep(b'""')
            self._in_string = False
        is_odd = masked.count(b'"', position, end) % 2
        begun = masked.rfind(b'"', position, end) if is_odd else end
        self._read_parts(piece, masked, position, begun)
        # A short string is read again with the next piece, a long one is not kept.
        self._in_string = end - begun > MAX_TEXT
        self._rest = piece[end:] if self._in_string else piece[begun:]

    def _read_parts(self, piece: bytes, masked: bytes, position: int, end: int) -> None:
        """Read a part of the line that ends outside of strings, and pass over what is not kept as fast as possible."""
        size = end - position
        while position < end:
            is_hidden = self._hidden_level is not None
            stop = min(end, position + (size if is_hidden else _LEAST_PART))
            if masked.count(b'"', position, stop) % 2:
                stop = masked.index(b'"', stop) + 1
            if is_hidden and self._skip(masked[position:stop]):
                size *= 2
            elif is_hidden and size > _LEAST_PART:
                size //= 2
                continue
            else:
                self._read_tokens(piece, masked, position, stop)
            position = stop

    def _skip(self, text: bytes) -> bool:
        """Measure a part of the line that is not kept; False if some of it has to be."""
        assert self._hidden_level is not None  # noqa: S101  something is hidden where this is called
        outside = _STRING.sub(b"", text)
        brackets = outside.translate(_ONE_KIND, _NO_BRACKETS)
        # Pairs change no level but their own. Without them the rest is short, or nearly all of one kind.
        rest, removed = brackets, 0
        while removed < _MAX_REMOVALS and b"[]" in rest:
            rest, removed = rest.replace(b"[]", b""), removed + 1
        closing = rest.count(b"]")
        opening = len(rest) - closing
        lowest, deepest = self._level - closing, self._level + opening + removed
        is_exact = not removed and not (opening and closing)
        if lowest <= self._hidden_level or (deepest > self.depth and not is_exact):
            levels = list(accumulate(map(_STEPS.__getitem__, brackets), initial=self._level))
            lowest, deepest = min(levels), max(levels)
        if lowest <= self._hidden_level:
            return False
        self.values += outside.count(b",") + brackets.count(b"[")
        self.depth = max(self.depth, deepest)
        self._level += opening - closing
        return True

    def _read_tokens(self, piece: bytes, masked: bytes, position: int, end: int) -> None:
        """Read strings, brackets and what is between them."""
        for token in _TOKEN.finditer(masked, position, end):
            start = token.start()
            self._read_between(piece[position:start])
            position = token.end()
            self._read_token(piece[start:position])
        self._read_between(piece[position:end])

    def _read_between(self, text: bytes) -> None:
        """Read what is not in a string and no bracket."""
        if text:
            self.values += text.count(b",")
            self._keep(text)

    def _read_token(self, token: bytes) -> None:
        """Read a whole string, or one or several brackets of one kind."""
        if token[:1] == b'"':
            self._keep(_unescape_key(token) if len(token) <= MAX_TEXT and _is_utf8(token) else b'""')
        elif token[:1] in (b"{", b"["):
            self._open(token)
        else:
            self._shut(token)

    def _open(self, brackets: bytes) -> None:
        self.values += len(brackets)
        while brackets and self._hidden_level is None:
            bracket, brackets = brackets[:1], brackets[1:]
            is_shown = self._is_shown(bracket)
            self._keep(bracket)
            self._hidden_level = None if is_shown else self._level
            self._level += 1
        self._level += len(brackets)
        self.depth = max(self.depth, self._level)

    def _shut(self, brackets: bytes) -> None:
        for bracket in brackets:
            self._level -= 1
            if self._hidden_level == self._level:
                self._hidden_level = None
            self._keep(bytes((bracket,)))

    def _is_shown(self, bracket: bytes) -> bool:
        """Whether the members of the object that begins here are kept."""
        key = _SHOWN.get(self._level)
        is_named = key is None or key.search(self._kept[-_SHOWN_TAIL:]) is not None
        return bracket == b"{" and is_named

    def _keep(self, text: bytes) -> None:
        if self._hidden_level is not None:
            return
        if text[:1] != b'"':
            text = _SPACE.sub(b" ", text)
            text = text.removeprefix(b" ") if self._kept.endswith(b" ") else text
        if len(self._kept) + len(text) <= MAX_KEPT:
            self._kept += text
        else:
            self._is_full = True
            self._hidden_level = _NEVER


def _unescape_key(token: bytes) -> bytes:
    r"""The string without escapes if it is a key that leads to what is kept, as `"par\u0061ms"`; else unchanged."""
    if b"\\" not in token or len(token) > _MAX_ESCAPED_KEY:
        return token
    try:
        text = json.loads(token)
    except ValueError:
        return token
    return b'"%b"' % text.encode() if text in _SHOWN_KEYS else token


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


def _close(kept: bytes | bytearray) -> bytes:
    """What was kept of a line that breaks off, up to the last whole member, with its objects closed."""
    still_open: list[bytes] = []
    end, closing = 0, b""
    for token in _KEPT_TOKEN.finditer(kept):
        bracket = bytes(token[0])
        if bracket in _CLOSING:
            still_open.append(_CLOSING[bracket])
        elif bracket in _CLOSING.values() and still_open:
            still_open.pop()
        if bracket in _CLOSING or bracket == b",":
            end = token.start() if bracket == b"," else token.end()
            closing = b"".join(reversed(still_open))
    return bytes(kept[:end]) + closing


def _drop_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    counts = Counter(key for key, _ in pairs)
    return {key: value for key, value in pairs if counts[key] == 1}


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_drop_repeated,
    parse_int=parse_integer,
    parse_float=parse_float,
    parse_constant=lambda _: None,
    strict=False,  # the line is refused, whatever its strings hold
)
