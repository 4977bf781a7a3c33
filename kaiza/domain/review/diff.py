"""Diffs of the report: hunks whose every changed line names the call that wrote or removed it.

What is too long, binary or not kept is not shown, and the diff says why.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from kaiza.domain.review.authorship import AuthoredDiff, LineAuthor
from kaiza.domain.review.json_document import HIDDEN, IF_SET, in_json_as
from kaiza.domain.text.line_diff import ChangedSpan, diff_lines
from kaiza.domain.text.unified_diff import CONTEXT_LINES, group_spans

MAX_CHANGED_LINES = 800
"""Changed lines of a diff that is shown; a longer one is folded."""
MAX_LINE_CHARACTERS = 2_000
"""Characters of a line that are kept; `omitted` counts the others."""
MAX_COMPARED_CHARACTERS = 500
"""Longer lines are not compared by word."""
_MIN_SHARED = 0.4
_BINARY_PROBE = 8_000
_WORD = re.compile(r"\w+|\s+|.", re.DOTALL)

LineKind = Literal["context", "removed", "added"]
FoldReason = Literal["large", "oversized", "binary", "not_kept", "unreadable", "too_many"]
Ranges = tuple[tuple[int, int], ...]
_FOLDS: dict[FoldReason, str] = {
    "binary": "Binary content is not shown.",
    "oversized": "Contents of more than 1 MiB are not shown.",
    "not_kept": "Old content not kept.",
    "unreadable": "The file cannot be read now.",
    "too_many": "There are too many changes to show all of them.",
}


@dataclass(frozen=True, slots=True)
class DiffLine:
    r"""One line. `author` is None for context.

    `text` has no line feed, and each byte that is not UTF-8 is written `\xNN`. Control characters and other invisible
    ones are in it as they are: each form names them. `words` are the ranges of characters that differ from the
    line on the other side.
    """

    kind: LineKind
    old_number: int | None = field(metadata=HIDDEN)
    new_number: int | None = field(metadata=HIDDEN)
    text: str
    author: LineAuthor | None = field(default=None, metadata=in_json_as("by") | IF_SET)
    words: Ranges = field(default=(), metadata=IF_SET)
    omitted: int = field(default=0, metadata=IF_SET)
    """Characters that were cut off the end of `text`."""
    lacks_newline: bool = field(default=False, metadata=IF_SET)
    """Whether the file ends in this line without a line feed."""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines of a change with up to three of context on each side. Lines count from 1, as in a unified diff."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    unchanged_before: int = field(default=0, metadata=HIDDEN)
    """Unchanged lines between the hunk before, or the start of the file, and this one."""


@dataclass(frozen=True, slots=True)
class DiffFold:
    """Why a diff is not shown, in a sentence."""

    reason: FoldReason
    sentence: str


@dataclass(frozen=True, slots=True)
class ReviewDiff:
    """A diff. The counts are those of the whole diff, even if it is folded; None if they are not known."""

    hunks: tuple[DiffHunk, ...] = ()
    lines_added: int | None = field(default=0, metadata=HIDDEN)
    lines_removed: int | None = field(default=0, metadata=HIDDEN)
    unchanged_after: int = field(default=0, metadata=HIDDEN)
    """Unchanged lines after the last hunk."""
    fold: DiffFold | None = field(default=None, metadata=in_json_as("not_shown"))


def split_content(content: bytes) -> list[bytes]:
    """Lines of a content, with their line feeds."""
    return io.BytesIO(content).readlines()


def is_binary(content: bytes | None) -> bool:
    """Whether git would call the content binary: there is a NUL among the first 8,000 bytes."""
    return content is not None and b"\0" in content[:_BINARY_PROBE]


def fold_diff(reason: FoldReason) -> ReviewDiff:
    """A diff that is not shown, and whose lines are not counted."""
    return ReviewDiff((), None, None, 0, DiffFold(reason, _FOLDS[reason]))


def build_diff(authored: AuthoredDiff) -> ReviewDiff:
    """Show a diff in hunks, or fold it if it is too long."""
    added, removed = authored.count_lines()
    if added + removed > MAX_CHANGED_LINES:
        sentence = f"{added + removed:,} changed lines are not shown; up to {MAX_CHANGED_LINES} are."
        return ReviewDiff((), added, removed, 0, DiffFold("large", sentence))
    hunks: list[DiffHunk] = []
    shown = 0
    for group in group_spans(authored.spans, lambda span: span):
        first, last = group[0], group[-1]
        low, high = max(first.old_start - CONTEXT_LINES, 0), min(last.old_end + CONTEXT_LINES, len(authored.old))
        left, right = first.new_start - (first.old_start - low), last.new_end + (high - last.old_end)
        lines = tuple(_hunk_lines(authored, group, low, high))
        # As in git, a side without lines is at the line before.
        old_start, new_start = low + (high > low), left + (right > left)
        hunks.append(DiffHunk(old_start, high - low, new_start, right - left, lines, low - shown))
        shown = high
    return ReviewDiff(tuple(hunks), added, removed, len(authored.old) - shown if hunks else 0)


def _hunk_lines(authored: AuthoredDiff, group: Sequence[ChangedSpan], low: int, high: int) -> Iterator[DiffLine]:
    """The lines of a group of spans, with the context from `low` to `high` in the old content."""
    at, shift = low, group[0].new_start - group[0].old_start
    for span in group:
        for old in range(at, span.old_start):
            yield _new_line("context", authored.old[old], old, old + shift)
        yield from _changed_lines(authored, span)
        at, shift = span.old_end, span.new_end - span.old_end
    for old in range(at, high):
        yield _new_line("context", authored.old[old], old, old + shift)


def _changed_lines(authored: AuthoredDiff, span: ChangedSpan) -> Iterator[DiffLine]:
    olds, news = range(span.old_start, span.old_end), range(span.new_start, span.new_end)
    pairs: list[tuple[Ranges, Ranges]] = [((), ())] * max(len(olds), len(news))
    # Only replaced lines in equal number are compared word by word: which line became which is a guess otherwise.
    if len(olds) == len(news):
        lines = zip(authored.old[olds.start : olds.stop], authored.new[news.start : news.stop], strict=True)
        pairs = [compare_words(_text_of(old), _text_of(new)) for old, new in lines]
    for old, (words, _) in zip(olds, pairs, strict=False):
        yield _new_line("removed", authored.old[old], old, None, authored.removed_by[old], words)
    for new, (_, words) in zip(news, pairs, strict=False):
        yield _new_line("added", authored.new[new], None, new, authored.added_by[new], words)


def _new_line(
    kind: LineKind, line: bytes, old: int | None, new: int | None, author: LineAuthor | None = None, words: Ranges = ()
) -> DiffLine:
    text = _text_of(line)
    return DiffLine(
        kind,
        None if old is None else old + 1,
        None if new is None else new + 1,
        text[:MAX_LINE_CHARACTERS],
        author,
        words,
        omitted=max(len(text) - MAX_LINE_CHARACTERS, 0),
        lacks_newline=not line.endswith(b"\n"),
    )


def _text_of(line: bytes) -> str:
    return line.removesuffix(b"\n").decode(errors="backslashreplace")


def compare_words(old: str, new: str) -> tuple[Ranges, Ranges]:
    """Ranges of the old and of the new line that differ; none if the lines share too little to be compared."""
    if max(len(old), len(new)) > MAX_COMPARED_CHARACTERS:
        return (), ()
    before, after = _WORD.findall(old), _WORD.findall(new)
    spans = diff_lines(
        [word.encode(errors="surrogatepass") for word in before],
        [word.encode(errors="surrogatepass") for word in after],
    )
    left = _character_ranges(before, [(span.old_start, span.old_end) for span in spans])
    right = _character_ranges(after, [(span.new_start, span.new_end) for span in spans])
    # Blanks around a line do not count as shared: two lines of code with the same indentation may share nothing else.
    shared = len(old.strip()) - sum(end - start for start, end in left)
    return (left, right) if shared >= _MIN_SHARED * max(len(old.strip()), len(new.strip()), 1) else ((), ())


def _character_ranges(words: list[str], spans: list[tuple[int, int]]) -> Ranges:
    """Ranges of characters for ranges of words."""
    offsets = [0]
    for word in words:
        offsets.append(offsets[-1] + len(word))
    return tuple((offsets[start], offsets[end]) for start, end in spans if start < end)
