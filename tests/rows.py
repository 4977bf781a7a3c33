"""Which test shows which statement: read off the `rows` marks of the tests, and off docs/traceability.md.

`python tests/rows.py` rewrites the last column of the table from the marks.
"""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parent
TABLE = TESTS.parent / "docs" / "traceability.md"
ROW = re.compile(r"^\| (S[0-4]-\d+) \| (.*?) \| ([^|]*?) \|$", re.MULTILINE)
COUNTS = {"S0": 37, "S1": 107, "S2": 46, "S3": 43, "S4": 72}


def marked() -> dict[str, set[str]]:
    """Row to tests, as the tests say it."""
    found: dict[str, set[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and function.name.startswith("test_"):
                for row in _rows_of(function):
                    found.setdefault(row, set()).add(f"{path.relative_to(TESTS.parent)}::{function.name}")
    return found


def _rows_of(function: ast.FunctionDef) -> set[str]:
    return {
        argument.value
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "rows"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }


def table() -> dict[str, str]:
    """Row to the last column of the table."""
    return {row: shown for row, _, shown in ROW.findall(TABLE.read_text())}


def cell(tests: set[str]) -> str:
    """The last column for a row that these tests show."""
    return "<br>".join(f"`{name}`" for name in sorted(tests))


def rewrite() -> None:
    """Bring the table up to the marks; a row nobody shows keeps what it says."""
    shown = marked()
    text = ROW.sub(
        lambda row: f"| {row[1]} | {row[2]} | {cell(shown[row[1]]) if row[1] in shown else row[3]} |", TABLE.read_text()
    )
    TABLE.write_text(text)


if __name__ == "__main__":
    rewrite()
