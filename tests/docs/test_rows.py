"""The table from statement to test and the tests' own marks are the same thing seen from two sides."""

import importlib.util
from pathlib import Path

_spec = importlib.util.spec_from_file_location("rows", Path(__file__).parent.parent / "rows.py")
rows = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rows)


def test_the_table_has_every_statement_once():
    expected = {f"{document}-{number}" for document, count in rows.COUNTS.items() for number in range(1, count + 1)}
    listed = [row for row, _, _ in rows.ROW.findall(rows.TABLE.read_text())]

    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_every_statement_is_shown_by_the_tests_the_table_names_or_says_why_not_yet():
    shown = rows.marked()
    wrong = {
        row: told
        for row, told in rows.table().items()
        if (told != rows.cell(shown[row]) if row in shown else not told.startswith("not yet: "))
    }

    assert wrong == {}


def test_no_test_claims_a_statement_that_does_not_exist():
    assert rows.marked().keys() <= rows.table().keys()
