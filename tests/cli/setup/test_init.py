"""`kaiza init`: what it writes works, running it twice changes nothing, and --remove restores every byte."""

import base64
import json
import os
import stat
import subprocess
import tomllib
from pathlib import Path

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kaiza.domain.plans import parser
from kaiza.store.clients.registry import CLIENTS

MAIN = {
    "claude-code": (".mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "vscode": (".vscode/mcp.json", "servers"),
    "windsurf": ("~/.codeium/windsurf/mcp_config.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "opencode": ("opencode.json", "mcp"),
    "copilot": (".github/mcp.json", "mcpServers"),
}
DENIED = {
    "claude-code": (
        ".claude/settings.json",
        ("permissions", "deny"),
        {
            "Write",
            "Edit",
            "NotebookEdit",
            "Bash",
            "Monitor",
            "EnterWorktree",
            "ExitWorktree",
            "CronCreate",
            "CronDelete",
        },
    ),
    "cursor": (".cursor/cli.json", ("permissions", "deny"), {"Write(**)", "Shell(**)"}),
}
EACH = pytest.mark.parametrize("client", MAIN)


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A directory that is not a workspace, and an empty home."""
    root, home = tmp_path / "my project", tmp_path / "home"
    root.mkdir()
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(root)
    return root


def place(root, name):
    return root.parent / "home" / name[2:] if name.startswith("~/") else root / name


def command_of(entry):
    """Program, arguments and environment of an entry, in either form."""
    command = entry["command"]
    program, *args = command if isinstance(command, list) else [command, *entry["args"]]
    return program, args, entry.get("env", entry.get("environment", {}))


def main_file(root, client):
    return place(root, MAIN[client][0])


def parsed(path):
    if path.suffix == ".toml":
        return tomllib.loads(path.read_text())
    return json.loads(path.read_text())


def snapshot(*roots):
    """Every file and directory below, with content and mode."""
    return {
        str(path): (path.lstat().st_mode, path.read_bytes() if path.is_file() else None)
        for root in roots
        for path in Path(root).rglob("*")
    }


def put_file(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def test_init_creates_the_directories_and_an_example_plan(kaiza, bare):
    result = kaiza("init", "--yes")

    assert result.status == 0
    assert (bare / "audit/.gitignore").read_text() == "*\n!.gitignore\n"
    assert (bare / "docs/reports").is_dir()
    assert [path.name for path in (bare / "plans").iterdir()] == ["PLAN-0001-example.md"]


def test_the_example_plan_is_a_valid_draft(kaiza, bare):
    kaiza("init", "--yes")
    reading = parser.parse((bare / "plans/PLAN-0001-example.md").read_bytes(), "PLAN-0001-example")

    assert reading.findings == ()
    assert reading.plan.status == "DRAFT"


def test_a_workspace_with_plans_gets_no_example(kaiza, bare):
    put_file(bare / "plans/PLAN-1.md", b"mine")
    kaiza("init", "--yes")

    assert [path.name for path in (bare / "plans").iterdir()] == ["PLAN-1.md"]


def test_git_ignores_the_log_and_keeps_its_directory(kaiza, bare):
    subprocess.run(["git", "init", "-q"], check=True)
    kaiza("init", "--yes")
    put_file(bare / "audit/audit-log.jsonl", b"{}\n")
    seen = subprocess.run(["git", "status", "--porcelain", "-uall"], capture_output=True, check=True, text=True).stdout

    assert "audit/.gitignore" in seen
    assert "audit-log" not in seen


@EACH
def test_the_written_command_starts_a_server_as_the_client_would(kaiza, bare, client):
    assert kaiza("init", "--client", client, "--yes").status == 0
    entry = parsed(main_file(bare, client))[MAIN[client][1]]["kaiza"]
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "begin_session", "arguments": {"role": "WINDSURF"}}},
    ]  # fmt: skip
    program, args, env = command_of(entry)
    assert entry.get("type", "stdio") == ("local" if client in ("opencode", "copilot") else "stdio")
    assert Path(program).is_absolute()
    assert args[-3:] == ["serve", "--workspace", str(bare)]
    environment = {"PATH": "/usr/bin:/bin", "HOME": os.environ["HOME"], **env}
    done = subprocess.run(
        [program, *args], input=b"".join(orjson.dumps(one) + b"\n" for one in messages),
        capture_output=True, check=True, timeout=60, cwd="/", env=environment,
    )  # fmt: skip
    answers = {one["id"]: one["result"] for one in map(orjson.loads, done.stdout.splitlines())}

    assert answers[1]["serverInfo"]["name"] == "kaiza"
    assert "read_file" in {tool["name"] for tool in answers[2]["tools"]}
    assert answers[3]["structuredContent"]["workspace_root"] == str(bare)


@pytest.mark.parametrize("client", DENIED)
def test_the_clients_own_writing_tools_are_switched_off(kaiza, bare, client):
    kaiza("init", "--client", client, "--yes")
    name, path, names = DENIED[client]
    denied = parsed(bare / name)
    for key in path:
        denied = denied[key]

    assert names <= set(denied)


def test_codex_gets_a_read_only_sandbox_and_may_use_kaizas_tools(kaiza, bare):
    kaiza("init", "--client", "codex", "--yes")
    written = parsed(bare / ".codex/config.toml")

    assert written["sandbox_mode"] == "read-only"
    assert written["mcp_servers"]["kaiza"]["default_tools_approval_mode"] == "approve"


def test_a_codex_sandbox_that_can_write_is_named(kaiza, bare):
    put_file(bare / ".codex/config.toml", b'sandbox_mode = "workspace-write"\n')

    assert "sandbox_mode" in kaiza("init", "--client", "codex", "--yes").err


def test_gemini_may_use_only_its_own_readers_and_kaizas_tools(kaiza, bare):
    kaiza("init", "--client", "gemini", "--yes")
    tools = parsed(bare / ".gemini/settings.json")["tools"]

    assert "mcp_kaiza_*" in tools["core"]
    assert not {"write_file", "replace", "run_shell_command", "web_fetch"} & set(tools["core"])
    assert "exclude" not in tools


def test_opencode_is_denied_editing_and_its_shell(kaiza, bare):
    put_file(bare / "opencode.json", b'{"permission": {"edit": "ask", "webfetch": "ask"}}')
    kaiza("init", "--client", "opencode", "--yes")
    written = parsed(bare / "opencode.json")
    (bare / "opencode.json").write_text(json.dumps({**written, "theme": "x"}))
    kaiza("init", "--client", "opencode", "--remove", "--yes")

    assert written["permission"] == {"edit": "deny", "webfetch": "ask", "bash": "deny"}
    assert parsed(bare / "opencode.json") == {"permission": {"edit": "ask", "webfetch": "ask"}, "theme": "x"}


def test_claude_code_may_use_kaizas_tools_until_a_person_takes_that_out(kaiza, bare):
    kaiza("init", "--client", "claude-code", "--yes")
    path = bare / ".claude/settings.json"
    written = parsed(path)
    written["permissions"].pop("allow")
    path.write_text(json.dumps(written))
    again = kaiza("init", "--client", "claude-code", "--yes")

    assert parsed(path) == written
    assert (again.status, again.out) == (0, "")


@pytest.mark.parametrize("client", ["claude", "claude-code"])
def test_a_client_has_a_short_name(kaiza, bare, client):
    assert kaiza("init", "--client", client, "--yes").status == 0
    assert (bare / ".mcp.json").exists()


def test_init_says_which_file_not_to_commit(kaiza, bare):
    outside = kaiza("init", "--client", "cursor", "--yes").err
    subprocess.run(["git", "init", "-q"], check=True)
    inside = kaiza("init", "--client", "cursor", "--yes").err
    (bare / ".git/info/exclude").write_text(".cursor/mcp.json\n")
    excluded = kaiza("init", "--client", "cursor", "--yes").err

    assert ["Do not commit .cursor/mcp.json" in text for text in (outside, inside, excluded)] == [False, True, False]


@EACH
def test_init_says_whether_the_configuration_is_tested_with_the_program(kaiza, bare, client):
    said = "not tested" in kaiza("init", "--client", client, "--yes").err

    assert said == (client in ("cursor", "vscode", "windsurf", "copilot"))


def test_remove_says_what_it_deleted_changed_and_left(kaiza, bare):
    put_file(bare / ".mcp.json", b'{"mcpServers": {"x": {}}}')
    kaiza("init", "--client", "claude-code", "--yes")
    (bare / ".kaiza").mkdir()
    put_file(bare / "audit/audit-log.jsonl", b"{}\n")
    shown = kaiza("init", "--remove", "--print", "--json").out
    said = kaiza("init", "--remove", "--yes").err

    assert {one["path"]: one["deed"] for one in json.loads(shown)["files"]} == {
        ".mcp.json": "changed",
        ".claude/settings.json": "deleted",
    }
    assert "1 file changed: .mcp.json" in said
    assert "1 file deleted: .claude/settings.json" in said
    assert "1 empty directory removed" in said
    assert "plans/, audit/, .kaiza/" in said


def test_several_clients_are_configured_and_removed_together(kaiza, bare):
    before = snapshot(bare, bare.parent / "home")
    for client in MAIN:
        kaiza("init", "--client", client, "--yes")
    ready = (bare / "plans/PLAN-0001-example.md").read_bytes()
    kaiza("init", "--client", "codex", "--remove", "--yes")
    still = (bare / "plans/PLAN-0001-example.md").read_bytes()
    kaiza("init", "--remove", "--yes")

    assert still == ready
    assert snapshot(bare, bare.parent / "home") == before


def test_remove_keeps_files_that_were_used(kaiza, bare):
    kaiza("init", "--client", "cursor", "--yes")
    put_file(bare / "audit/audit-log.jsonl", b"{}\n")
    kaiza("init", "--remove", "--yes")

    assert (bare / "audit/audit-log.jsonl").read_bytes() == b"{}\n"
    assert (bare / "audit/.gitignore").exists()
    assert (bare / "plans/PLAN-0001-example.md").exists()
    assert not (bare / ".cursor").exists()


JSON_FILES = st.one_of(
    st.none(),
    st.sampled_from([b"", b" \n", b"{}", b"{}\n", b'{"a":1}', b"\xef\xbb\xbf{}\r\n", b'{\r\n\t"a": [1, 2,],\r\n}']),
    st.builds(
        lambda servers, group, others, indent, tail: (
            json.dumps({**others, group: servers, "z": None}, indent=indent) + tail
        ).encode(),
        st.dictionaries(st.sampled_from(["kaiza", "x", "ü"]), st.dictionaries(st.just("command"), st.text(max_size=3))),
        st.sampled_from(["mcpServers", "servers"]),
        st.dictionaries(st.sampled_from(["a", "permissions", "tools"]), st.just({"deny": ["Bash", "x"]}), max_size=2),
        st.sampled_from([None, 1, 2, 4, "\t"]),
        st.sampled_from(["", "\n", "\n\n", " // end\n"]),
    ),
)
TOML_FILES = st.sampled_from(
    [None, b"", b"a = 1", b"a = 1\r\n", b"[mcp_servers.kaiza]\ncommand = 'x'\n\n[t]\nb = 2\n", b"# c"]
)


@pytest.mark.long
@EACH
@given(data=st.data())
@settings(
    max_examples=300 if os.environ.get("KAIZA_LONG") else 6,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_remove_restores_any_earlier_configuration_byte_for_byte(kaiza, bare, monkeypatch, client, data):
    monkeypatch.setattr("kaiza.store.clients.server_command.can_start", lambda: True)
    contents = TOML_FILES if client == "codex" else JSON_FILES
    names = dict.fromkeys([MAIN[client][0], *([DENIED[client][0]] if client in DENIED else [])])
    for name in names:
        names[name] = content = data.draw(contents)
        if content is None:
            place(bare, name).unlink(missing_ok=True)
        else:
            put_file(place(bare, name), content)
    before = snapshot(bare, bare.parent / "home")
    written = kaiza("init", "--client", client, "--yes")
    after = snapshot(bare, bare.parent / "home")
    again = kaiza("init", "--client", client, "--yes")
    unchanged = snapshot(bare, bare.parent / "home") == after
    removed = kaiza("init", "--client", client, "--remove", "--yes")

    assert (written.status, again.status, removed.status) == (0, 0, 0), (written.err, names)
    assert unchanged
    assert snapshot(bare, bare.parent / "home") == before


def test_remove_keeps_later_edits_of_a_configuration_file(kaiza, bare):
    put_file(bare / ".vscode/mcp.json", b'{\n  // mine\n  "servers": {\n    "x": {}\n  }\n}\n')
    kaiza("init", "--client", "vscode", "--yes")
    path = bare / ".vscode/mcp.json"
    path.write_text(path.read_text().replace('"x": {}', '"x": {"url": "u"}'))
    kaiza("init", "--client", "vscode", "--yes")
    kaiza("init", "--remove", "--yes")

    assert path.read_text() == '{\n  // mine\n  "servers": {\n    "x": {"url": "u"}\n  }\n}\n'


def test_remove_deletes_a_file_that_was_only_reformatted(kaiza, bare):
    kaiza("init", "--client", "claude-code", "--yes")
    for name in (".mcp.json", ".claude/settings.json"):
        (bare / name).write_text(json.dumps(json.loads((bare / name).read_text())))
    kaiza("init", "--client", "claude-code", "--remove", "--yes")

    assert not (bare / ".mcp.json").exists()
    assert not (bare / ".claude").exists()


def test_without_a_manifest_only_kaizas_own_entries_are_removed(kaiza, bare):
    put_file(bare / ".claude/settings.json", b'{"permissions": {"deny": ["Bash"]}}')
    put_file(bare / ".mcp.json", b'{"mcpServers": {"x": {}}}')
    kaiza("init", "--client", "claude-code", "--yes")
    for manifest in (bare.parent / "state").rglob("init.json"):
        manifest.unlink()
    kaiza("init", "--client", "claude-code", "--remove", "--yes")

    assert (bare / ".mcp.json").read_text() == '{"mcpServers": {"x": {}}}'
    assert "Bash" in json.loads((bare / ".claude/settings.json").read_text())["permissions"]["deny"]


def test_windsurfs_single_entry_moves_between_workspaces_and_is_restored(kaiza, bare, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    kaiza("init", "--client", "windsurf", "--yes")
    first = main_file(bare, "windsurf").read_bytes()
    kaiza("init", str(other), "--client", "windsurf", "--yes")
    second = main_file(bare, "windsurf").read_bytes()
    kaiza("init", str(other), "--remove", "--yes")

    assert str(other) in second.decode()
    assert main_file(bare, "windsurf").read_bytes() == first


def test_an_entry_at_home_for_another_workspace_is_left_alone(kaiza, bare):
    entry = {"command": "kaiza", "args": ["serve", "--workspace", "/somewhere/else"]}
    put_file(main_file(bare, "windsurf"), json.dumps({"mcpServers": {"kaiza": entry}}).encode())
    before = snapshot(bare.parent)
    result = kaiza("init", "--remove", "--yes")

    assert result.status == 0
    assert snapshot(bare.parent) == before


def test_a_kaiza_that_clients_cannot_start_is_not_configured(kaiza, bare, monkeypatch):
    monkeypatch.setattr("kaiza.store.clients.server_command.can_start", lambda: False)
    before = snapshot(bare.parent)

    assert kaiza("init", "--client", "cursor", "--yes").status == 3
    assert snapshot(bare.parent) == before


def test_the_printed_diff_applies_and_equals_the_change(kaiza, bare):
    put_file(bare / ".mcp.json", b'{\n  "mcpServers": {}\n}\n')
    kaiza("init", "--yes")
    before = snapshot(bare.parent)
    diff = kaiza("init", "--client", "claude-code", "--print").out
    assert snapshot(bare.parent) == before
    copy = bare.parent / "copy"
    put_file(copy / ".mcp.json", (bare / ".mcp.json").read_bytes())
    subprocess.run(["git", "apply", "-"], input=diff.encode(), check=True, cwd=copy)
    kaiza("init", "--client", "claude-code", "--yes")

    assert (copy / ".mcp.json").read_bytes() == (bare / ".mcp.json").read_bytes()
    assert (copy / ".claude/settings.json").read_bytes() == (bare / ".claude/settings.json").read_bytes()


def test_an_entry_of_other_content_is_shown_and_replaced(kaiza, bare):
    put_file(bare / ".mcp.json", b'{\n  "mcpServers": {\n    "kaiza": {"command": "old"}\n  }\n}\n')
    result = kaiza("init", "--client", "claude-code", "--yes")

    assert '-    "kaiza": {"command": "old"}' in result.out
    assert parsed(bare / ".mcp.json")["mcpServers"]["kaiza"]["command"] != "old"


@pytest.mark.parametrize(
    ("client", "content", "line"),
    [
        ("claude-code", b'{\n  "mcpServers": {\n', 3),
        ("vscode", b'{\n  "servers": []\n}', 2),
        ("codex", b"a = 1\nb =\n", 2),
        ("gemini", b'{\n"x": "\xff"}', 2),
    ],
)
def test_an_invalid_configuration_is_refused_with_its_line(kaiza, bare, client, content, line):
    put_file(main_file(bare, client), content)
    before = snapshot(bare.parent)
    result = kaiza("init", "--client", client, "--yes")

    assert (result.status, result.out) == (1, "")
    assert f"{MAIN[client][0]}, line {line}:" in result.err
    assert snapshot(bare.parent) == before


@pytest.mark.parametrize("what", ["file", "directory", "dangling", "plans", "fifo", "read-only", "audit is a file"])
def test_a_target_that_is_not_a_regular_writable_file_is_refused(kaiza, bare, what):
    elsewhere = bare.parent / "elsewhere"
    elsewhere.mkdir()
    put_file(elsewhere / "mcp.json", b"{}")
    target = bare / ".vscode/mcp.json"
    if what not in ("directory", "plans", "audit is a file"):
        target.parent.mkdir()
    {
        "file": lambda: target.symlink_to(elsewhere / "mcp.json"),
        "directory": lambda: target.parent.symlink_to(elsewhere),
        "dangling": lambda: target.symlink_to(elsewhere / "none"),
        "plans": lambda: (bare / "plans").symlink_to(elsewhere),
        "fifo": lambda: os.mkfifo(target),
        "read-only": lambda: (target.write_bytes(b"{}"), target.chmod(0o444)),
        "audit is a file": lambda: (bare / "audit").write_bytes(b""),
    }[what]()
    listed = sorted(str(path) for path in bare.parent.rglob("*"))
    result = kaiza("init", "--client", "vscode", "--yes")

    assert result.status == 1
    assert "Nothing was written" in result.err
    assert sorted(str(path) for path in bare.parent.rglob("*")) == listed
    assert (elsewhere / "mcp.json").read_bytes() == b"{}"


def test_init_keeps_the_mode_of_a_file(kaiza, bare):
    put_file(bare / ".mcp.json", b"{}")
    (bare / ".mcp.json").chmod(0o600)
    kaiza("init", "--client", "claude-code", "--yes")

    assert stat.S_IMODE((bare / ".mcp.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("last", range(9))
def test_if_one_file_cannot_be_written_none_is_changed(kaiza, bare, monkeypatch, last):
    put_file(bare / ".mcp.json", b"{}")
    before = snapshot(bare)
    real = os.fsync
    calls = iter(range(100))

    def fsync(descriptor):
        if next(calls) == last:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr("kaiza.store.clients.changes.small_files.os.fsync", fsync)
    result = kaiza("init", "--client", "claude-code", "--yes")

    assert result.status == 3
    assert snapshot(bare) == before


@pytest.mark.parametrize(
    ("client", "name"), [("claude-code", "a$HOME"), ("gemini", "a$HOME"), ("opencode", "a{env:HOME}")]
)
def test_a_path_that_the_client_would_take_for_a_variable_is_refused(kaiza, bare, client, name):
    odd = bare / name
    odd.mkdir()
    result = kaiza("init", str(odd), "--client", client, "--yes")

    assert (result.status, list(odd.iterdir())) == (1, [])


def test_without_a_terminal_init_exits_with_3_and_writes_nothing(process, bare):
    before = snapshot(bare.parent)
    result = process("init", "--client", "cursor", stdin=subprocess.DEVNULL, start_new_session=True)

    assert result.returncode == 3
    assert b"--yes" in result.stderr
    assert snapshot(bare.parent) == before


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("init", 1)])
def test_init_shows_the_diff_and_asks_once_at_the_terminal(screen, bare, answer, status):
    command = screen("init", "--client", "cursor")

    assert "+++ b/.cursor/mcp.json" in command.answer(answer)
    assert command.end() == status
    assert command.shown.count("[y/N]") == 1
    assert (bare / ".cursor/mcp.json").exists() == (status == 0)


def test_without_a_client_init_lists_the_clients_found(kaiza, bare, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    nothing = kaiza("init", "--yes")
    (bare.parent / "home/.gemini").mkdir()
    found = kaiza("init", "--yes")
    kaiza("init", "--client", "gemini", "--yes")

    assert "No client was found" in nothing.out
    assert "Gemini CLI: found; next: `kaiza init --client gemini`" in found.out
    assert "Gemini CLI: configured" in kaiza("init", "--yes").out


def test_json_lists_the_changes(kaiza, bare):
    result = json.loads(kaiza("init", "--client", "codex", "--json", "--print").out)

    assert result["workspace"] == str(bare)
    assert result["written"] is False
    assert {one["path"] for one in result["files"]} == {
        "audit/.gitignore",
        "plans/PLAN-0001-example.md",
        ".codex/config.toml",
    }


def test_json_needs_yes_or_print(kaiza, bare):
    assert kaiza("init", "--json").status == 2
    assert json.loads(kaiza("init", "--json", "--yes").out)["written"] is True
    assert json.loads(kaiza("init", "--json", "--yes").out)["written"] is False


def test_remove_with_print_only_shows_the_changes(kaiza, bare):
    kaiza("init", "--client", "claude-code", "--yes")
    before = snapshot(bare.parent)
    result = kaiza("init", "--remove", "--print")

    assert result.out.count("deleted file mode") == 4
    assert snapshot(bare.parent) == before


def test_diffs_are_escaped_but_for_their_tabs(kaiza, bare):
    put_file(bare / ".mcp.json", '{\n\t"mcpServers": {\n\t\t"\u202e\x9b2J": {}\n\t}\n}\n'.encode())
    result = kaiza("init", "--client", "claude-code", "--print")

    assert '\t\t"\\u202e\\x9b2J": {}' in result.out
    assert not {"\u202e", "\x9b", "\x1b"} & set(result.out)


def test_a_workspace_inside_another_is_pointed_out(kaiza, bare):
    kaiza("init", "--yes")
    (bare / "part").mkdir()

    assert "inside the workspace" in kaiza("init", "part", "--yes").err


def test_the_manifest_holds_the_earlier_content_and_is_private(kaiza, bare):
    put_file(bare / ".mcp.json", b'{"secret": 1}')
    kaiza("init", "--client", "claude-code", "--yes")
    (manifest,) = (bare.parent / "state").rglob("init.json")
    earlier = [one["before"] for one in json.loads(manifest.read_text())["files"].values() if one["before"]]

    assert [base64.b64decode(one) for one in earlier] == [b'{"secret": 1}']
    assert stat.S_IMODE(manifest.stat().st_mode) == 0o600


def test_every_client_is_covered_by_these_tests():
    assert set(MAIN) == set(CLIENTS)


def test_replacing_the_status_everywhere_in_the_example_plan_approves_it(bare, kaiza):
    kaiza("init", "--yes")
    path = bare / "plans/PLAN-0001-example.md"
    path.write_text(path.read_text().replace("status: DRAFT", "status: APPROVED"))
    (listed,) = json.loads(kaiza("plan", "list", "--json").out)["plans"]

    assert listed["allows"]
