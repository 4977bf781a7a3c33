"""`kaiza doctor` asks clients whether they use Kaiza, and no program that answers can break or delay it."""

import json
import os
import sys
from pathlib import Path

import pytest
from scenes import see_plans

from kaiza.queries.doctor import client_listing
from kaiza.queries.doctor.client_listing import LIST_COMMANDS, Listing, ask_client, run_bounded
from kaiza.store.clients.registry import CLIENTS
from kaiza.store.disk import state_dir
from kaiza.store.trust import binding

COMMAND = "/opt/kaiza serve --workspace /srv/kaiza: x"
CODEX = '[\n  {{"name": "{name}", "enabled": {enabled}}}\n]\n'
SAID = [
    ("claude-code", f"Checking MCP server health…\n\nkaiza: {COMMAND} - ✔ Connected\n", Listing.USED),
    ("claude-code", f"kaiza: {COMMAND} - ⏸ Pending approval (run `claude` to approve)\n", Listing.IGNORED),
    ("claude-code", f"kaiza: {COMMAND} - ✘ Failed to connect\n", Listing.FAILED),
    ("claude-code", "No MCP servers configured. Use `claude mcp add` to add a server.\n", Listing.IGNORED),
    ("claude-code", "other: kaiza - ✔ Connected\n", Listing.IGNORED),
    ("codex", "WARNING: [x] something\n" + CODEX.format(name="kaiza", enabled="true"), Listing.USED),
    ("codex", CODEX.format(name="kaiza", enabled="false"), Listing.IGNORED),
    ("codex", CODEX.format(name="other", enabled="true"), Listing.IGNORED),
    ("codex", "[]\n", Listing.IGNORED),
    ("codex", "error: unexpected argument\n", Listing.SILENT),
    ("codex", "[1, 2]\n", Listing.SILENT),
    ("codex", "[" * 60_000, Listing.SILENT),
    ("gemini", f"Configured MCP servers:\n\n✓ kaiza: {COMMAND} (stdio) - Connected\n", Listing.USED),
    ("gemini", f"Warning: this folder is untrusted.\n○ kaiza: {COMMAND} (stdio) - Disabled\n", Listing.IGNORED),
    ("gemini", f"✗ kaiza: {COMMAND} (stdio) - Disconnected\n", Listing.FAILED),
    (
        "opencode",
        f"┌  MCP Servers\n│\n●  ✓ kaiza \x1b[90mconnected\n│      \x1b[90m{COMMAND}\n└  1 server(s)\n",
        Listing.USED,
    ),
    ("opencode", "●  ✗ kaiza failed\n", Listing.FAILED),
    ("opencode", "●  ○ kaiza disabled\n", Listing.IGNORED),
]


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Puts a program with this text in front of PATH."""
    directory = tmp_path / "programs"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")

    def put(name, text):
        (directory / name).write_text(f"#!{sys.executable}\n{text}\n")
        (directory / name).chmod(0o755)
        return directory / name

    return put


@pytest.fixture
def doctor(kaiza, workspace, monkeypatch):
    monkeypatch.setattr("kaiza.queries.doctor.machine.check_user", lambda: iter(()))

    def run(client):
        done = kaiza("doctor", "--json")
        return {each["check"]: each for each in json.loads(done.out)["checks"]}[f"client:{client}"]

    return run


@pytest.mark.parametrize(("client", "output", "listing"), SAID)
def test_what_a_client_prints_says_whether_it_uses_kaiza(client, output, listing):
    assert LIST_COMMANDS[client].judge(client_listing._ANSI.sub("", output)) is listing


@pytest.mark.parametrize(
    ("output", "verdict"),
    [
        ("kaiza: x - ✔ Connected", "ok"),
        ("kaiza: x - ⏸ Pending approval", "warning"),
        ("", "warning"),
        ("kaiza: x - ✘ Failed to connect", "warning"),
        ("kaiza: \\x1b]0;x\\x07\\x9b2J - ✔ Connected", "ok"),
    ],
)
def test_doctor_says_what_the_client_says(kaiza, doctor, programs, output, verdict):
    programs("claude", f"print({output!r})".replace("\\\\x", "\\x"))
    kaiza("init", "--client", "claude-code", "--yes")
    check = doctor("claude-code")

    assert check["verdict"] == verdict
    assert check["message"].isprintable()


@pytest.mark.parametrize(
    "text",
    [
        "import time; time.sleep(600)",
        "import os, time; os.fork() or time.sleep(600)",
        "import os, sys\nif os.fork() == 0:\n    os.setsid(); import time; time.sleep(3)",
        "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    ],
)
def test_a_program_that_hangs_or_leaves_processes_behind_is_a_warning(kaiza, doctor, programs, monkeypatch, text):
    monkeypatch.setattr(client_listing, "SECONDS", 0.5)
    programs("codex", text)
    kaiza("init", "--client", "codex", "--yes")

    assert doctor("codex")["verdict"] == "warning"


def test_output_without_end_is_cut(programs, tmp_path):
    program = programs("codex", "while True:\n    print('x' * 10_000)")

    assert len(run_bounded([str(program)], tmp_path, os.environ, 20)) <= 64 * 1024


def test_a_program_that_cannot_start_is_like_none(kaiza, doctor, programs):
    programs("codex", "").write_text("#!/dev/null/none\n")
    kaiza("init", "--client", "codex", "--yes")

    assert doctor("codex")["verdict"] == "ok"


@pytest.mark.parametrize("place", [".", "node_modules/.bin"])
def test_a_program_inside_the_workspace_is_never_run(workspace, monkeypatch, place):
    trap = workspace.parent / "trap"
    program = workspace / place / "claude"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{'.' if place == '.' else program.parent}:/usr/bin:/bin")

    assert ask_client(CLIENTS["claude-code"], workspace) is Listing.NO_PROGRAM
    assert not trap.exists()


@pytest.mark.parametrize("brought", ["server", "plugins", "elsewhere"])
def test_a_client_that_would_start_what_the_workspace_brought_is_not_asked(kaiza, doctor, programs, workspace, brought):
    trap = workspace.parent / "trap"
    programs("opencode", f"open({str(trap)!r}, 'w').close()")
    kaiza("init", "--client", "opencode", "--yes")
    file = workspace / "opencode.json"
    if brought == "server":
        written = json.loads(file.read_text())
        written["mcp"]["other"] = {"type": "local", "command": ["evil"]}
        file.write_text(json.dumps(written))
    elif brought == "plugins":
        (workspace / ".opencode/plugin").mkdir(parents=True)
    else:
        make_foreign(workspace)
    check = doctor("opencode")

    assert not trap.exists()
    assert "was not asked" in check["message"]


@pytest.mark.parametrize(
    ("client", "file", "member"),
    [
        ("claude-code", ".mcp.json", ("mcpServers", "env")),
        ("gemini", ".gemini/settings.json", ("mcpServers", "env")),
        ("opencode", "opencode.json", ("mcp", "environment")),
    ],
)
def test_a_client_that_would_start_the_server_with_added_variables_is_not_asked(
    kaiza, doctor, programs, client, file, member
):
    file, trap = Path(file).absolute(), Path("trap").absolute()
    programs(CLIENTS[client].program, f"open({str(trap)!r}, 'w').close()")
    kaiza("init", "--client", client, "--yes")
    doctor(client)
    assert trap.exists()
    trap.unlink()
    written = json.loads(file.read_text())
    written[member[0]]["kaiza"].setdefault(member[1], {})["PYTHONPATH"] = str(file.parent)
    file.write_text(json.dumps(written))
    check = doctor(client)

    assert not trap.exists()
    assert "was not asked" in check["message"]


def make_foreign(root):
    """A workspace whose log another machine began."""
    (root / ".kaiza").mkdir(exist_ok=True)
    (root / ".kaiza/id").write_text("0" * 32)
    (root / "audit/audit-log.jsonl").write_text("{}\n")
    see_plans(root)
    assert binding.read_binding(str(root), state_dir.path_of(str(root))).is_foreign


@pytest.mark.parametrize("client", ["cursor", "vscode", "windsurf", "copilot"])
def test_doctor_names_clients_whose_own_tools_still_write(kaiza, workspace, monkeypatch, client):
    monkeypatch.setattr("kaiza.queries.doctor.machine.check_user", lambda: iter(()))
    kaiza("init", "--client", client, "--yes")
    checks = {each["check"]: each for each in json.loads(kaiza("doctor", "--json").out)["checks"]}

    assert checks[f"client:{client}:tools"]["verdict"] == "warning"
    assert CLIENTS[client].title in checks[f"client:{client}:tools"]["message"]


@pytest.mark.parametrize(
    ("client", "name", "old", "new"),
    [
        ("claude-code", ".claude/settings.json", '"CronCreate",', ""),
        ("opencode", "opencode.json", '"bash": "deny"', '"bash": "allow"'),
        ("gemini", ".gemini/settings.json", '"glob"', '"write_file"'),
        ("gemini", ".gemini/settings.json", '"mcp_kaiza_*"', '"x"'),
        ("codex", ".codex/config.toml", "read-only", "workspace-write"),
    ],
)
def test_a_setting_that_lets_a_client_write_or_hides_kaiza_is_a_warning(kaiza, workspace, client, name, old, new):
    kaiza("init", "--client", client, "--yes")
    path = Path(workspace, name)
    assert old in path.read_text()
    before = kaiza("doctor", "--json").out
    path.write_text(path.read_text().replace(old, new))
    after = {each["check"]: each["verdict"] for each in json.loads(kaiza("doctor", "--json").out)["checks"]}

    assert f"client:{client}:tools" not in before
    assert after[f"client:{client}:tools"] == "warning"
