"""Lines end at LF and nowhere else, and an empty file has none; files are looked at as they pass, never held."""

import base64
import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paging import response_size

LF = b"\n"
_CRLF = b"\r\n"
_SCAN_BELOW = 4096
LONE_BYTE = re.compile("[\udc80-\udcff]")
UTF8_CONTINUATION = bytes(range(0x80, 0xC0))

LineEnding = Literal["lf", "crlf", "mixed", "none"]


class FileDigest:
    """What a whole file comes to, told chunk by chunk: its size, hash and number of lines."""

    def __init__(self) -> None:
        self.size = 0
        self._line_breaks = 0
        self._last = b""
        self._digest = hashlib.sha256()

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, never none, into the hash and the counts."""
        self._digest.update(chunk)
        self.size += len(chunk)
        self._line_breaks += chunk.count(LF)
        self._last = chunk[-1:]

    @property
    def hex_digest(self) -> str:
        """SHA-256 as 64 lower-case hex digits."""
        return self._digest.hexdigest()

    @property
    def total_lines(self) -> int:
        """How many lines there are; what follows the last LF is one more."""
        return self._line_breaks + (self._last not in {b"", LF})


class FileSummary(FileDigest):
    """The same, and how its lines end."""

    def __init__(self) -> None:
        super().__init__()
        self._crlf_breaks = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, never none, into the hash and the counts."""
        if b"\r" in chunk:
            self._crlf_breaks += chunk.count(_CRLF)
        if self._last == b"\r" and chunk[:1] == LF:
            self._crlf_breaks += 1
        super().feed(chunk)

    @property
    def line_ending(self) -> LineEnding:
        """How the lines end; `none` where no LF is."""
        if not self._line_breaks:
            return "none"
        if not self._crlf_breaks:
            return "lf"
        return "crlf" if self._crlf_breaks == self._line_breaks else "mixed"


class LineWindow:
    """The bytes of some lines, kept while the file passes.

    It begins `byte_offset` bytes after the beginning of a line, and ends after so many lines or so many bytes.
    """

    def __init__(self, start_line: int, byte_offset: int, *, most_lines: int, most_bytes: int) -> None:
        self.start_line = start_line
        self.offset = 0
        self.data = bytearray()
        self._skip_lines = start_line
        self._skip_bytes = byte_offset
        self._lines = most_lines
        self._bytes = most_bytes

    @property
    def is_full(self) -> bool:
        """Whether nothing more will be kept."""
        return self._lines == 0 or self._bytes == 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file in."""
        if self.is_full:
            return
        begin = self._skip_to_start(chunk)
        self.offset += begin
        if begin < len(chunk):
            self._keep_lines(chunk[begin : begin + self._bytes])

    def _skip_to_start(self, chunk: bytes) -> int:
        begin = 0
        if self._skip_lines:
            begin, passed = skip_lines(chunk, self._skip_lines)
            self._skip_lines -= passed
            if self._skip_lines:
                return len(chunk)
        end = min(begin + self._skip_bytes, len(chunk))
        self.start_line += chunk.count(LF, begin, end)
        self._skip_bytes -= end - begin
        return end

    def _keep_lines(self, data: bytes) -> None:
        end, passed = skip_lines(data, self._lines)
        self._lines -= passed
        self._bytes -= end
        self.data += data[:end]


def skip_lines(data: bytes, count: int) -> tuple[int, int]:
    """Where the line after so many LF begins, and how many there were: the end of the data if there are fewer."""
    there = data.count(LF)
    if there < count:
        return len(data), there
    begin, end, left = 0, len(data), count
    while end - begin > _SCAN_BELOW:
        middle = (begin + end) // 2
        here = data.count(LF, begin, middle)
        if here >= left:
            end = middle
        else:
            begin, left = middle, left - here
    for _ in range(left):
        begin = data.index(LF, begin) + 1
    return begin, count


@dataclass(frozen=True, slots=True)
class ContentPiece:
    """Bytes of a file as an answer carries them."""

    encoding: Literal["utf-8", "base64"]
    content: str
    size: int
    line_count: int


def fit_content(data: bytes, space: int, *, final: bool) -> ContentPiece:
    """As much of the data as weighs at most `space`: whole lines if one fits, else a part of the first.

    It is text where these bytes are valid UTF-8, whatever the rest of the file is, and base64 where they are not.
    `final` says that the data ends where the file does, so that half a character at the end is a fault.
    """
    try:
        _, whole = codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError:
        part = data[: _line_boundary(data, space // (4 * response_size.MIN_BYTE_COST) * 3)]
        return ContentPiece("base64", base64.b64encode(part).decode(), len(part), count(part))
    end = _line_boundary(data[:whole], response_size.longest_fitting_prefix(data[:whole], space))
    while end < whole and data[end] in UTF8_CONTINUATION:
        end -= 1
    part = data[:end]
    return ContentPiece("utf-8", part.decode(), end, count(part))


def _line_boundary(data: bytes, end: int) -> int:
    if end >= len(data):
        return len(data)
    return data.rfind(LF, 0, end) + 1 or end


def count(data: bytes) -> int:
    """How many lines these bytes have a part of."""
    return data.count(LF) + (bool(data) and not data.endswith(LF))


def escape_bytes(text: str) -> str:
    r"""A name as it can be told: a byte that is not UTF-8 as `\xNN`."""
    if text.isascii():
        return text
    return LONE_BYTE.sub(lambda byte: f"\\x{ord(byte[0]) & 0xFF:02x}", text)


class Utf8Check:
    """Whether all bytes that pass are UTF-8; keeps none of them."""

    is_full = True

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._broken = False

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes in."""
        self._decode(chunk)

    @property
    def is_valid(self) -> bool:
        """Whether they are, now that all have passed."""
        self._decode(b"", final=True)
        return not self._broken

    def _decode(self, chunk: bytes, *, final: bool = False) -> None:
        if not self._broken:
            try:
                self._decoder.decode(chunk, final)
            except UnicodeDecodeError:
                self._broken = True


