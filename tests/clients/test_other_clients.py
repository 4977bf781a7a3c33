"""Clients that others wrote, in their own runtime: the TypeScript SDK 1.x and the Inspector's command line."""

import json
import os
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from agents import plan, sha
from clients.conftest import listening
from scenes import records

HERE = Path(__file__).parent
pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def clients(installed):
    """The installed clients."""
    return installed(HERE / "package.json")


@pytest.fixture
def serve(workspace):
    (workspace / "a.txt").write_text("hello\n")
    return [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)]


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)

    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout[done.stdout.index("{") :])


def told_of(workspace):
    return [(record["tool_name"], record["error_code"]) for record in records(workspace)]


@pytest.fixture
def run_script(clients):
    """Runs a script with the TypeScript SDK's client; what it saw."""

    def run_copy(name, *words, **environment):
        script = clients / name
        shutil.copy(HERE / name, script)
        return run(["node", str(script), *words], env={**os.environ, **environment})

    return run_copy


@pytest.fixture
def visit(run_script):
    return partial(run_script, "visit.mjs")


def test_the_typescript_client_lists_the_tools_begins_a_session_and_reads_a_file(visit, serve, workspace):
    seen = visit(*serve)

    assert seen["server"]["name"] == "kaiza"
    assert "begin_session" in seen["tools"]
    assert seen["read"]["structuredContent"]["content"] == "hello\n"
    assert json.loads(seen["read"]["content"][0]["text"]) == seen["read"]["structuredContent"]
    assert seen["missing"]["isError"] is True
    assert json.loads(seen["missing"]["content"][0]["text"])["error_code"] == "FILE_NOT_FOUND"
    assert seen["unknown"] == -32602
    assert told_of(workspace) == [
        ("begin_session", None),
        ("read_file", None),
        ("read_file", "FILE_NOT_FOUND"),
        ("zip", "TOOL_NOT_FOUND"),
    ]


def test_the_typescript_client_over_http_changes_a_file_under_a_plan_with_a_token(visit, serve, workspace):
    plan_hash = plan(workspace, scope='{modify: ["a.txt"]}')
    change = {"path": "a.txt", "content": "new\n", "expected_hash": sha(b"hello\n"), "plan_hash": plan_hash}
    new = [sys.executable, "-m", "kaiza", "token", "new", "ann", "--workspace", str(workspace)]
    token = subprocess.run(new, capture_output=True, check=True, text=True).stdout.strip()
    with listening(*serve[1:], "--http", "127.0.0.1:0") as url:
        seen = visit(f"{url}/mcp", CHANGE=json.dumps(change), KAIZA_TOKEN=token)

    assert seen["server"]["name"] == "kaiza"
    assert "begin_session" in seen["tools"]
    assert seen["read"]["structuredContent"]["content"] == "hello\n"
    assert seen["missing"]["isError"] is True
    assert seen["changed"]["isError"] is False
    assert seen["unknown"] == -32602
    assert (workspace / "a.txt").read_text() == "new\n"


@pytest.mark.rows("S3-29", "S3-30", "S4-17")
@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_the_typescript_client_gets_an_answer_to_every_odd_call_and_each_is_recorded(
    run_script, serve, workspace, transport
):
    if transport == "stdio":
        seen = run_script("fuzz.mjs", *serve)
    else:
        with listening(*serve[1:], "--http", "127.0.0.1:0", "--no-auth") as url:
            seen = run_script("fuzz.mjs", f"{url}/mcp")
    called = [record for record in records(workspace) if record["kind"] == "call"]

    assert seen["failed"] == []
    assert seen["answered"] == seen["calls"] == len(called)


def test_the_inspector_lists_the_tools_begins_a_session_and_reads_a_file(clients, serve, workspace):
    def inspect(*words):
        state = f"XDG_STATE_HOME={os.environ['XDG_STATE_HOME']}"
        inspector = clients / "node_modules" / ".bin" / "mcp-inspector"
        return run([str(inspector), "--cli", *serve, "-e", state, *words])

    tools = inspect("--method", "tools/list")["tools"]
    call = ["--method", "tools/call", "--tool-name"]
    begun = inspect(*call, "begin_session", "--tool-arg", "role=WINDSURF")
    session = f"session_id={begun['structuredContent']['session_id']}"
    read = inspect(*call, "read_file", "--tool-arg", "path=a.txt", "--tool-arg", session)

    assert "begin_session" in {tool["name"] for tool in tools}
    assert read["structuredContent"]["content"] == "hello\n"
    assert told_of(workspace) == [("begin_session", None), ("read_file", None)]
