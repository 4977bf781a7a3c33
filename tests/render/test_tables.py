"""Tables fit the terminal, and no cell is cut."""

from hypothesis import given
from hypothesis import strategies as st

from kaiza.render import terminal
from kaiza.render.tables import Cell, Column, render_table

COLUMNS = (
    Column("name"),
    Column("n", align_right=True),
    Column("where", min_width=6, is_whole=True),
    Column("why", moves_below=True),
)


def rows(*texts):
    return [tuple(map(Cell, row)) for row in texts]


def table(width, *texts, columns=COLUMNS):
    return list(render_table(columns, rows(*texts), width, colour=False))


def test_numbers_are_right_aligned():
    assert table(None, ("a", "1", "here", "x"), ("long", "1000", "there", "y")) == [
        "name     n  where  why",
        "a        1  here   x",
        "long  1000  there  y",
    ]


def test_columns_move_below_the_row_then_narrow():
    row = ("name", "1", "a/long/path/to.py", "a long explanation")

    assert table(60, row)[1:] == ["name  1  a/long/path/to.py  a long explanation"]
    assert table(40, row)[1:] == ["name  1  a/long/path/to.py", "    why: a long explanation"]
    assert table(24, row)[1:] == [
        "name  1",
        "    where:",
        "      a/long/path/to.py",
        "    why: a long",
        "      explanation",
    ]


def test_a_column_that_still_does_not_fit_moves_below_the_row():
    columns = (Column("name"), Column("state"), Column("note"))

    assert table(20, ("a-long-name", "active", "x"), columns=columns) == [
        "name         state",
        "a-long-name  active",
        "    note: x",
    ]


def test_a_first_cell_wider_than_the_terminal_has_lines_of_its_own():
    columns = (Column("name"), Column("state"))

    assert table(20, ("n" * 25, "on"), columns=columns) == ["name", "n" * 20, "│ " + "n" * 5, "    state: on"]


def test_a_later_cell_wider_than_the_sample_goes_below_its_row():
    texts = [("a", "1", "short", "x")] * 500 + [("a", "1", "a/long/path/to.py", "x")]

    assert table(60, *texts)[-2:] == ["a     1         x", "    where: a/long/path/to.py"]


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=60)), min_size=1, max_size=20), st.integers(20, 100))
def test_no_line_of_a_table_is_wider_than_the_terminal(texts, width):
    columns = (Column("a"), Column("b", min_width=4, is_whole=True))
    safe = [(terminal.escape(one), terminal.escape(two)) for one, two in texts]

    assert all(terminal.display_width(line) <= width for line in table(width, *safe, columns=columns))
