"""docs/architecture.md matches the package: its tree, its import rules and its answers to "Where is …?"."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "kaiza"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
ANSWERS = re.findall(r"^\| (.+\?) \| `([\w/]+\.py)` \| `([\w.]+)` \|$", PAGE, re.MULTILINE)


def section(title):
    """The text below a heading."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def names_in(path):
    """Every name that a module defines at its top level, and every member of its classes."""
    for node in ast.parse(path.read_text()).body:
        name = defined_name(node)
        if name is not None:
            yield name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{defined_name(member)}" for member in node.body)


def defined_name(node):
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return node.name
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return next((target.id for target in targets if isinstance(target, ast.Name)), None)


def layers(container):
    """The layers of an import contract, highest first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (found,) = [one["layers"] for one in contracts if one.get("containers") == [container]]
    return [[name.strip() for name in layer.split("|")] for layer in found]


def layers_on_page(prefix, text):
    """The layers that the page lists after a prefix, highest first."""
    block = re.search(rf"^{prefix}(.*?)(?=^\w+:|\Z)", text, re.MULTILINE | re.DOTALL)[1]
    return [[name.strip() for name in layer.split("|")] for layer in block.split(">")]


def test_at_least_twenty_questions_are_answered():
    rows = [line for line in section("Where is …?").splitlines() if line.startswith("| ") and "?" in line]

    assert len(ANSWERS) == len(rows)
    assert len({question for question, _, _ in ANSWERS}) >= 20


@pytest.mark.parametrize(("question", "path", "name"), ANSWERS, ids=[question for question, _, _ in ANSWERS])
def test_the_file_that_answers_a_question_defines_the_name(question, path, name):
    assert name in set(names_in(PACKAGE / path)), question


def test_tree_lists_every_folder_and_only_existing_files():
    (tree,) = re.findall(r"^```text\n(.*?)^```$", section("The tree"), re.MULTILINE | re.DOTALL)
    found, folders = set(), []
    for line in tree.splitlines()[1:]:
        names = line.partition("#")[0].strip("│├└─ ").split()
        depth = re.match(r"[│├└─ ]*", line).end() // 4
        folders[depth - 1 :] = names[-1:]
        found |= {"".join([*folders[: depth - 1], name]) for name in names}
    packages = {f"{path.parent.relative_to(PACKAGE)}/" for path in PACKAGE.glob("*/**/__init__.py")}

    assert {name for name in found if not (PACKAGE / name).exists()} == set()
    assert packages <= found


def test_import_rules_are_those_of_the_contracts():
    package, inside = re.findall(r"^```\n(.*?)^```$", section("Import rules"), re.MULTILINE | re.DOTALL)

    assert layers_on_page("", package) == layers("kaiza")
    assert layers_on_page("store:", inside) == layers("kaiza.store")
    assert layers_on_page("domain:", inside) == layers("kaiza.domain")


@pytest.mark.parametrize(("walk", "least"), [("write_file", 20), ("kaiza plan approve", 10)])
def test_modules_named_in_a_walk_exist(walk, least):
    named = re.findall(r"`((?:\w+/)+\w+)`", section(f"The walk of one `{walk}`"))

    assert len(named) >= least
    assert [name for name in named if not (PACKAGE / f"{name}.py").exists()] == []
