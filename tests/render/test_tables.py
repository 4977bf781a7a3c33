"""Tables fit the room there is; the columns that must be whole stay whole."""

from hypothesis import given
from hypothesis import strategies as st

from kaiza.render import terminal
from kaiza.render.tables import Cell, Column, render_table

COLUMNS = (
    Column("name"),
    Column("n", align_right=True),
    Column("where", min_width=6, kept_end="end"),
    Column("why", min_width=8),
)


def rows(*texts):
    return [tuple(map(Cell, row)) for row in texts]


def test_numbers_stand_right_and_words_left():
    told = list(
        render_table(COLUMNS, rows(("a", "1", "here", "x"), ("long", "1000", "there", "y")), None, colour=False)
    )

    assert told == [
        "name     n  where  why",
        "a        1  here   x",
        "long  1000  there  y",
    ]


def test_the_last_columns_give_way_first_and_none_below_its_least():
    row = ("name", "1", "a/long/path/to.py", "a long explanation")

    assert list(render_table(COLUMNS, rows(row), 40, colour=False))[1] == "name  1  a/long/path/to.py  a long expl…"
    assert list(render_table(COLUMNS, rows(row), 30, colour=False))[1] == "name  1  …path/to.py  a long …"
    assert list(render_table(COLUMNS, rows(row), 10, colour=False))[1] == "name  1  …to.py  a long …"


@given(st.lists(st.tuples(st.text(max_size=30), st.text(max_size=60)), min_size=1, max_size=20), st.integers(20, 100))
def test_a_row_is_never_wider_than_the_terminal_where_every_column_may_shrink(texts, width):
    columns = (Column("a", min_width=4), Column("b", min_width=4))
    safe = [(terminal.escape(one), terminal.escape(two)) for one, two in texts]

    assert all(
        terminal.display_width(line) <= width for line in render_table(columns, rows(*safe), width, colour=False)
    )
