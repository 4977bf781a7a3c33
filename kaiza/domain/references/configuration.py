"""Finds files that configuration names: `pyproject.toml` scripts, `package.json` main and bin, paths in workflows."""

import re
from collections.abc import Iterator

import orjson

from kaiza.domain.references.reference import Reference, ReferenceKind

_SCRIPT_TABLES = frozenset({"project.scripts", "project.gui-scripts", "tool.poetry.scripts"})
# Not read with tomllib: the time that it takes for a long dotted key is quadratic.
_TABLE = re.compile(r"[ \t]*\[([^\[\]]*+)\]")
_SCRIPT = re.compile(r"""[ \t]*[\w."'-]++[ \t]*=[ \t]*(["'])([A-Za-z_][\w.]*+(?::[\w.]*+)?)""")
_USES = re.compile(r"""[ \t]*(?:-[ \t]+)?uses:[ \t]*["']?(\./[^\s"'#@]*)""")
# No match begins inside another: the characters before `./` are those that a match can have.
_RUN_SCRIPT = re.compile(r"(?<![\w./$}-])\./[\w./-]*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl|ps1)(?![\w./-])")
_MAX_BINS = 200


def find_project_scripts(text: str) -> Iterator[Reference]:
    """Modules of the console scripts."""
    table = ""
    for number, line in enumerate(text.split("\n"), 1):
        header = _TABLE.match(line)
        if header:
            table = re.sub(r"[\s\"']", "", header[1])
        elif table in _SCRIPT_TABLES and (script := _SCRIPT.match(line)):
            yield Reference(number, script[2], "python_script")


def find_package_files(text: str) -> Iterator[Reference]:
    """Values of `main` and `bin`; ValueError if the text is not JSON."""
    document = orjson.loads(text.encode(errors="surrogateescape"))
    if not isinstance(document, dict):
        return
    named = document.get("bin")
    bins = list(named.values())[:_MAX_BINS] if isinstance(named, dict) else [named]
    yield from _make_references(text, "main", [document.get("main")], "package_main")
    yield from _make_references(text, "bin", bins, "package_bin")


def find_workflow_paths(text: str) -> Iterator[Reference]:
    """Local actions and workflows, and scripts that a command names by `./`, where it runs in the repository's root."""
    runs_elsewhere = "working-directory:" in text
    for number, line in enumerate(text.split("\n"), 1):
        uses = _USES.match(line)
        if uses and "$" not in uses[1]:
            yield Reference(number, uses[1], "workflow_path")
        elif not (runs_elsewhere or uses or "cd " in line or line.lstrip().startswith("#")):
            yield from (Reference(number, script[0], "workflow_path") for script in _RUN_SCRIPT.finditer(line))


def _make_references(text: str, key: str, values: list[object], kind: ReferenceKind) -> Iterator[Reference]:
    for value in values:
        if isinstance(value, str) and value:
            offset = text.find(f'"{value}"', max(0, text.find(f'"{key}"')))
            yield Reference(text.count("\n", 0, max(0, offset)) + 1, value, kind)
