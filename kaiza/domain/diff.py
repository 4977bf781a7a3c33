"""A unified diff over bytes, right to the end of the file, bounded in size and in work; the strict reader takes it."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from kaiza.domain.line_match import Span, changed
from kaiza.domain.paths import RelPath

CONTEXT = 3
LARGEST = 128 * 1024
"""So many bytes are shown; the counts are of the whole."""

_MARKER = b"\n\\ No newline at end of file\n"
_PLAIN = frozenset(range(0x20, 0x7F)) - frozenset(b'"\\')
_LETTERS = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


@dataclass(frozen=True, slots=True)
class Diff:
    """What became of one file. `truncated`: not all of it is in `data`."""

    data: bytes
    lines_added: int
    lines_removed: int
    truncated: bool

    @property
    def text(self) -> str:
        r"""The diff to look at; a byte that is not UTF-8 shows as `\xNN`."""
        return self.data.decode(errors="backslashreplace")


@dataclass(frozen=True, slots=True)
class File:
    """A file on one side of a diff; no content, no file."""

    path: RelPath
    content: bytes | None
    mode: int = 0o644


def unified(old: File, new: File, *, largest: int = LARGEST) -> Diff:
    """Tell one file's change; where there is none, the diff is empty."""
    if (old.path, old.content, _mode(old)) == (new.path, new.content, _mode(new)):
        return Diff(b"", 0, 0, truncated=False)
    before, after = _lines(old.content), _lines(new.content)
    spans = changed(before, after)
    pieces = chain(_header(old, new, with_hunks=bool(spans)), _hunks(before, after, spans))
    data, truncated = _cut(pieces, largest)
    return Diff(data, *_total(spans), truncated)


def counts(before: bytes | None, after: bytes | None) -> tuple[int, int]:
    """How many lines were added and removed."""
    return _total(changed(_lines(before), _lines(after)))


def _total(spans: Sequence[Span]) -> tuple[int, int]:
    added = sum(span.new_end - span.new_start for span in spans)
    return added, sum(span.old_end - span.old_start for span in spans)


def _lines(content: bytes | None) -> list[bytes]:
    return io.BytesIO(content or b"").readlines()


def _header(old: File, new: File, *, with_hunks: bool) -> Iterator[bytes]:
    names = b"a/" + _bytes(old.path), b"b/" + _bytes(new.path)
    yield b"diff --git %s %s\n" % (_spelled(names[0]), _spelled(names[1]))
    yield from _fate(old, new)
    if with_hunks:
        yield b"--- " + (b"/dev/null\n" if old.content is None else _ended(names[0]))
        yield b"+++ " + (b"/dev/null\n" if new.content is None else _ended(names[1]))


def _fate(old: File, new: File) -> Iterator[bytes]:
    if old.content is None:
        yield b"new file mode %s\n" % _mode(new)
    elif new.content is None:
        yield b"deleted file mode %s\n" % _mode(old)
    elif _mode(old) != _mode(new):
        yield b"old mode %s\nnew mode %s\n" % (_mode(old), _mode(new))
    if old.path != new.path:
        yield b"rename from %s\nrename to %s\n" % (_spelled(_bytes(old.path)), _spelled(_bytes(new.path)))


def _mode(file: File) -> bytes:
    return b"100755" if file.mode & 0o100 else b"100644"


def _bytes(path: RelPath) -> bytes:
    return str(path).encode(errors="surrogateescape")


def _spelled(name: bytes) -> bytes:
    """A name as git spells it: quoted where it holds what a line or a reader would stumble over."""
    if _PLAIN.issuperset(name):
        return name
    return b'"' + b"".join(_escaped(byte) for byte in name) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in _PLAIN:
        return bytes([byte])
    return b"\\" + _LETTERS.get(byte, b"%03o" % byte)


def _ended(name: bytes) -> bytes:
    """A name as `---` and `+++` carry it: a tab ends one that holds a blank."""
    return _spelled(name) + (b"\t\n" if b" " in name else b"\n")


def _hunks(before: list[bytes], after: list[bytes], spans: Sequence[Span]) -> Iterator[bytes]:
    for group in _grouped(spans):
        first, last = group[0], group[-1]
        low = max(first.old_start - CONTEXT, 0)
        high = min(last.old_end + CONTEXT, len(before))
        left, right = first.new_start - (first.old_start - low), last.new_end + (high - last.old_end)
        yield b"@@ -%s +%s @@\n" % (_range(low, high), _range(left, right))
        at = low
        for span in group:
            yield from _marked(b" ", before[at : span.old_start])
            yield from _marked(b"-", before[span.old_start : span.old_end])
            yield from _marked(b"+", after[span.new_start : span.new_end])
            at = span.old_end
        yield from _marked(b" ", before[at:high])


def _grouped(spans: Sequence[Span]) -> Iterator[list[Span]]:
    """Spans whose context would touch share a hunk."""
    group: list[Span] = []
    for span in spans:
        if group and span.old_start - group[-1].old_end > 2 * CONTEXT:
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _range(start: int, end: int) -> bytes:
    """An empty side is named by the line before it; a count of one is left out."""
    if end - start == 1:
        return b"%d" % (start + 1)
    return b"%d,%d" % (start + (end > start), end - start)


def _marked(tag: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield tag + line if line.endswith(b"\n") else tag + line + _MARKER


def _cut(pieces: Iterator[bytes], largest: int) -> tuple[bytes, bool]:
    """The first pieces that fit, whole."""
    kept: list[bytes] = []
    left = largest
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            return b"".join(kept), True
        kept.append(piece)
    return b"".join(kept), False
