"""Conventions of the source that no linter checks."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import kaiza
from kaiza.domain import error_codes
from kaiza.domain.audit.projection import CHANGING_TOOLS
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.tools.registry import AGENT_TOOLS

PACKAGE = Path(kaiza.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in SOURCES}
OPENERS = {
    "store/disk/small_files.py",
    "store/disk/git_directory.py",  # follows links, as git does
    "store/audit/log_file.py",  # the log
    "store/manifest/hashing.py",  # handles: to open a device could have an effect
    "store/checks/check_run.py",
    "store/checks/fingerprint.py",
    "cli/console/confirm.py",  # the terminal
    "cli/console/run_command.py",  # /dev/null
    "cli/review/command.py",  # a file that a person names, or /dev/stdout
    "server/stdio/framing.py",  # /dev/null
}
DOORS = 62
"""This number only shrinks."""
SHARED_NAMES = {"Decision", "Proposal", "Request"}
"""Classes with one name in several modules: every tool has a Request, every decision a Proposal and a Decision."""
RIDDLES = re.compile(r"\b(whoever|nobody|somebody|told)\b", re.IGNORECASE)
BARE_PARTICIPLES = re.compile(
    r"_*(asked|brought|carried_out|changed|chosen|done|found|given|gone|held|judged|kept|known|left|lost|made|named"
    r"|recorded|seen|shown|taken|taken_back|told|unchanged|understood|unrecovered|wanted|weighed|worked_out|written)"
)


def trees_of(package):
    """The modules of one package of kaiza, at any depth."""
    return {path: tree for path, tree in TREES.items() if path.relative_to(PACKAGE).parts[0] == package}


def calls_in(tree):
    return [node for node in ast.walk(tree) if isinstance(node, ast.Call)]


def functions():
    return [
        (path, node)
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


@pytest.mark.rows("S1-71")
def test_system_errors_are_created_by_their_factory_methods_only():
    offenders = [
        f"{path}:{node.lineno}"
        for path, tree in TREES.items()
        for node in calls_in(tree)
        if isinstance(node.func, ast.Name | ast.Attribute)
        and (node.func.id if isinstance(node.func, ast.Name) else node.func.attr) == "SystemError"
    ]

    assert offenders == []


@pytest.mark.rows("S1-99")
def test_tools_raise_nothing_but_system_errors():
    tools = trees_of("tools")
    offenders = [
        f"{path}:{node.lineno}"
        for path, tree in tools.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
        if isinstance(node.exc.func, ast.Name) and node.exc.func.id.endswith(("Error", "Exception"))
    ]

    assert len(tools) >= 30
    assert offenders == []


@pytest.mark.rows("S1-101")
def test_only_the_command_line_prints():
    others = TREES.keys() - trees_of("cli").keys()
    offenders = [
        f"{path}:{node.lineno}"
        for path in others
        for node in calls_in(TREES[path])
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    streams = {
        path.relative_to(PACKAGE).as_posix()
        for path in others
        for node in calls_in(TREES[path])
        if re.match(r"sys\.(__)?(stdout|stderr)(__)?\.(buffer\.)?write|os\.write\([12],", ast.unparse(node))
    }

    assert len(others) >= 150
    assert offenders == []
    assert streams == {"store/audit/verification/segment.py"}  # a process of its own, which answers on its stdout


@pytest.mark.rows("S1-102", "S1-65")
def test_no_exception_is_swallowed_and_only_the_boundary_catches_all():
    """The boundary, and `ask`, by which it gets a description out of an exception whose own code fails."""
    handlers = [
        (path, node) for path, tree in TREES.items() for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)
    ]
    silent = [f"{path}:{node.lineno}" for path, node in handlers if isinstance(node.body[0], ast.Pass)]
    catching_all = {
        path.relative_to(PACKAGE).as_posix().replace("boundary/", "boundary/*", 1).partition("*")[0]
        for path, node in handlers
        if not (
            isinstance(node.body[-1], ast.Raise) or any(isinstance(statement, ast.Raise) for statement in node.body)
        )
        if node.type is None or (isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException"))
    }

    suppressed = {
        ast.unparse(argument): (path, node)
        for path, tree in TREES.items()
        for node in calls_in(tree)
        if ast.unparse(node.func).endswith("suppress")
        for argument in node.args
    }

    assert len(handlers) >= 100
    assert silent == []
    assert catching_all == {"boundary/", "domain/plain_values.py"}
    assert "OSError" in suppressed
    assert not suppressed.keys() & {"Exception", "BaseException", "RuntimeError", "AssertionError"}
    assert [name for name in suppressed if name.endswith("SystemError")] == []


@pytest.mark.rows("S1-102", "S1-65")
def test_no_layer_that_answers_a_call_suppresses_an_error():
    """Suppressing is for cleaning up in the store, and for what a race with another process makes harmless."""
    suppressing = {
        path.relative_to(PACKAGE).parts[0]
        for path, tree in TREES.items()
        for node in calls_in(tree)
        if ast.unparse(node.func).endswith("suppress")
    }

    in_pure_layers = {
        ast.unparse(argument)
        for package in ("boundary", "domain", "policy", "tools", "wire")
        for tree in trees_of(package).values()
        for node in calls_in(tree)
        if ast.unparse(node.func).endswith("suppress")
        for argument in node.args
    }

    assert suppressing <= {"boundary", "cli", "domain", "queries", "store"}
    assert {name for name in in_pure_layers if not name.startswith("_")} <= {
        "TypeError",
        "KeyError",
        "AttributeError",
        "ValueError",
    }


@pytest.mark.rows("S1-19")
def test_every_code_in_the_source_is_registered():
    named = {
        node.args[0].value
        for tree in TREES.values()
        for node in calls_in(tree)
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("tool_failure", "startup_failure")
        if node.args and isinstance(node.args[0], ast.Constant)
    }

    assert named
    assert named <= error_codes.SYSTEM_ERROR_CODES.keys()


def test_every_module_has_a_docstring():
    assert len(TREES) >= 200
    assert [str(path) for path, tree in TREES.items() if not ast.get_docstring(tree)] == []


def test_no_module_docstring_begins_with_a_riddle():
    first_lines = {str(path): ast.get_docstring(tree).partition("\n")[0] for path, tree in TREES.items()}

    assert {path: line for path, line in first_lines.items() if RIDDLES.search(line)} == {}


def test_no_function_is_named_with_a_bare_participle():
    offenders = [
        f"{path}:{node.lineno} {node.name}" for path, node in functions() if BARE_PARTICIPLES.fullmatch(node.name)
    ]

    assert offenders == []


def test_no_function_is_longer_than_60_lines_and_no_file_than_500():
    long = [f"{path}:{node.lineno}" for path, node in functions() if node.end_lineno - node.lineno >= 60]

    assert len(functions()) >= 1000
    assert long == []
    assert [str(path) for path in SOURCES if len(path.read_text().splitlines()) > 500] == []


def test_no_two_classes_have_the_same_name():
    names = [node.name for tree in TREES.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    shared = {name for name, times in Counter(names).items() if times > 1}

    assert len(names) >= 250
    assert shared == SHARED_NAMES


def test_catalog_schema_files_and_registry_name_the_same_tools():
    registry = SchemaRegistry()
    catalog = {row["id"] for row in registry.catalog()}
    files = {re.sub(r"(\.output)?\.json$", "", name) for name in registry.file_names()}

    assert catalog == files == set(AGENT_TOOLS)


def test_tools_that_the_catalog_calls_changes_count_for_locks_and_limits():
    changing = {row["id"] for row in SchemaRegistry().catalog() if row["safety_level"] == "change"}

    assert changing <= CHANGING_TOOLS


def test_every_tool_is_in_the_module_of_its_name():
    modules = {name: import_module(tool.run.args[0]) for name, tool in AGENT_TOOLS.items()}

    assert len(modules) >= 25
    assert {name: module.__name__.rpartition(".")[2] for name, module in modules.items()} == {
        name: name for name in modules
    }
    assert [name for name, module in modules.items() if getattr(module, "NAME", name) != name] == []


def test_every_decision_has_the_same_form():
    modules = {path.stem: tree for path, tree in trees_of("decisions").items() if path.stem != "__init__"}
    forms = {
        name: {
            each.name: [argument.arg.removeprefix("_") for argument in each.args.args]
            for each in tree.body
            if isinstance(each, ast.FunctionDef) and each.name in ("propose", "decide")
        }
        for name, tree in modules.items()
    }

    assert len(modules) >= 4
    assert {name: form for name, form in forms.items() if form.keys() != {"propose", "decide"}} == {}
    # What allows nothing by itself is not recorded, and so needs no person.
    unrecorded = {name for name, form in forms.items() if form["decide"][1:] == ["proposal"]}
    assert unrecorded == {"init", "new_plan"}
    assert {tuple(forms[name]["decide"][1:]) for name in forms.keys() - unrecorded} == {("proposal", "person")}
    # `root`: there is no workspace yet, or its log is damaged.
    assert {form["decide"][0] for form in forms.values()} <= {"workspace", "root"}
    assert {name for name, form in forms.items() if form["propose"][0] != form["decide"][0]} == set()


def test_no_tool_approves_unlocks_thaws_or_grants():
    forbidden = re.compile(r"approv|unlock|thaw|grant|revoke|accept")

    assert [name for name in AGENT_TOOLS if forbidden.search(name)] == []


def test_files_are_opened_by_two_rooms_and_where_there_is_a_reason():
    """Elsewhere `small_files` opens them, which follows no link and waits for no FIFO."""
    opening = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in TREES.items()
        for node in calls_in(tree)
        if ast.unparse(node.func) == "os.open"
    }

    assert {path for path in opening if not path.startswith("store/files/")} == OPENERS


def test_each_room_of_the_store_is_entered_by_its_doors():
    """A room lists in `__all__` its modules that other packages import, and no others; the store its own modules."""
    modules = {path.relative_to(PACKAGE).with_suffix("").as_posix().replace("/", ".") for path in SOURCES}
    entered = set()
    for path, tree in TREES.items():
        if path.relative_to(PACKAGE).parts[0] == "store":
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kaiza.store"):
                names = {f"{node.module}.{alias.name}".removeprefix("kaiza.") for alias in node.names}
                entered |= {name if name in modules else node.module.removeprefix("kaiza.") for name in names}
    doors = {
        f"store.{name}" if room == "store" else f"store.{room}.{name}"
        for path in (PACKAGE / "store").rglob("__init__.py")
        for room in [path.parent.name]
        for name in getattr(
            import_module(f"kaiza.{path.parent.relative_to(PACKAGE).as_posix().replace('/', '.')}"), "__all__", ()
        )
    }

    assert entered == doors
    assert len(doors) <= DOORS


def test_starting_the_server_imports_no_heavy_package():
    heavy = ["mcp", "pydantic", "jsonschema", "re2", "pathspec", "ruamel", "asyncio", "unidiff", "portalocker"]
    script = (
        "import kaiza.cli.serve, kaiza.server.stdio, sys, json;"
        f"print(json.dumps([name for name in {heavy!r} if name in sys.modules]))"
    )
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, text=True).stdout

    assert json.loads(loaded) == []
