"""`kaiza init --http`: a client uses a server that runs already; the token is never in a file."""

import json
import re
import tomllib

import pytest

URL = "http://127.0.0.1:8750/mcp"
FILES = {
    "claude-code": (".mcp.json", "mcpServers"),
    "cursor": (".cursor/mcp.json", "mcpServers"),
    "codex": (".codex/config.toml", "mcp_servers"),
    "gemini": (".gemini/settings.json", "mcpServers"),
    "opencode": ("opencode.json", "mcp"),
}
HEADER = {"Authorization": "Bearer ${KAIZA_TOKEN}"}
ENTRIES = {
    "claude-code": {"type": "http", "url": URL, "headers": HEADER},
    "cursor": {"url": URL, "headers": {"Authorization": "Bearer ${env:KAIZA_TOKEN}"}},
    "codex": {"url": URL, "bearer_token_env_var": "KAIZA_TOKEN", "default_tools_approval_mode": "approve"},
    "gemini": {"httpUrl": URL, "headers": HEADER},
    "opencode": {"type": "remote", "url": URL, "headers": {"Authorization": "Bearer {env:KAIZA_TOKEN}"}},
}
EACH = pytest.mark.parametrize("client", FILES)
SECRET = "kz_" + "A" * 43


def entry(root, client):
    name, group = FILES[client]
    text = (root / name).read_text()
    return (tomllib.loads(text) if name.endswith(".toml") else json.loads(text))[group]["kaiza"]


def files_of(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


@EACH
def test_the_entry_names_the_url_and_the_variable_that_holds_the_token(workspace, kaiza, monkeypatch, client):
    monkeypatch.setenv("KAIZA_TOKEN", SECRET)
    done = kaiza("init", "--client", client, "--http", URL, "--yes")

    assert done.status == 0
    assert entry(workspace, client) == ENTRIES[client]
    assert "kaiza token new" in done.err
    assert [path for path, content in files_of(workspace.parent).items() if SECRET.encode() in content] == []
    assert SECRET not in done.out + done.err


@EACH
def test_a_second_time_changes_nothing_and_remove_restores_every_byte(workspace, kaiza, client):
    kaiza("init", "--yes")
    before = files_of(workspace)
    kaiza("init", "--client", client, "--http", URL, "--yes")
    once = files_of(workspace)
    kaiza("init", "--client", client, "--http", URL, "--yes")
    twice = files_of(workspace)
    kaiza("init", "--client", client, "--remove", "--yes")

    assert once == twice != before
    assert {path: before[path] for path in files_of(workspace)}.items() <= before.items()


@EACH
def test_the_entry_of_one_kind_replaces_that_of_the_other(workspace, kaiza, client):
    kaiza("init", "--client", client, "--yes")
    kaiza("init", "--client", client, "--http", URL, "--yes")
    over_http = entry(workspace, client)
    kaiza("init", "--client", client, "--yes")

    assert over_http == ENTRIES[client]
    own = entry(workspace, client)
    assert "serve" in (own["command"] if client == "opencode" else own["args"])
    assert not {"url", "httpUrl", "headers"} & entry(workspace, client).keys()


@pytest.mark.parametrize("client", ["vscode", "windsurf", "copilot"])
def test_a_client_that_cannot_read_the_variable_is_refused_with_manual_instructions(workspace, kaiza, client):
    before = files_of(workspace)
    done = kaiza("init", "--client", client, "--http", URL, "--yes")

    assert done.status == 1
    assert URL in done.err
    assert files_of(workspace) == before


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/mcp",
        "http://10.0.0.1/mcp",
        "http://localhost.example.org/mcp",
        "ftp://127.0.0.1/mcp",
        "https://user:secret@example.org/mcp",
        "https://example.org/mcp?token=${KAIZA_TOKEN}",
        "https://example.org/${HOME}",
        "127.0.0.1:8750",
        "",
    ],
)
def test_a_url_that_is_malformed_or_leaks_the_token_is_a_usage_error(workspace, kaiza, url):
    before = files_of(workspace)

    assert kaiza("init", "--client", "claude-code", "--http", url, "--yes").status == 2
    assert files_of(workspace) == before


@pytest.mark.parametrize("words", [("--http", URL), ("--client", "claude-code", "--http", URL, "--remove")])
def test_a_url_needs_a_client_and_is_not_for_removal(workspace, kaiza, words):
    assert kaiza("init", "--yes", *words).status == 2


def test_doctor_knows_the_entry_and_finds_a_token_that_someone_put_into_it(workspace, kaiza):
    kaiza("init", "--client", "claude-code", "--http", URL, "--yes")
    well = {each["check"]: each for each in json.loads(kaiza("doctor", "--json").out)["checks"]}
    file = workspace / ".mcp.json"
    file.write_text(re.sub(r"\$\{KAIZA_TOKEN\}", SECRET, file.read_text()))
    leaky = kaiza("doctor", "--json")
    checks = {each["check"]: each for each in json.loads(leaky.out)["checks"]}

    assert well["client:claude-code"]["verdict"] == "warning"  # nothing listens there
    assert (leaky.status, checks["client:claude-code"]["verdict"]) == (1, "problem")
    assert SECRET not in leaky.out
