"""Hunks of a diff whose lines name their authors; what is too long, binary or not kept is folded, and says why."""

import io
from collections.abc import Iterator, Sequence

from kaiza.domain.review.authorship import AuthoredDiff
from kaiza.domain.review.diff import (
    MAX_CHANGED_LINES,
    MAX_LINE_CHARACTERS,
    DiffFold,
    DiffHunk,
    DiffLine,
    FoldReason,
    LineAuthor,
    LineKind,
    ReviewDiff,
)
from kaiza.domain.review.words import Ranges, compare_words
from kaiza.domain.text.line_diff import ChangedSpan
from kaiza.domain.text.unified_diff import CONTEXT_LINES, group_spans

_BINARY_PROBE = 8_000
_FOLDS: dict[FoldReason, str] = {
    "binary": "Binary content is not shown.",
    "oversized": "Contents of more than 1 MiB are not shown.",
    "not_kept": "Old content not kept.",
    "unreadable": "The file cannot be read now.",
    "too_many": "There are too many changes to show all of them.",
}


def split_content(content: bytes) -> list[bytes]:
    """Lines of a content, with their line feeds."""
    return io.BytesIO(content).readlines()


def is_binary(content: bytes | None) -> bool:
    """Whether git would call the content binary: there is a NUL among the first 8,000 bytes."""
    return content is not None and b"\0" in content[:_BINARY_PROBE]


def fold_diff(reason: FoldReason) -> ReviewDiff:
    """A diff that is not shown."""
    return ReviewDiff((), None, None, 0, DiffFold(reason, _FOLDS[reason]))


def build_diff(authored: AuthoredDiff) -> ReviewDiff:
    """Show a diff in hunks, or fold it if it is too long."""
    added, removed = authored.count_lines()
    if added + removed > MAX_CHANGED_LINES:
        sentence = f"{added + removed:,} changed lines are not shown; up to {MAX_CHANGED_LINES} are."
        return ReviewDiff((), added, removed, 0, DiffFold("large", sentence))
    hunks: list[DiffHunk] = []
    at = 0
    for group in group_spans(authored.spans, lambda span: span):
        hunks.append(_build_hunk(authored, group, at))
        at = min(group[-1].old_end + CONTEXT_LINES, len(authored.old))
    return ReviewDiff(tuple(hunks), added, removed, len(authored.old) - at if hunks else 0)


def _build_hunk(authored: AuthoredDiff, group: Sequence[ChangedSpan], shown: int) -> DiffHunk:
    """One hunk; `shown` is the end of the one before in the old content."""
    first, last = group[0], group[-1]
    low, high = max(first.old_start - CONTEXT_LINES, 0), min(last.old_end + CONTEXT_LINES, len(authored.old))
    left, right = first.new_start - (first.old_start - low), last.new_end + (high - last.old_end)
    old_start, new_start = low + (high > low), left + (right > left)
    lines = tuple(_hunk_lines(authored, group, low, high))
    return DiffHunk(old_start, high - low, new_start, right - left, lines, low - shown)


def _hunk_lines(authored: AuthoredDiff, group: Sequence[ChangedSpan], low: int, high: int) -> Iterator[DiffLine]:
    at, shift = low, group[0].new_start - group[0].old_start
    for span in group:
        yield from _context_lines(authored, at, span.old_start, shift)
        yield from _changed_lines(authored, span)
        at, shift = span.old_end, span.new_end - span.old_end
    yield from _context_lines(authored, at, high, shift)


def _context_lines(authored: AuthoredDiff, start: int, end: int, shift: int) -> Iterator[DiffLine]:
    for old in range(start, end):
        yield _new_line("context", authored.old[old], old, old + shift)


def _changed_lines(authored: AuthoredDiff, span: ChangedSpan) -> Iterator[DiffLine]:
    olds, news = range(span.old_start, span.old_end), range(span.new_start, span.new_end)
    # Only replaced lines in equal number are compared word by word: which line became which is a guess otherwise.
    is_paired = len(olds) == len(news)
    pairs = [
        compare_words(_text_of(authored.old[old]), _text_of(authored.new[new]))
        for old, new in zip(olds, news, strict=False)
        if is_paired
    ]
    for at, old in enumerate(olds):
        words = pairs[at][0] if is_paired else ()
        yield _new_line("removed", authored.old[old], old, None, authored.removed_by[old], words)
    for at, new in enumerate(news):
        words = pairs[at][1] if is_paired else ()
        yield _new_line("added", authored.new[new], None, new, authored.added_by[new], words)


def _new_line(
    kind: LineKind, line: bytes, old: int | None, new: int | None, author: LineAuthor | None = None, words: Ranges = ()
) -> DiffLine:
    text = _text_of(line)
    numbers = None if old is None else old + 1, None if new is None else new + 1
    return DiffLine(
        kind,
        *numbers,
        text[:MAX_LINE_CHARACTERS],
        author,
        words,
        omitted=max(len(text) - MAX_LINE_CHARACTERS, 0),
        lacks_newline=not line.endswith(b"\n"),
    )


def _text_of(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="backslashreplace")
