"""Rows in aligned columns: measured once on a sample, then row by row, so that a million rows cost no memory."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from kaiza.render import terminal

GAP = "  "
SAMPLE_SIZE = 500


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its title, how narrow it may get when room is short and in which turn, which end of a cell stays."""

    title: str
    min_width: int | None = None
    kept_end: str = "start"
    align_right: bool = False
    natural_width: int = 0
    shrink_order: int = 0


@dataclass(frozen=True, slots=True)
class Cell:
    """What stands in a row, already safe to show."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """Columns with their widths decided; without a width to keep to, nothing is cut."""

    columns: Sequence[Column]
    widths: Sequence[int]
    is_bounded: bool = False
    gap: str = GAP
    colour: bool = False

    def header(self) -> str:
        """The line of titles."""
        return self.row([Cell(column.title, "dim") for column in self.columns])

    def row(self, cells: Sequence[Cell]) -> str:
        """One row, without blanks at its end."""
        told = [self._format_cell(at, cell) for at, cell in enumerate(cells)]
        while told and not told[-1].strip():
            told.pop()
        return self.gap.join(told).rstrip()

    def _format_cell(self, at: int, cell: Cell) -> str:
        column, columns = self.columns[at], self.widths[at]
        text = (
            terminal.truncate(cell.text, columns, column.kept_end)
            if self.is_bounded and column.min_width is not None
            else cell.text
        )
        blank = (
            ""
            if at == len(self.columns) - 1 and not column.align_right
            else " " * (columns - terminal.display_width(text))
        )
        painted = terminal.paint(text, cell.style, colour=self.colour)
        return blank + painted if column.align_right else painted + blank


def fit(
    columns: Sequence[Column],
    sample: Iterable[Sequence[Cell]],
    width: int | None,
    *,
    colour: bool,
    gap: str = GAP,
) -> Table:
    """A table as wide as its sample wants; where that is too wide, columns give way in turn, the last first."""
    widths = [max(terminal.display_width(column.title), column.natural_width) for column in columns]
    for row in sample:
        widths = [max(had, terminal.display_width(cell.text)) for had, cell in zip(widths, row, strict=True)]
    over = 0 if width is None else sum(widths) + len(gap) * (len(columns) - 1) - width
    for at, column in sorted(enumerate(columns), key=lambda pair: (pair[1].shrink_order, -pair[0])):
        if over > 0 and column.min_width is not None:
            given = min(over, max(0, widths[at] - column.min_width))
            widths[at] -= given
            over -= given
    return Table(columns, widths, is_bounded=width is not None, gap=gap, colour=colour)


def render_table(
    columns: Sequence[Column], rows: Iterable[Sequence[Cell]], width: int | None, *, colour: bool
) -> Iterator[str]:
    """A whole table, lazily: the first rows decide about the widths, the rest follow as they come."""
    rows = iter(rows)
    sample = list(islice(rows, SAMPLE_SIZE))
    table = fit(columns, sample, width, colour=colour)
    yield table.header()
    yield from map(table.row, sample)
    yield from map(table.row, rows)
