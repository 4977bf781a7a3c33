"""Line scanning of files read in chunks: digest, line counts, windows, excerpts. No file is held in memory.

A line ends at LF only, so that line numbers agree with git and editors' LSP positions whatever else the bytes are. An
empty file has no lines.
"""

import base64
import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from kaiza.domain.paging.response_size import AnswerBudget

LF = b"\n"
RANGE_DASH = "\u2013"
"""Between the first and the last line of a range, in texts for people."""
_CRLF = b"\r\n"
_SCAN_BELOW = 4096
# What "surrogateescape" makes of a byte that is not UTF-8.
LONE_BYTE = re.compile("[\udc80-\udcff]")
UTF8_CONTINUATION = bytes(range(0x80, 0xC0))

LineEnding = Literal["lf", "crlf", "mixed", "none"]


class FileDigest:
    """Size, SHA-256 and line count of a file, fed in chunks."""

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
        """Number of lines, including a last one without LF."""
        return self._line_breaks + (self._last not in {b"", LF})


class FileSummary(FileDigest):
    """A file digest with the file's line ending."""

    def __init__(self) -> None:
        super().__init__()
        self._crlf_breaks = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes, never none, into the hash and the counts."""
        if b"\r" in chunk:
            self._crlf_breaks += chunk.count(_CRLF)
        # A CRLF may be split between two chunks.
        if self._last == b"\r" and chunk[:1] == LF:
            self._crlf_breaks += 1
        super().feed(chunk)

    @property
    def line_ending(self) -> LineEnding:
        """Line ending of the file; `none` without any LF."""
        if not self._line_breaks:
            return "none"
        if not self._crlf_breaks:
            return "lf"
        return "crlf" if self._crlf_breaks == self._line_breaks else "mixed"


class LineWindow:
    """Keeps the bytes of some lines of a file, fed in chunks.

    The window begins `byte_offset` bytes after the start of `start_line`, and ends after `most_lines` or `most_bytes`.
    """

    def __init__(self, start_line: int, byte_offset: int, *, most_lines: int, most_bytes: int) -> None:
        self.start_line = start_line
        self.offset = 0
        self.data = bytearray()
        self._skip_lines = start_line
        self._skip_bytes = byte_offset
        self._lines_left = most_lines
        self._bytes_left = most_bytes

    @property
    def is_full(self) -> bool:
        """Whether the window has all its lines or bytes."""
        return self._lines_left == 0 or self._bytes_left == 0

    def feed(self, chunk: bytes) -> None:
        """Add the next bytes of the file."""
        if self.is_full:
            return
        begin = self._skip_to_start(chunk)
        self.offset += begin
        data = chunk[begin : begin + self._bytes_left]
        end, line_breaks = skip_lines(data, self._lines_left)
        self._lines_left -= line_breaks
        self._bytes_left -= end
        self.data += data[:end]

    def _skip_to_start(self, chunk: bytes) -> int:
        begin = 0
        if self._skip_lines:
            begin, skipped = skip_lines(chunk, self._skip_lines)
            self._skip_lines -= skipped
            if self._skip_lines:
                return len(chunk)
        end = min(begin + self._skip_bytes, len(chunk))
        self.start_line += chunk.count(LF, begin, end)
        self._skip_bytes -= end - begin
        return end


def skip_lines(data: bytes, count: int) -> tuple[int, int]:
    """Offset after `count` LFs, and `count`; if there are fewer, the length of the data and their number."""
    total = data.count(LF)
    if total < count:
        return len(data), total
    # Bisection with `bytes.count`, which is many times faster than a Python loop over lines.
    begin, end, left = 0, len(data), count
    while end - begin > _SCAN_BELOW:
        middle = (begin + end) // 2
        in_half = data.count(LF, begin, middle)
        if in_half >= left:
            end = middle
        else:
            begin, left = middle, left - in_half
    for _ in range(left):
        begin = data.index(LF, begin) + 1
    return begin, count


@dataclass(frozen=True, slots=True)
class ContentPiece:
    """Part of a file as text or base64."""

    encoding: Literal["utf-8", "base64"]
    content: str
    size: int
    line_count: int


def fit_content(data: bytes, space: int, budget: AnswerBudget, *, final: bool) -> ContentPiece:
    """As much of the data as adds at most `space` bytes to an answer: whole lines, or a part of one too long line.

    The piece is text if these bytes are valid UTF-8, whatever the rest of the file is, and base64 if not. `final`: the
    data ends where the file does, so an incomplete character at its end makes it invalid.
    """
    try:
        # `whole` leaves out a character that is cut at the end of the data.
        _, whole = codecs.utf_8_decode(data, "strict", final)
    except UnicodeDecodeError:
        # Base64 makes 4 characters of 3 bytes, and none of them needs an escape.
        part = data[: _line_boundary(data, max(space, 0) // (4 * budget.min_byte_cost) * 3)]
        return ContentPiece("base64", base64.b64encode(part).decode(), len(part), count(part))
    end = _line_boundary(data[:whole], budget.fit_text(data[:whole], space))
    while end < whole and data[end] in UTF8_CONTINUATION:  # never cut a character
        end -= 1
    part = data[:end]
    return ContentPiece("utf-8", part.decode(), end, count(part))


def _line_boundary(data: bytes, end: int) -> int:
    """Offset after the last whole line before `end`; `end` itself if no line ends before it."""
    if end >= len(data):
        return len(data)
    return data.rfind(LF, 0, end) + 1 or end


def count(data: bytes) -> int:
    """Number of lines, including incomplete ones at the ends."""
    return data.count(LF) + (bool(data) and not data.endswith(LF))


class Utf8Check:
    """Checks that a file, fed in chunks, is valid UTF-8."""

    # A file over the size cap is not read for this check alone.
    is_full = True

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._broken = False

    def feed(self, chunk: bytes) -> None:
        """Check the next bytes."""
        self._decode(chunk)

    @property
    def is_valid(self) -> bool:
        """Whether all bytes fed are valid UTF-8. To be read once, after the last chunk."""
        self._decode(b"", final=True)
        return not self._broken

    def _decode(self, chunk: bytes, *, final: bool = False) -> None:
        if not self._broken:
            try:
                self._decoder.decode(chunk, final)
            except UnicodeDecodeError:
                self._broken = True


MAX_EXCERPT = 500
"""Characters of a line in an excerpt. Text left out becomes an ellipsis."""

_LEAD_CHARACTERS = 120


def count_characters(data: bytes) -> int:
    """Number of code points; a byte that is not UTF-8 counts as one."""
    return len(data) if data.isascii() else len(data.decode(errors="surrogateescape"))


def excerpt(data: bytes, begin: int, end: int, at: int) -> str:
    """Excerpt of the line from `begin` to `end`: the part around `at`, if the line is long."""
    # A code point has at most 4 bytes: only so many bytes are decoded, however long the line is.
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
    """Decode data that may begin inside a character; the rest of that character is dropped."""
    begin = 0
    while begin < min(len(data), 3) and data[begin] in UTF8_CONTINUATION:
        begin += 1
    return data[begin:].decode(errors="surrogateescape")


@dataclass(slots=True)
class LineChunk:
    """Whole lines of a file. Those from `begin` to `end` are to be searched, the others are their context."""

    data: bytes
    first_line: int
    begin: int
    end: int


class LineTooLongError(Exception):
    """A line with its context exceeds the memory bound."""


def iter_chunks(chunks: Iterable[bytes], context_lines: int, max_bytes: int) -> Iterator[LineChunk]:
    """Regroup a file into chunks of whole lines, each line searched once and with its context around it.

    LineTooLongError if a line and its context exceed `max_bytes`.
    """
    data, first_line, begin = b"", 0, 0
    for chunk in chunks:
        data += chunk
        end = _last_lines_start(data, context_lines)
        if end > begin:
            yield LineChunk(data, first_line, begin, end)
            keep_from = _last_lines_start(data[:end], context_lines) if context_lines else end
            first_line += data.count(LF, 0, keep_from)
            data, begin = data[keep_from:], end - keep_from
        if len(data) > max_bytes:
            raise LineTooLongError
    if begin < len(data):
        yield LineChunk(data, first_line, begin, len(data))


def _last_lines_start(data: bytes, lines: int) -> int:
    """Offset of the last `lines` whole lines; 0 if there are fewer."""
    at = len(data)
    for _ in range(lines + 1):
        at = data.rfind(LF, 0, at)
        if at < 0:
            return 0
    return at + 1
