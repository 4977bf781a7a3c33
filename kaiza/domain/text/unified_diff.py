"""Unified diffs of file contents, in git's format. `kaiza.domain.patch` and `git apply` both accept them."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text.line_diff import ChangedSpan, diff_lines

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


def compare(old: FileVersion, new: FileVersion, *, max_bytes: int = MAX_DIFF_BYTES) -> FileDiff:
    """Diff two versions of a file; empty if they are equal."""
    if (old.path, old.content, _git_mode(old)) == (new.path, new.content, _git_mode(new)):
        return FileDiff(b"", 0, 0, truncated=False)
    before, after = _split_lines(old.content), _split_lines(new.content)
    spans = diff_lines(before, after)
    pieces = chain(_header(old, new, with_hunks=bool(spans)), _hunks(before, after, spans))
    data, truncated = _truncate_pieces(pieces, max_bytes)
    return FileDiff(data, *_sum_spans(spans), truncated)


def count_changed_lines(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """Numbers of added and removed lines."""
    return _sum_spans(diff_lines(_split_lines(before), _split_lines(after)))


def _sum_spans(spans: Sequence[ChangedSpan]) -> tuple[int, int]:
    added = sum(span.new_end - span.new_start for span in spans)
    return added, sum(span.old_end - span.old_start for span in spans)


def _split_lines(content: bytes | None) -> list[bytes]:
    return io.BytesIO(content or b"").readlines()


def _header(old: FileVersion, new: FileVersion, *, with_hunks: bool) -> Iterator[bytes]:
    names = b"a/" + _encode_path(old.path), b"b/" + _encode_path(new.path)
    yield b"diff --git %s %s\n" % (_quote_name(names[0]), _quote_name(names[1]))
    yield from _extended_header(old, new)
    if with_hunks:
        yield b"--- " + (b"/dev/null\n" if old.content is None else _header_name(names[0]))
        yield b"+++ " + (b"/dev/null\n" if new.content is None else _header_name(names[1]))


def _extended_header(old: FileVersion, new: FileVersion) -> Iterator[bytes]:
    if old.content is None:
        yield b"new file mode %s\n" % _git_mode(new)
    elif new.content is None:
        yield b"deleted file mode %s\n" % _git_mode(old)
    elif _git_mode(old) != _git_mode(new):
        yield b"old mode %s\nnew mode %s\n" % (_git_mode(old), _git_mode(new))
    if old.path != new.path:
        yield b"rename from %s\nrename to %s\n" % (
            _quote_name(_encode_path(old.path)),
            _quote_name(_encode_path(new.path)),
        )


def _git_mode(file: FileVersion) -> bytes:
    return b"100755" if file.mode & 0o100 else b"100644"


def _encode_path(path: RelPath) -> bytes:
    return str(path).encode(errors="surrogateescape")


def _quote_name(name: bytes) -> bytes:
    """Quote a name as git does (`core.quotePath`): control characters, quotes, backslashes and non-ASCII bytes."""
    if _PLAIN_BYTES.issuperset(name):
        return name
    return b'"' + b"".join(_escape_byte(byte) for byte in name) + b'"'


def _escape_byte(byte: int) -> bytes:
    if byte in _PLAIN_BYTES:
        return bytes([byte])
    return b"\\" + _ESCAPE_LETTERS.get(byte, b"%03o" % byte)


def _header_name(name: bytes) -> bytes:
    """Name for `---` and `+++`. As in git and diff, a tab ends a name with blanks: a timestamp could follow."""
    return _quote_name(name) + (b"\t\n" if b" " in name else b"\n")


def _hunks(before: list[bytes], after: list[bytes], spans: Sequence[ChangedSpan]) -> Iterator[bytes]:
    for group in _group_spans(spans):
        first, last = group[0], group[-1]
        low = max(first.old_start - CONTEXT_LINES, 0)
        high = min(last.old_end + CONTEXT_LINES, len(before))
        left, right = first.new_start - (first.old_start - low), last.new_end + (high - last.old_end)
        yield b"@@ -%s +%s @@\n" % (_format_range(low, high), _format_range(left, right))
        at = low
        for span in group:
            yield from _tag_lines(b" ", before[at : span.old_start])
            yield from _tag_lines(b"-", before[span.old_start : span.old_end])
            yield from _tag_lines(b"+", after[span.new_start : span.new_end])
            at = span.old_end
        yield from _tag_lines(b" ", before[at:high])


def _group_spans(spans: Sequence[ChangedSpan]) -> Iterator[list[ChangedSpan]]:
    """Group the spans whose context lines touch: each group is one hunk."""
    group: list[ChangedSpan] = []
    for span in spans:
        if group and span.old_start - group[-1].old_end > 2 * CONTEXT_LINES:
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


def _tag_lines(tag: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield tag + line if line.endswith(b"\n") else tag + line + _NO_NEWLINE_MARKER


def _truncate_pieces(pieces: Iterator[bytes], max_bytes: int) -> tuple[bytes, bool]:
    """Join pieces up to `max_bytes`, and whether some were left out."""
    fitting: list[bytes] = []
    left = max_bytes
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            return b"".join(fitting), True
        fitting.append(piece)
    return b"".join(fitting), False
