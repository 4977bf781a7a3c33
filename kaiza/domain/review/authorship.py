"""Authors of the lines of a file, found by walking its versions forward, as `git blame` does."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain.text.line_diff import ChangedSpan, diff_lines


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

    def as_json(self) -> dict[str, Any] | str | None:
        """The call, `without Kaiza`, or null if the author is not known."""
        if self.seq is not None:
            return {"seq": self.seq, "request_id": self.request_id}
        return "without Kaiza" if self.is_known else None


WITHOUT_KAIZA = LineAuthor(None, is_selected=False)
UNKNOWN_AUTHOR = LineAuthor(None, is_selected=False, is_known=False)


@dataclass(frozen=True, slots=True)
class AuthoredVersion:
    """Content of a file after a change, and who made the change. `lines` None: the content was not kept."""

    lines: Sequence[bytes] | None
    author: LineAuthor


@dataclass(frozen=True, slots=True)
class AuthoredDiff:
    """Difference of the first and the last version: spans, and the author of each removed and each added line."""

    old: Sequence[bytes]
    new: Sequence[bytes]
    spans: tuple[ChangedSpan, ...]
    removed_by: dict[int, LineAuthor]
    added_by: dict[int, LineAuthor]

    def count_lines(self, *, selected_only: bool = False) -> tuple[int, int]:
        """Numbers of added and removed lines; on request only those by calls that the report is about."""
        added, removed = self.added_by.values(), self.removed_by.values()
        if not selected_only:
            return len(added), len(removed)
        return sum(author.is_selected for author in added), sum(author.is_selected for author in removed)


@dataclass(slots=True)
class _Line:
    """A line of the version at hand: its number in the first version, or None, and its author."""

    origin: int | None
    author: LineAuthor


def compare_versions(first: Sequence[bytes], versions: Sequence[AuthoredVersion]) -> AuthoredDiff:
    """Diff the first content with that of the last version, whose `lines` must be known.

    Where contents in between were not kept, lines are attributed only if one author made all of these changes.
    """
    content: Sequence[bytes] = first
    lines = [_Line(number, UNKNOWN_AUTHOR) for number in range(len(first))]
    removed_by: dict[int, LineAuthor] = {}
    skipped: set[LineAuthor] = set()
    for version in versions:
        skipped.add(version.author)
        if version.lines is None:
            continue
        author = version.author if len(skipped) == 1 else UNKNOWN_AUTHOR
        lines = _follow_lines(lines, diff_lines(content, version.lines), author, removed_by)
        content, skipped = version.lines, set()
    spans = tuple(_net_spans(first, content, [line.origin for line in lines]))
    return AuthoredDiff(
        first,
        content,
        spans,
        {old: removed_by.get(old, UNKNOWN_AUTHOR) for span in spans for old in range(span.old_start, span.old_end)},
        {new: lines[new].author for span in spans for new in range(span.new_start, span.new_end)},
    )


def _follow_lines(
    lines: Sequence[_Line], spans: Iterable[ChangedSpan], author: LineAuthor, removed_by: dict[int, LineAuthor]
) -> list[_Line]:
    """The lines of the next version; lines of the first version that it no longer has are noted in `removed_by`."""
    followed: list[_Line] = []
    at = 0
    for span in spans:
        followed += lines[at : span.old_start]
        for line in lines[span.old_start : span.old_end]:
            if line.origin is not None:
                removed_by[line.origin] = author
        followed += [_Line(None, author) for _ in range(span.new_start, span.new_end)]
        at = span.old_end
    return [*followed, *lines[at:]]


def _net_spans(first: Sequence[bytes], last: Sequence[bytes], origins: Sequence[int | None]) -> Iterator[ChangedSpan]:
    """Spans between the lines that survived from the first version, without lines that were only put back."""
    at_old = at_new = 0
    survivors = [(origin, new) for new, origin in enumerate(origins) if origin is not None]
    for old, new in [*survivors, (len(first), len(last))]:
        if old > at_old or new > at_new:
            # A line that one change removed and another wrote again did not survive, but is no difference either.
            for span in diff_lines(first[at_old:old], last[at_new:new]):
                yield ChangedSpan(
                    at_old + span.old_start, at_old + span.old_end, at_new + span.new_start, at_new + span.new_end
                )
        at_old, at_new = old + 1, new + 1
