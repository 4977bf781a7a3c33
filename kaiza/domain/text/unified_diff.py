"""Unified diffs of file contents, in git's format. `kaiza.domain.patch` and `git apply` both accept them."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text.content_diff import ContentSpan, diff_contents
from kaiza.domain.text.line_diff import ChangedSpan

SpanT = TypeVar("SpanT")
CONTEXT_LINES = 3
MAX_DIFF_BYTES = 128 * 1024
"""Largest diff. A longer one is truncated at a line; its line counts are still those of the whole change."""

_NO_NEWLINE_MARKER = b"\n\\ No newline at end of file\n"
_PLAIN_BYTES = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
_ESCAPE_LETTERS = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


@dataclass(frozen=True, slots=True)
class FileDiff:
    """Diff of one file. `truncated`: `data` is not the whole diff."""

    data: bytes
    lines_added: int
    lines_removed: int
    truncated: bool

    @property
    def text(self) -> str:
        r"""Printable diff: each byte that is not UTF-8 becomes `\xNN`."""
        return self.data.decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One side of a diff. `content` is None if the file does not exist."""

    path: RelPath
    content: bytes | None
    mode: int = 0o644


def compare(
    old: FileVersion, new: FileVersion, *, replaced: Iterable[ChangedSpan] = (), max_bytes: int = MAX_DIFF_BYTES
) -> FileDiff:
    """Diff two versions of a file; empty if they are equal. `replaced`: as in `diff_contents`."""
    if (old.path, old.content, git_mode(old)) == (new.path, new.content, git_mode(new)):
        return FileDiff(b"", 0, 0, truncated=False)
    before, after = old.content or b"", new.content or b""
    spans = list(diff_contents(before, after, replaced))
    pieces = chain(format_header(old, new, with_hunks=bool(spans)), _hunks(before, after, spans))
    fitting: list[bytes] = []
    left = max_bytes
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            break
        fitting.append(piece)
    return FileDiff(b"".join(fitting), *_sum_spans(spans), truncated=left < 0)


def describe_binary(old: FileVersion, new: FileVersion) -> bytes:
    """What git shows instead of a diff of binary contents."""
    names = [
        b"/dev/null" if side.content is None else quote_name(prefix + _encode_path(side.path))
        for prefix, side in ((b"a/", old), (b"b/", new))
    ]
    return b"".join([*format_header(old, new, with_hunks=False), b"Binary files %s and %s differ\n" % tuple(names)])


def count_changed_lines(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Numbers of added and removed lines."""
    return _sum_spans(diff_contents(before or b"", after or b""))


def _sum_spans(spans: Iterable[ContentSpan]) -> tuple[int, int]:
    added = removed = 0
    for span in spans:
        added += span.lines.new_end - span.lines.new_start
        removed += span.lines.old_end - span.lines.old_start
    return added, removed


def format_header(old: FileVersion, new: FileVersion, *, with_hunks: bool) -> Iterator[bytes]:
    """Lines before the hunks: names, modes, and the rename."""
    names = b"a/" + _encode_path(old.path), b"b/" + _encode_path(new.path)
    yield b"diff --git %s %s\n" % (quote_name(names[0]), quote_name(names[1]))
    yield from _extended_header(old, new)
    if with_hunks:
        yield b"--- " + (b"/dev/null\n" if old.content is None else _header_name(names[0]))
        yield b"+++ " + (b"/dev/null\n" if new.content is None else _header_name(names[1]))


def _extended_header(old: FileVersion, new: FileVersion) -> Iterator[bytes]:
    if old.content is None:
        yield b"new file mode %s\n" % git_mode(new)
    elif new.content is None:
        yield b"deleted file mode %s\n" % git_mode(old)
    elif git_mode(old) != git_mode(new):
        yield b"old mode %s\nnew mode %s\n" % (git_mode(old), git_mode(new))
    if old.path != new.path:
        yield b"rename from %s\nrename to %s\n" % (
            quote_name(_encode_path(old.path)),
            quote_name(_encode_path(new.path)),
        )


def git_mode(file: FileVersion) -> bytes:
    """Mode as git writes it: only whether the owner may execute the file."""
    return b"100755" if file.mode & 0o100 else b"100644"


def _encode_path(path: RelPath) -> bytes:
    return str(path).encode(errors="surrogateescape")


def quote_name(name: bytes) -> bytes:
    """Quote a name as git does (`core.quotePath`): control characters, quotes, backslashes and non-ASCII bytes."""
    if _PLAIN_BYTES.issuperset(name):
        return name
    escaped = (
        bytes([byte]) if byte in _PLAIN_BYTES else b"\\" + _ESCAPE_LETTERS.get(byte, b"%03o" % byte) for byte in name
    )
    return b'"' + b"".join(escaped) + b'"'


def _header_name(name: bytes) -> bytes:
    """Name for `---` and `+++`. As in git and diff, a tab ends a name with blanks: a timestamp could follow."""
    return quote_name(name) + (b"\t\n" if b" " in name else b"\n")


def _hunks(before: bytes, after: bytes, spans: Sequence[ContentSpan]) -> Iterator[bytes]:
    for group in group_spans(spans, lambda span: span.lines):
        first, last = group[0], group[-1]
        start, lead = first.bytes.old_start, 0
        while start > 0 and lead < CONTEXT_LINES:
            start, lead = before.rfind(b"\n", 0, start - 1) + 1, lead + 1
        end, tail = last.bytes.old_end, 0
        while end < len(before) and tail < CONTEXT_LINES:
            end, tail = before.find(b"\n", end) + 1 or len(before), tail + 1
        yield b"@@ -%s +%s @@\n" % (
            _format_range(first.lines.old_start - lead, last.lines.old_end + tail),
            _format_range(first.lines.new_start - lead, last.lines.new_end + tail),
        )
        at = start
        for _, span in group:
            yield from _tag_lines(b" ", before[at : span.old_start])
            yield from _tag_lines(b"-", before[span.old_start : span.old_end])
            yield from _tag_lines(b"+", after[span.new_start : span.new_end])
            at = span.old_end
        yield from _tag_lines(b" ", before[at:end])


def group_spans(spans: Iterable[SpanT], lines_of: Callable[[SpanT], ChangedSpan]) -> Iterator[list[SpanT]]:
    """Group the spans whose context lines touch: each group is one hunk."""
    group: list[SpanT] = []
    for span in spans:
        if group and lines_of(span).old_start - lines_of(group[-1]).old_end > 2 * CONTEXT_LINES:
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _format_range(start: int, end: int) -> bytes:
    """Range of a hunk header: an empty range is named by the line before it, and a count of one is left out."""
    if end - start == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + (end > start), end - start)


def _tag_lines(tag: bytes, content: bytes) -> Iterator[bytes]:
    for line in io.BytesIO(content):
        yield tag + line if line.endswith(b"\n") else tag + line + _NO_NEWLINE_MARKER
