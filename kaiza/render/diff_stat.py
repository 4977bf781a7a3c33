"""Summary of diffs as `git diff --stat` shows it: one row a file, and the totals."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kaiza.render.terminal import display_width, escape_name, paint

_MIN_BAR = 10
_NO_TERMINAL_WIDTH = 80


@dataclass(frozen=True, slots=True)
class StatRow:
    """One file: its path, its earlier path, and its changed lines; None for a binary file."""

    path: str
    source: str | None
    lines: tuple[int, int] | None


def render_stat(rows: Sequence[StatRow], width: int | None, *, colour: bool = False) -> Iterator[str]:
    """The rows, with bars in proportion, and the totals. No path is cut."""
    names = [
        f"{escape_name(row.source)} => {escape_name(row.path)}" if row.source else escape_name(row.path) for row in rows
    ]
    counts = ["Bin" if row.lines is None else str(sum(row.lines)) for row in rows]
    name_room, count_room = max(map(display_width, names), default=0), max(map(len, counts), default=0)
    room = max((width or _NO_TERMINAL_WIDTH) - name_room - count_room - len("  |  "), _MIN_BAR)
    most = max((sum(row.lines) for row in rows if row.lines), default=0)
    for row, name, count in zip(rows, names, counts, strict=True):
        # At least one sign for anything that is not nothing.
        scaled = (
            lines if most <= room else (max(1, lines * room // most) if lines else 0) for lines in row.lines or (0, 0)
        )
        signs = zip("+-", ("green", "red"), scaled, strict=True)
        bar = "".join(paint(sign * length, style, colour=colour) for sign, style, length in signs)
        padding = " " * (name_room - display_width(name))
        yield f" {name}{padding} | {count.rjust(count_room)} {bar}".rstrip()
    added, removed = (sum(row.lines[side] for row in rows if row.lines) for side in (0, 1))
    parts = [f"{len(rows)} {'file' if len(rows) == 1 else 'files'} changed"]
    if added or not removed:
        parts.append(f"{added} {'insertion' if added == 1 else 'insertions'}(+)")
    if removed or not added:
        parts.append(f"{removed} {'deletion' if removed == 1 else 'deletions'}(-)")
    yield f" {', '.join(parts)}"
