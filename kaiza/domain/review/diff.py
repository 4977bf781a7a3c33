"""Diffs of the report: hunks whose every changed line names the call that wrote or removed it."""

from dataclasses import dataclass
from typing import Literal

MAX_CHANGED_LINES = 800
"""Changed lines of a diff that is shown; a longer one is folded."""
MAX_LINE_CHARACTERS = 2_000
"""Characters of a line that are kept; `omitted` counts the others."""

LineKind = Literal["context", "removed", "added"]
FoldReason = Literal["large", "oversized", "binary", "not_kept", "unreadable", "too_many"]


@dataclass(frozen=True, slots=True)
class LineAuthor:
    """Who wrote or removed a line. `seq` None: it happened without Kaiza, unless the author is not known at all.

    `is_selected`: the call is one of those that the report is about; False for a later call of another session or plan.
    """

    seq: int | None
    request_id: str | None = None
    is_selected: bool = True
    is_known: bool = True
    """False if contents between several changes were not kept, so that the line may be of any of them."""


WITHOUT_KAIZA = LineAuthor(None, is_selected=False)
UNKNOWN_AUTHOR = LineAuthor(None, is_selected=False, is_known=False)


@dataclass(frozen=True, slots=True)
class DiffLine:
    r"""One line. `author` is None for context.

    `text` has no line feed, and each byte that is not UTF-8 is written `\xNN`. Control characters and other invisible
    ones are in it as they are: each form names them. `words` are the ranges of characters that differ from the
    line on the other side.
    """

    kind: LineKind
    old_number: int | None
    new_number: int | None
    text: str
    author: LineAuthor | None = None
    words: tuple[tuple[int, int], ...] = ()
    omitted: int = 0
    """Characters that were cut off the end of `text`."""
    lacks_newline: bool = False
    """Whether the file ends in this line without a line feed."""


@dataclass(frozen=True, slots=True)
class DiffHunk:
    """Lines of a change with up to three of context on each side. Lines count from 1, as in a unified diff."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: tuple[DiffLine, ...]
    unchanged_before: int = 0
    """Unchanged lines between the hunk before, or the start of the file, and this one."""


@dataclass(frozen=True, slots=True)
class DiffFold:
    """Why a diff is not shown, in a sentence."""

    reason: FoldReason
    sentence: str


@dataclass(frozen=True, slots=True)
class ReviewDiff:
    """A diff. The counts are those of the whole diff, also if it is folded; None if they are not known."""

    hunks: tuple[DiffHunk, ...] = ()
    lines_added: int | None = 0
    lines_removed: int | None = 0
    unchanged_after: int = 0
    """Unchanged lines after the last hunk."""
    fold: DiffFold | None = None
