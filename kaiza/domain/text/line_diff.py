"""Line diff with bounded work: Myers' algorithm, with a patience diff where that would take too long."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import compress

MAX_WORK = 500_000
"""Line comparisons of one diff. What is not matched by then counts as replaced."""

_MAX_DISTANCE = 1_000
_INVERTED = bytes([1, 0]) + bytes(254)


@dataclass(frozen=True, slots=True)
class ChangedSpan:
    """Old lines that became new lines. The ends are exclusive."""

    old_start: int
    old_end: int
    new_start: int
    new_end: int

    @property
    def is_one_sided(self) -> bool:
        """Whether one side has no lines, so that nothing is left to match."""
        return self.old_start == self.old_end or self.new_start == self.new_end

    @property
    def is_empty(self) -> bool:
        """Whether neither side has lines."""
        return self.old_start == self.old_end and self.new_start == self.new_end


def diff_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[ChangedSpan]:
    """Spans in which the two differ, in order, with equal lines between them."""
    head = _common_prefix_length(old, new)
    tail = _common_prefix_length(old[head:][::-1], new[head:][::-1])
    ours, theirs = old[head : len(old) - tail], new[head : len(new) - tail]
    # Lines that only one side has match nothing. Without them the search is much smaller.
    shared = set(ours).intersection(theirs)
    if not shared:
        whole = ChangedSpan(head, head + len(ours), head, head + len(theirs))
        return [] if whole.is_empty else [whole]
    rows, removed = _split_shared(ours, shared)
    columns, added = _split_shared(theirs, shared)
    for span in _MyersSearch([ours[row] for row in rows], [theirs[column] for column in columns]).run():
        for row in rows[span.old_start : span.old_end]:
            removed[row] = True
        for column in columns[span.new_start : span.new_end]:
            added[column] = True
    return list(_marked_spans(removed, added, head))


def _split_shared(lines: Sequence[bytes], shared: AbstractSet[bytes]) -> tuple[list[int], bytearray]:
    """Indices of the lines in `shared`, and a mark for each line: 1 if it is not."""
    is_shared = bytearray(map(shared.__contains__, lines))
    return list(compress(range(len(lines)), is_shared)), is_shared.translate(_INVERTED)


def _marked_spans(removed: bytearray, added: bytearray, head: int) -> Iterator[ChangedSpan]:
    """Spans of marked lines. Unmarked lines of the two sides correspond one to one."""
    x = y = 0
    while x < len(removed) or y < len(added):
        row, column = _run_end(removed, x, marked=False), _run_end(added, y, marked=False)
        step = min(row - x, column - y)
        x, y = x + step, y + step
        row, column = _run_end(removed, x, marked=True), _run_end(added, y, marked=True)
        if row > x or column > y:
            yield ChangedSpan(head + x, head + row, head + y, head + column)
        x, y = row, column


def _run_end(marks: bytearray, start: int, *, marked: bool) -> int:
    """End of the run of marked, or unmarked, lines."""
    end = marks.find(not marked, start)
    return len(marks) if end < 0 else end


def _common_prefix_length(old: Sequence[bytes], new: Sequence[bytes]) -> int:
    """Number of equal lines at the start. Bisects over slice comparisons, which run in C."""
    low, high = 0, min(len(old), len(new))
    while low < high:
        middle = (low + high + 1) // 2
        if old[low:middle] == new[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


class _MyersSearch:
    """Shortest edit script (Myers). A span over its share of the work is divided at unique lines (patience diff)."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        # Comparing numbers is faster than comparing lines.
        numbers: dict[bytes, int] = {}
        self._old = [numbers.setdefault(line, len(numbers)) for line in old]
        self._new = [numbers.setdefault(line, len(numbers)) for line in new]
        self._remaining_work = MAX_WORK

    def run(self) -> Iterator[ChangedSpan]:
        # A stack instead of recursion: hostile input could divide thousands of levels deep.
        pending = [ChangedSpan(0, len(self._old), 0, len(self._new))]
        while pending:
            span = self._trim_span(pending.pop())
            found = [span] if span.is_one_sided else self._shortest_script(span)
            if found is None:
                parts = self._divide_span(span)
                found = [span] if len(parts) == 1 else []
                pending += parts[::-1] if len(parts) > 1 else []
            yield from (span for span in found if not span.is_empty)

    def _trim_span(self, span: ChangedSpan) -> ChangedSpan:
        old, new = self._old, self._new
        low, high, left, right = span.old_start, span.old_end, span.new_start, span.new_end
        while low < high and left < right and old[low] == new[left]:
            low, left = low + 1, left + 1
        while low < high and left < right and old[high - 1] == new[right - 1]:
            high, right = high - 1, right - 1
        return ChangedSpan(low, high, left, right)

    def _shortest_script(self, span: ChangedSpan) -> list[ChangedSpan] | None:
        """A shortest edit script; None if it would take more than half of the remaining work."""
        old, new = self._old[span.old_start : span.old_end], self._new[span.new_start : span.new_end]
        most = min(len(old) + len(new), _MAX_DISTANCE)
        reach = [0] * (2 * most + 3)
        history: list[list[int]] = []
        allowed = self._remaining_work // 2
        for distance in range(most + 1):
            history.append(reach[most - distance : most + distance + 3])
            work, is_complete = _advance_diagonals(old, new, distance, reach)
            self._remaining_work -= work
            allowed -= work
            if is_complete:
                return _trace_back(history, span)
            if allowed < 0:
                break
        return None

    def _divide_span(self, span: ChangedSpan) -> list[ChangedSpan]:
        """Divide a span at the lines that both sides have exactly once, in the longest common order."""
        ours = _unique_lines(self._old, span.old_start, span.old_end)
        theirs = _unique_lines(self._new, span.new_start, span.new_end)
        parts: list[ChangedSpan] = []
        low, left = span.old_start, span.new_start
        for x, y in _longest_increasing(sorted((ours[line], theirs[line]) for line in ours.keys() & theirs.keys())):
            parts.append(ChangedSpan(low, x, left, y))
            low, left = x + 1, y + 1
        return [*parts, ChangedSpan(low, span.old_end, left, span.new_end)]