MAX_EXCERPT = 500
"""So many characters of a line are shown; what is left out shows as an ellipsis."""

_LEAD_CHARACTERS = 120


def count_characters(data: bytes) -> int:
    """How many code points these bytes are; a byte that is no part of one counts for itself."""
    return len(data) if data.isascii() else len(data.decode(errors="surrogateescape"))


def excerpt(data: bytes, begin: int, end: int, at: int) -> str:
    """The line from `begin` to `end` as it is shown: of a long one, what is around `at`, and ellipses."""
    if end - begin > 4 * MAX_EXCERPT or count_characters(data[begin:end]) > MAX_EXCERPT:
        first = max(begin, at - 4 * _LEAD_CHARACTERS)
        before = _decode_whole(data[first:at])[-_LEAD_CHARACTERS:]
        after = data[at : min(end, at + 4 * MAX_EXCERPT + 4)].decode(errors="surrogateescape")
        after = after[: MAX_EXCERPT - len(before)]
        size = len((before + after).encode(errors="surrogateescape"))
        from_begin = at - len(before.encode(errors="surrogateescape"))
        text = ("…" if from_begin > begin else "") + before + after + ("…" if from_begin + size < end else "")
    else:
        text = data[begin:end].decode(errors="surrogateescape")
    return LONE_BYTE.sub("\ufffd", text)


def _decode_whole(data: bytes) -> str:
    """The text, without what is left of a character that began before it."""
    begin = 0
    while begin < min(len(data), 3) and data[begin] in UTF8_CONTINUATION:
        begin += 1
    return data[begin:].decode(errors="surrogateescape")


@dataclass(slots=True)
class LineChunk:
    """Some whole lines of a file: those that begin in `fresh` are new, the others are there for their company."""

    data: bytes
    first_line: int
    begin: int
    end: int


class LineTooLongError(Exception):
    """A line is longer than anybody will hold in memory."""


def iter_chunks(chunks: Iterable[bytes], company: int, longest: int) -> Iterator[LineChunk]:
    """A file in stretches, each line fresh once and then with `company` lines before and after it.

    TooLongError if a line and its company weigh more than `longest`.
    """
    data, first_line, begin = b"", 0, 0
    for chunk in chunks:
        data += chunk
        end = _last_lines_start(data, company)
        if end > begin:
            yield LineChunk(data, first_line, begin, end)
            kept = _last_lines_start(data[:end], company) if company else end
            first_line += data.count(LF, 0, kept)
            data, begin = data[kept:], end - kept
        if len(data) > longest:
            raise LineTooLongError
    if begin < len(data):
        yield LineChunk(data, first_line, begin, len(data))


def _last_lines_start(data: bytes, lines: int) -> int:
    """Where the last so many whole lines begin, and what follows them; 0 if there are not that many."""
    at = len(data)
    for _ in range(lines + 1):
        at = data.rfind(LF, 0, at)
        if at < 0:
            return 0
    return at + 1
