"""The README is true: its picture is what the demo prints, its commands are what CI runs, its promises have tests."""

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
from kaiza.store.clients import CLIENTS, server_command

ROOT = Path(__file__).parent.parent.parent
README = ROOT / "README.md"
TEXT = README.read_text()
ORDER = [
    "Kaiza",
    "What it looks like",
    "Run it",
    "Put an agent under it",
    "What a person does",
    "What it guarantees",
    "What it does not",
    "Commands",
    "The tree",
    "Developing",
    "Licence",
]
KEYS = {"claude-code": "mcpServers", "cursor": "mcpServers", "vscode": "servers", "windsurf": "mcpServers"}
KEYS |= {"codex": "mcp_servers", "gemini": "mcpServers"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "a client", "version": "1"},
}


def section(title):
    """What stands under a heading."""
    return re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", TEXT, re.MULTILINE | re.DOTALL)[1]


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def masked(line):
    """A line without what is different each time."""
    return re.sub(r"\S*/project\b", ".../project", line).rstrip()


def test_it_is_told_in_its_order():
    headings = re.findall(r"^##? (.+)$", TEXT, re.MULTILINE)

    assert headings == ORDER
    assert section("Licence").startswith("\nMIT")


def test_the_picture_is_what_the_demo_prints(tmp_path):
    told = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "kaiza", "demo", "--fast"]
    done = subprocess.run(command, env=told, capture_output=True, text=True, timeout=60, check=False)
    printed = iter([masked(line) for line in done.stdout.splitlines()])
    (picture,) = blocks(section("What it looks like"), "text")
    shown = [masked(line) for line in picture.splitlines() if line.strip(" .")]
    missing = [line for line in shown if line not in printed]

    assert done.returncode == 0
    assert missing == []
    assert len(shown) >= 20


def test_the_two_commands_are_the_ones_that_are_tried_from_a_fresh_clone_and_that_ci_runs():
    demo, check, path = [block.strip() for block in blocks(section("Run it"), "sh")]
    start = "python3 -m pip install -q --target .uv uv && .uv/bin/uv run --locked "

    assert demo == start + "kaiza demo"
    assert check == start + "just check"
    assert path == 'export PATH="$PWD/.venv/bin:$PATH"'
    assert (ROOT / ".ci/run").read_text().splitlines()[-1] == check
    assert check in (ROOT / "CONTRIBUTING.md").read_text()


@pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)
def test_each_clients_block_is_in_its_own_format_and_the_server_it_names_starts(tmp_path, client):
    part = section(client.title)
    file = client.files[0]
    (block,) = blocks(part, "toml" if client.name == "codex" else "json")
    told = tomllib.loads(block) if client.name == "codex" else json.loads(block)
    entry = told[KEYS[client.name]]["kaiza"]
    root = make_ready(tmp_path / "project")
    places = {"/path/to/kaiza": server_command.kaiza_command()[0], "/path/to/project": str(root)}
    words = [places.get(word, word) for word in (entry["command"], *entry["args"])]
    door = Door(words, cwd="/", env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)})
    greeted = door.ask(request(1, "initialize", **HELLO))["result"]
    tools = door.ask(request(2, "tools/list"))["result"]["tools"]
    door.rest()
    for pipe in (door.process.stdout, door.process.stderr):
        pipe.close()

    assert f"`{file.name}`" in part
    assert f"--client {client.name}`" in part
    assert f"](docs/how-to/under-{client.name}.md)" in part
    assert file.entry(block).args == tuple(entry["args"])
    assert greeted["serverInfo"]["name"] == "kaiza"
    assert "begin_session" in [tool["name"] for tool in tools]


def test_every_promise_names_a_test_that_is_there():
    rows = re.findall(r"^\| (?!promise|---)(.+?) \| (.+?) \|$", section("What it guarantees"), re.MULTILINE)
    missing = []
    for promise, shown in rows:
        links = re.findall(r"\[(test_\w+)\]\(([\w/]+\.py)\)", shown)
        missing += [f"{promise}: no test"] if not links else []
        missing += [f"{path}: {name}" for name, path in links if name not in named_in(ROOT / path)]

    assert len(rows) >= 12
    assert missing == []


def named_in(path):
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_the_commands_are_the_ones_there_are_with_their_exit_statuses():
    rows = [line for line in section("Commands").splitlines() if line.startswith("| `kaiza ")]

    assert rows == [row(name) for name in dispatch.COMMANDS]


def row(name):
    """A command's line of the table, from the code."""
    below = "\\|".join(subcommands(name))
    words = f"kaiza {name} {below}".strip()
    return f"| `{words}` | {dispatch.COMMANDS[name][1]} | {', '.join(statuses(name))} |"


def test_the_tree_is_the_one_there_is():
    (tree,) = blocks(section("The tree"), "text")
    named = [line.split()[0].rstrip("/") for line in tree.splitlines()]

    assert [name for name in named if not (ROOT / name).exists()] == []
    assert {f"kaiza/{path.parent.name}" for path in (ROOT / "kaiza").glob("*/__init__.py")} <= set(named)


def test_nothing_is_praised():
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
