"""Parser of a file's hunks. Counts and line numbers must be exact, and each hunk must change something."""

import re
from dataclasses import dataclass, field, replace

from kaiza.domain.patch.errors import invalid_patch
from kaiza.domain.patch.file_patch import Hunk

_NUMBER = rb"(0|[1-9][0-9]*)"
_HEADER = re.compile(
    rb"@@ -" + _NUMBER + rb"(?:," + _NUMBER + rb")? \+" + _NUMBER + rb"(?:," + _NUMBER + rb")? @@(?: .*)?"
)
# Checked before `int`, which takes quadratic time on long digit strings.
_MAX_DIGITS = 10
_MAX_NUMBER = 2**31 - 1
_MIN_MARKER_LENGTH = 12
_PLUS, _MINUS, _BLANK, _LINE_FEED, _BACKSLASH = b"+- \n\\"


@dataclass(slots=True)
class _HunkSides:
    """Old and new lines of a hunk while it is read."""

    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)
    # Number of lines of a side when a no-newline marker ended it; no line may follow on that side.
    old_closed: int = -1
    new_closed: int = -1
    context: int = 0

    def add(self, line: bytes, at: int) -> None:
        tag = line[0]
        if tag == _PLUS:
            self.new.append(line[1:])
        elif tag == _MINUS:
            self.old.append(line[1:])
        elif tag in (_BLANK, _LINE_FEED):
            text = line[1:] or line  # some editors strip the blank of an empty context line
            self.old.append(text)
            self.new.append(text)
            self.context += 1
        else:
            raise invalid_patch(at, "hunk_line")

    def close(self, marked: bytes, at: int) -> None:
        """Apply a no-newline marker to the line before it."""
        tag, text = marked[0], marked[1:-1]
        if tag == _BACKSLASH or not text:  # an empty line without its LF would be no line at all
            raise invalid_patch(at, "marker")
        if tag != _PLUS:
            self.old[-1] = text
            self.old_closed = len(self.old)
        if tag != _MINUS:
            self.new[-1] = text
            self.new_closed = len(self.new)

    def has_valid_markers(self) -> bool:
        return self.old_closed in (-1, len(self.old)) and self.new_closed in (-1, len(self.new))


def parse_hunks(lines: list[bytes], at: int) -> tuple[tuple[Hunk, ...], int]:
    """Parse the hunks that begin at line `at`. Returns them and the number of the line after them."""
    hunks: list[Hunk] = []
    end, shift, closed = 0, 0, False
    while at < len(lines) and lines[at].startswith(b"@@ "):
        hunk, new_start, after = _parse_hunk(lines, at)
        if closed or (hunks and hunk.start < end):
            raise invalid_patch(at, "order")
        # The new line numbers follow from the old ones and the hunks before. A forged offset is refused.
        if new_start != hunk.start + shift:
            raise invalid_patch(at, "position")
        end = hunk.start + len(hunk.old)
        shift += len(hunk.new) - len(hunk.old)
        closed = any(side and not side[-1].endswith(b"\n") for side in (hunk.old, hunk.new))
        hunks.append(hunk)
        at = after
    # A lone hunk at line 1 without any context replaces the whole file, so the file must end with it.
    if len(hunks) == 1 and not hunks[0].start and not hunks[0].context:
        hunks = [replace(hunks[0], ends_file=True)]
    return tuple(hunks), at


def _parse_hunk(lines: list[bytes], at: int) -> tuple[Hunk, int, int]:
    old_start, old_count, new_start, new_count = _parse_numbers(lines[at], at)
    sides, after = _parse_body(lines, at + 1, old_count, new_count)
    if not sides.has_valid_markers():
        raise invalid_patch(at, "marker")
    if sides.old == sides.new:
        raise invalid_patch(at, "changes_nothing")
    # A marker after the last line means the end of the file, so it counts as no context.
    has_trailing_context = lines[after - 1][0] in (_BLANK, _LINE_FEED)
    hunk = Hunk(
        line=at,
        start=old_start,
        old=tuple(sides.old),
        new=tuple(sides.new),
        context=sides.context,
        # With context before the change but none after it, a diff says that the file ends there. A hunk that only
        # adds lines has nothing else to tie it to a place; removed lines tie the others.
        ends_file=bool(sides.context or not sides.old) and not has_trailing_context,
    )
    return hunk, new_start, after


def _parse_numbers(line: bytes, at: int) -> tuple[int, int, int, int]:
    header = _HEADER.fullmatch(line[:-1])
    if not header:
        raise invalid_patch(at, "hunk_header")
    if any(len(text) > _MAX_DIGITS or int(text) > _MAX_NUMBER for text in header.groups(b"1")):
        raise invalid_patch(at, "number")
    old_start, old_count, new_start, new_count = (int(text) for text in header.groups(b"1"))
    if not old_count and old_start:
        raise invalid_patch(at, "position")
    return _zero_based(old_start, old_count, at), old_count, _zero_based(new_start, new_count, at), new_count


def _zero_based(start: int, count: int, at: int) -> int:
    """Convert a start to count from 0. The header names an empty side by the line before it."""
    if count and not start:
        raise invalid_patch(at, "position")
    return start - 1 if count else start


def _parse_body(lines: list[bytes], at: int, old_count: int, new_count: int) -> tuple[_HunkSides, int]:
    sides = _HunkSides()
    old, new, last = sides.old, sides.new, len(lines)
    while len(old) < old_count or len(new) < new_count:
        if at == last:
            raise invalid_patch(at - 1, "counts")
        if lines[at][0] == _BACKSLASH:
            _apply_marker(sides, lines, at)
        else:
            sides.add(lines[at], at)
        at += 1
    if at < last and lines[at][0] == _BACKSLASH:
        _apply_marker(sides, lines, at)
        at += 1
    if len(old) != old_count or len(new) != new_count:
        raise invalid_patch(at - 1, "counts")
    return sides, at


def _apply_marker(sides: _HunkSides, lines: list[bytes], at: int) -> None:
    line = lines[at]
    if not line.startswith(b"\\ ") or len(line) < _MIN_MARKER_LENGTH or not (sides.old or sides.new):
        raise invalid_patch(at, "marker")
    sides.close(lines[at - 1], at)