def _advance_diagonals(old: list[int], new: list[int], distance: int, reach: list[int]) -> tuple[int, bool]:
    """Advance every diagonal by one added or removed line. Returns the work, and whether one reached both ends."""
    middle, high, wide = len(reach) // 2, len(old), len(new)
    work = 0
    for diagonal in range(-distance, distance + 1, 2):
        at = middle + diagonal
        begin = x = reach[at + 1] if _is_down(reach, at, diagonal, distance) else reach[at - 1] + 1
        y = x - diagonal
        while x < high and y < wide and old[x] == new[y]:
            x, y = x + 1, y + 1
        reach[at] = x
        work += x - begin + 1
        if x >= high and y >= wide:
            return work, True
    return work, False


def _is_down(reach: list[int], at: int, diagonal: int, distance: int) -> bool:
    """Whether the diagonal is reached by an added line rather than a removed one."""
    return diagonal == -distance or (diagonal != distance and reach[at - 1] < reach[at + 1])


def _trace_back(history: list[list[int]], span: ChangedSpan) -> list[ChangedSpan]:
    """Follow the recorded diagonals from the end, and collect the added and removed lines."""
    x, y = span.old_end - span.old_start, span.new_end - span.new_start
    spans: list[ChangedSpan] = []
    for distance in range(len(history) - 1, 0, -1):
        reach, diagonal = history[distance], x - y
        at = diagonal + distance + 1
        down = _is_down(reach, at, diagonal, distance)
        x = reach[at + 1] if down else reach[at - 1]
        y = x - (diagonal + 1 if down else diagonal - 1)
        row, column = span.old_start + x, span.new_start + y
        spans.append(ChangedSpan(row, row if down else row + 1, column, column + 1 if down else column))
    return spans[::-1]


def _unique_lines(numbers: list[int], start: int, end: int) -> dict[int, int]:
    """Position of each line that occurs exactly once in the range."""
    places: dict[int, int] = {}
    for at in range(start, end):
        places[numbers[at]] = -1 if numbers[at] in places else at
    return {line: at for line, at in places.items() if at >= 0}


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Longest subsequence of the sorted pairs that increases on both sides (patience sorting)."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for at, (_, y) in enumerate(pairs):
        place = bisect_left(tails, y)
        before.append(ends[place - 1] if place else -1)
        tails[place : place + 1] = [y]
        ends[place : place + 1] = [at]
    chain: list[tuple[int, int]] = []
    at = ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]
