"""Rows in aligned columns, lazily: widths are measured on a sample, so that a million rows take no memory.

No cell is ever cut. A cell that does not fit its column is printed whole below its row, with the column's title.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from kaiza.render import terminal

GAP = "  "
SAMPLE_SIZE = 500
_BELOW = "    "


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Where room is short, the `moves_below` ones leave the row first, then the `min_width` ones narrow.

    A cell of an `is_whole` column that does not fit is not wrapped between words: people copy it.
    """

    title: str
    min_width: int | None = None
    moves_below: bool = False
    is_whole: bool = False
    align_right: bool = False
    expected_width: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """The text of one cell, already escaped, and its style."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their widths, 0 for a column whose cells go below the row. No `width`: everything on one line."""

    columns: Sequence[Column]
    widths: Sequence[int]
    width: int | None = None
    gap: str = GAP
    colour: bool = False

    def header(self) -> str:
        """The line of titles."""
        return self._format_row([Cell(column.title, "dim") for column in self.columns])

    def lines(self, cells: Sequence[Cell]) -> Iterator[str]:
        """One row, and below it the cells that do not fit."""
        is_inside = [
            self.width is None or not cell.text or terminal.display_width(cell.text) <= width
            for cell, width in zip(cells, self.widths, strict=True)
        ]
        if not is_inside[0]:
            first = terminal.wrap([cells[0].text], self.width)
            yield from (terminal.paint(part, cells[0].style, colour=self.colour) for part in first)
        row = self._format_row([cell if inside else Cell("") for cell, inside in zip(cells, is_inside, strict=True)])
        if row:
            yield row
        if self.width is not None:
            outside = [at for at in range(1, len(cells)) if not is_inside[at]]
            yield from _lines_below([(self.columns[at], cells[at].text) for at in outside], self.width)

    def _format_row(self, cells: Sequence[Cell]) -> str:
        inside = [at for at in range(len(cells)) if self.widths[at]]
        texts = []
        for at in inside:
            cell, is_right = cells[at], self.columns[at].align_right
            blank = " " * (self.widths[at] - terminal.display_width(cell.text)) if is_right or at != inside[-1] else ""
            painted = terminal.paint(cell.text, cell.style, colour=self.colour)
            texts.append(blank + painted if is_right else painted + blank)
        return self.gap.join(texts).rstrip()


def fit(
    columns: Sequence[Column],
    sample: Iterable[Sequence[Cell]],
    width: int | None,
    *,
    colour: bool,
    gap: str = GAP,
) -> Table:
    """A table as wide as its sample needs; where that is too wide, columns move below the row or narrow."""
    widths = [max(terminal.display_width(column.title), column.expected_width) for column in columns]
    for row in sample:
        widths = [max(least, terminal.display_width(cell.text)) for least, cell in zip(widths, row, strict=True)]
    if width is not None:
        _move_below([at for at, column in enumerate(columns) if column.moves_below], widths, width, gap)
        _narrow(columns, widths, _excess(widths, width, gap))
        _move_below(range(1, len(columns)), widths, width, gap)
        widths[0] = min(widths[0], width)
    return Table(columns, widths, width, gap=gap, colour=colour)


def render_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None, *, colour: bool
) -> Iterator[str]:
    """A whole table, lazily: the first rows decide the widths, the rest are read one by one."""
    rows = iter(rows)
    sample = list(islice(rows, SAMPLE_SIZE))
    table = fit(columns, sample, width, colour=colour)
    yield table.header()
    for row in chain(sample, rows):
        yield from table.lines(row)


def _excess(widths: Sequence[int], width: int, gap: str) -> int:
    inside = [columns for columns in widths if columns]
    return sum(inside) + len(gap) * (len(inside) - 1) - width


def _move_below(movable: Sequence[int], widths: list[int], width: int, gap: str) -> None:
    """Take columns out of the row, the last first, until the rest fits."""
    for at in reversed(movable):
        if _excess(widths, width, gap) > 0:
            widths[at] = 0


def _narrow(columns: Sequence[Column], widths: list[int], excess: int) -> None:
    for at in reversed(range(len(columns))):
        least = columns[at].min_width
        if least is not None and widths[at] > least and excess > 0:
            cut = min(excess, widths[at] - least)
            widths[at] -= cut
            excess -= cut


def _lines_below(items: Iterable[tuple[Column, str]], width: int) -> Iterator[str]:
    """`title: value` items, as many on a line as fit."""
    line = ""
    for column, text in items:
        item = f"{column.title}: {text}"
        joined = f"{line}{GAP}{item}" if line else f"{_BELOW}{item}"
        if terminal.display_width(joined) <= width:
            line = joined
            continue
        yield from [line] if line else []
        line = f"{_BELOW}{item}"
        if terminal.display_width(line) > width:
            yield from _long_item(column, text, width)
            line = ""
    yield from [line] if line else []


def _long_item(column: Column, text: str, width: int) -> Iterator[str]:
    """An item wider than a line: prose is wrapped, what may have to be typed has a line of its own."""
    if not column.is_whole:
        yield from terminal.wrap_words(f"{_BELOW}{column.title}: {text}", width, _BELOW + terminal.INDENT)
        return
    yield f"{_BELOW}{column.title}:"
    indented = _BELOW + terminal.INDENT + text
    yield from terminal.wrap([indented if terminal.display_width(indented) <= width else text], width)
