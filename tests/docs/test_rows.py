"""docs/traceability.md agrees with the `rows` marks of the tests."""

import importlib.util
from pathlib import Path

MAX_WITHOUT_TEST = 5

_spec = importlib.util.spec_from_file_location("rows", Path(__file__).parent.parent / "rows.py")
rows = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(rows)


def test_table_lists_every_statement_once():
    expected = {f"{document}-{number}" for document, count in rows.COUNTS.items() for number in range(1, count + 1)}
    listed = [row for row, _, _ in rows.ROW.findall(rows.TABLE.read_text())]

    assert len(listed) == len(set(listed))
    assert set(listed) == expected


def test_table_names_the_tests_marked_for_each_statement():
    shown = rows.marked()
    wrong = {
        row: cell
        for row, cell in rows.table().items()
        if (cell != rows.cell(shown[row]) if row in shown else not cell.startswith("no test: "))
    }

    assert wrong == {}
    assert len(rows.table()) - len(shown) <= MAX_WITHOUT_TEST


def test_marks_name_existing_statements():
    assert rows.marked().keys() <= rows.table().keys()
