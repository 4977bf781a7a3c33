"""A file in stretches of whole lines, one in memory at a time, so that each line is met with the lines around it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kaiza.domain.text.lines import LF


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
