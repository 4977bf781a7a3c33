"""`kaiza serve`: options, failed starts, and what a start imports and writes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from doors import call, request
from scenes import records

from kaiza.cli import serve
from kaiza.cli.serve import ServeOptions
from kaiza.domain.caps import Caps

INITIALIZE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
NOT_FOR_A_SESSION = {
    "ast_grep_py",
    "asyncio",
    "jsonschema",
    "mcp",
    "pydantic",
    "re2",
    "tomllib",
    "unidiff",
    "kaiza.boundary.change",
    "kaiza.domain.text.unified_diff",
    "kaiza.domain.patch",
    "kaiza.policy.content.scan",
    "kaiza.store.checks",
    "kaiza.store.changes.transaction",
    "kaiza.store.changes.recovery",
    "kaiza.store.files.tree_walk",
    "kaiza.store.documents.scope_preview",
}
# Whether the thread of the manifest begins before the server ends depends on the machine, and it imports more.
SERVE_AND_LIST_IMPORTS = """
import sys, threading
start = threading.Thread.start
def start_without_manifest(thread):
    if thread.name == "kaiza-manifest":
        thread._target, thread._args = str, ()
    start(thread)
threading.Thread.start = start_without_manifest
from kaiza.cli import dispatch
dispatch.main(["serve", "--workspace", "."])
sys.stderr.write(" ".join(sys.modules))
"""
WRONG = [
    ["--workspace"],
    ["--role", "BOTH"],
    ["--tool-timeout-ms", "0"],
    ["--tool-timeout-ms", "30001"],
    ["--scan-guard-ms", "15001"],
    ["--tool-timeout-ms", "1.5"],
    ["--content", "none"],
    ["--http", "localhost"],
    ["--http", ":80"],
    ["--http", "[]:80"],
    ["--http", "localhost:65536"],
    ["--http", "localhost:-1"],
    ["--http", "localhost:٨٠"],
    ["--no-auth"],
    ["--allow-host", "a"],
    ["--tls-cert", "a", "--tls-key", "b"],
    ["--http", "localhost:1", "--tls-cert", "a"],
    ["--http", "localhost:1", "--tls-key", "a"],
    ["--tier", "pro"],
    ["--workspace", "--role"],
    ["extra"],
]


@pytest.mark.parametrize("words", WRONG)
def test_an_invalid_option_is_a_usage_error(kaiza, words):
    result = kaiza("serve", *words)

    assert (result.status, result.out) == (2, "")


def test_several_workspaces_and_limits_are_parsed():
    words = ["--workspace", "a", "--workspace=b", "--role", "ANTIGRAVITY", "--role", "WINDSURF", "--allow-checks"]
    limits = ["--content", "summary", "--tool-timeout-ms", "200", "--scan-guard-ms", "1"]

    assert serve.parse_options([]) == ServeOptions()
    assert serve.parse_options(["--tier", "core"]) == ServeOptions(tier="core")
    assert serve.parse_options(words + limits) == ServeOptions(
        ("a", "b"), "WINDSURF", content="summary", tool_timeout_ms=200, scan_guard_ms=1, allow_checks=True
    )


@pytest.mark.rows("S1-50", "S1-70")
@pytest.mark.parametrize("case", ["no directory", "one in the other", "settings"])
def test_a_failed_start_prints_its_error_envelope_and_exits_with_3(process, tmp_path, case):
    (tmp_path / "below").mkdir()
    (tmp_path / "kaiza.toml").write_text("unknown_setting = 1\n")
    words = {
        "no directory": ["--workspace", str(tmp_path / "nothing")],
        "one in the other": ["--workspace", str(tmp_path), "--workspace", str(tmp_path / "below")],
        "settings": ["--workspace", str(tmp_path)],
    }[case]
    result = process("serve", *words, input=b"")
    envelope = json.loads(result.stderr)

    assert (result.returncode, result.stdout) == (3, b"")
    assert (envelope["error_code"], envelope["tool_name"]) == ("BOOTSTRAP_FAILURE", "startup")
    assert str(tmp_path) not in result.stderr.decode()


@pytest.mark.parametrize("first", [[], ["--deterministic"]])
def test_a_log_is_not_served_in_another_way_than_it_was_begun(process, workspace, first):
    lines = [request(0, "initialize", **INITIALIZE), call(1, "begin_session", role="WINDSURF")]
    given = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    serving = ["serve", "--workspace", str(workspace)]
    begun = process(*serving, *first, input=given)
    refused = process(*serving, *({"--deterministic"} - set(first)), input=given)

    assert begun.returncode == 0
    assert ("deterministic" in records(workspace)[0]["detail"]) is bool(first)
    assert (refused.returncode, json.loads(refused.stderr)["error_code"]) == (3, "BOOTSTRAP_FAILURE")
    assert len(records(workspace)) == 1


@pytest.mark.rows("S1-17", "S1-106")
@pytest.mark.parametrize(("value", "expected"), [("true", True), ("1", False), ("TRUE", False), (None, False)])
def test_a_failed_start_has_a_stack_trace_only_with_debug_stack(process, tmp_path, monkeypatch, value, expected):
    if value is not None:
        monkeypatch.setenv("DEBUG_STACK", value)
    envelope = json.loads(process("serve", "--workspace", str(tmp_path / "nothing"), input=b"").stderr)

    assert ("stack_trace" in envelope) is expected
    assert not expected or "resolve_roots" in envelope["stack_trace"]


@pytest.mark.rows("S1-106")
def test_debug_stack_is_documented():
    assert "DEBUG_STACK=true" in (Path(__file__).parent.parent.parent / "docs" / "PROTOCOL.md").read_text()


def test_the_server_starts_without_writing_anything(process, workspace, tmp_path):
    shutil.rmtree(workspace / ".kaiza")
    shutil.rmtree(tmp_path / "state")
    hello = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    result = process("serve", "--workspace", str(workspace), input=json.dumps(hello).encode() + b"\n")

    assert json.loads(result.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert result.returncode == 0
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["audit", "plans", "project"]


def test_the_first_tool_answer_loads_only_what_it_needs(kaiza, workspace):
    kaiza("plan", "new", "PLAN-0001-small")
    begin = {"name": "begin_session", "arguments": {"role": "WINDSURF"}}
    prompt = [("initialize", INITIALIZE), ("tools/list", {}), ("tools/call", begin)]
    lines = [
        {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        for number, (method, params) in enumerate(prompt)
    ]
    served = subprocess.run(
        [sys.executable, "-c", SERVE_AND_LIST_IMPORTS],
        capture_output=True,
        check=True,
        cwd=workspace,
        input=b"".join(json.dumps(line).encode() + b"\n" for line in lines),
    )
    plans = json.loads(served.stdout.splitlines()[-1])["result"]["structuredContent"]["plans"]
    loaded = set(served.stderr.decode().split())

    assert [plan["plan_id"] for plan in plans] == ["PLAN-0001-small"]
    assert sorted(loaded & NOT_FOR_A_SESSION) == []
    assert {name for name in loaded if name.startswith("kaiza.tools.")} == {
        "kaiza.tools.session",
        "kaiza.tools.session.begin_session",
        "kaiza.tools.planning",
        "kaiza.tools.planning.list_plans",
        "kaiza.tools.registry",
        "kaiza.tools.view",
    }


def test_time_limits_can_only_be_lowered():
    caps = Caps()

    assert (caps.tool_timeout_ms, caps.search_guard_ms) == (serve.MAX_TIMEOUT_MS, serve.MAX_GUARD_MS)
    assert caps.lower_times(None, None) == caps
    assert caps.lower_times(10**6, 10**6) == caps
    assert caps.lower_times(None, 12_000).find_guard_ms == caps.find_guard_ms
    assert caps.lower_times(None, 12_000).search_guard_ms == 12_000


def test_time_limits_from_the_command_line_become_caps():
    app = serve._build_app(ServeOptions(("/",), tool_timeout_ms=200, scan_guard_ms=300), ("/",))

    assert (app.caps.tool_timeout_ms, app.caps.find_guard_ms, app.caps.search_guard_ms) == (200, 300, 300)
