"""The README matches the program: its demo output, its commands, its configurations and its links to tests."""

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from commands import statuses, subcommands
from doors import Door, request
from scenes import make_ready

from kaiza.cli import dispatch
from kaiza.store.clients import server_command
from kaiza.store.clients.registry import CLIENTS

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
TEXT = README.read_text()
ORDER = [
    "Kaiza",
    "What it looks like",
    "Run it",
    "Connect a client",
    "Approve, review, undo",
    "More ways to use it",
    "Guarantees",
    "Limits",
    "Commands",
    "Source tree",
    "Contributing",
    "Licence",
]
CLIENT_INFO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


def section(title):
    """The text below a heading."""
    return re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def mask_paths(line):
    """The line with paths that differ from run to run replaced."""
    return re.sub(r"\S*/project\b", ".../project", line).rstrip()


def test_readme_sections_are_in_order():
    headings = re.findall(r"^##? (.+)$", TEXT, re.MULTILINE)

    assert headings == ORDER
    assert section("Licence").startswith("\nMIT")


def test_readme_excerpt_is_what_the_demo_prints(tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kaiza", "demo", "--fast"]
    process = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    output = iter([mask_paths(line) for line in process.stdout.splitlines()])
    (excerpt,) = blocks(section("What it looks like"), "text")
    shown = [mask_paths(line) for line in excerpt.splitlines() if line.strip(" .")]
    missing = [line for line in shown if line not in output]

    assert process.returncode == 0
    assert missing == []
    assert len(shown) >= 20


def test_setup_commands_are_the_ones_that_ci_runs():
    demo, check, path = [block.strip() for block in blocks(section("Run it"), "sh")]
    start = "python3 -m pip install -q --target .uv uv && .uv/bin/uv run --locked "

    assert demo == start + "kaiza demo"
    assert check == start + "just check"
    assert path == 'export PATH="$PWD/.venv/bin:$PATH"'
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == check
    assert check in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_client_blocks_parse_and_their_server_starts(tmp_path, client):
    text = section(client.title)
    file = client.files[0]
    (block,) = blocks(text, "toml" if client.name == "codex" else "json")
    assert tomllib.loads(block) if client.name == "codex" else json.loads(block)
    entry = file.find_entry(block)
    root = make_ready(tmp_path / "project")
    paths = {"/path/to/kaiza": server_command.kaiza_command()[0], "/path/to/project": str(root)}
    words = [paths.get(word, word) for word in (entry.command, *entry.args)]
    door = Door(words, cwd="/", env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    initialized = door.ask(request(1, "initialize", **CLIENT_INFO))["result"]
    tools = door.ask(request(2, "tools/list"))["result"]["tools"]
    door.rest()
    for pipe in (door.process.stdout, door.process.stderr):
        pipe.close()

    assert f"`{file.name}`" in text
    assert f"--client {client.name}`" in text
    assert f"](docs/how-to/under-{client.name}.md)" in text
    assert entry.workspaces == ("/path/to/project",)
    assert not file.leaves_writers(block)
    assert initialized["serverInfo"]["name"] == "kaiza"
    assert "begin_session" in [tool["name"] for tool in tools]


def test_every_guarantee_links_to_an_existing_test():
    rows = re.findall(r"^\| (?!guarantee|---)(.+?) \| (.+?) \|$", section("Guarantees"), re.MULTILINE)
    missing = []
    for guarantee, tests in rows:
        links = re.findall(r"\[(test_\w+)\]\(([\w/]+\.py)\)", tests)
        missing += [f"{guarantee}: no test"] if not links else []
        missing += [f"{path}: {name}" for name, path in links if name not in functions_in(ROOT / path)]

    assert len(rows) >= 12
    assert missing == []


def functions_in(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_command_table_matches_the_code():
    rows = [line for line in section("Commands").splitlines() if line.startswith("| `kaiza ")]

    assert rows == [table_row(name) for name in dispatch.COMMANDS]


def table_row(name):
    """The command's row of the table, from the code."""
    below = "\\|".join(subcommands(name))
    words = f"kaiza {name} {below}".strip()
    return f"| `{words}` | {dispatch.COMMANDS[name][1]} | {', '.join(statuses(name))} |"


def test_source_tree_matches_the_repository():
    (tree,) = blocks(section("Source tree"), "text")
    named = [line.split()[0].rstrip("/") for line in tree.splitlines()]

    assert [name for name in named if not (ROOT / name).exists()] == []
    assert {f"kaiza/{path.parent.name}" for path in (ROOT / "kaiza").glob("*/__init__.py")} <= set(named)


def test_readme_contains_no_praise_words():
    words = {
        "simply",
        "powerful",
        "seamless",
        "robust",
        "blazing",
        "best",
        "easy",
        "easily",
        "state-of-the-art",
        "just",
    }
    prose = re.sub(r"```.*?```|`[^`]*`", "", TEXT, flags=re.DOTALL)

    assert set(re.findall(r"[a-z-]+", prose.lower())) & words == set()
