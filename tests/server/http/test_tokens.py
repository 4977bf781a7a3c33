"""Tokens end to end: made on the command line, sent over HTTP, named in the log."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from doors import call
from http_doors import modern
from runs import latest_run
from scenes import records

WRONG = "kz_" + "A" * 43


@pytest.fixture
def door(open_http, workspace):
    """The real application, with tokens, in a workspace in which nothing is recorded yet."""
    return open_http([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0"])


def make(workspace, *words):
    """Run `kaiza token` and return what it prints."""
    command = [sys.executable, "-m", "kaiza", "token", *words, "--workspace", str(workspace)]
    return subprocess.run(command, capture_output=True, check=True, timeout=60, text=True).stdout.strip()


def ask(door, token, tool, **arguments):
    return door.post("/mcp", call(1, tool, **arguments), Authorization=f"Bearer {token}")


def begin(door, token):
    return ask(door, token, "begin_session", role="WINDSURF").value["result"]["structuredContent"]


def code(answer):
    """The error code in an MCP answer."""
    result = answer.value["result"]
    return json.loads(result["content"][0]["text"])["error_code"] if result["isError"] else "ok"


def test_a_session_over_http_is_its_tokens_alone_from_the_first_request_to_the_revocation(door, workspace):
    ann, bob = make(workspace, "new", "ann"), make(workspace, "new", "bob")
    (workspace / "a.txt").write_text("x\n")
    session = begin(door, ann)["session_id"]
    read = ask(door, ann, "read_file", path="a.txt", session_id=session)
    stolen = ask(door, bob, "read_file", path="a.txt", session_id=session)
    made_up = ask(door, bob, "read_file", path="a.txt", session_id=session[::-1])
    make(workspace, "revoke", "ann")
    late = ask(door, ann, "read_file", path="a.txt", session_id=session)

    assert (read.status, read.value["result"]["structuredContent"]["content"]) == (200, "x\n")
    assert code(stolen) == code(made_up) == "SESSION_NOT_INITIALIZED"
    assert (late.status, late.headers["WWW-Authenticate"]) == (401, "Bearer")
    principals = [each["principal"] for each in records(workspace) if each["kind"] == "call"]
    assert [label.partition("#")[0] for label in principals] == ["ann", "ann", "bob", "bob"]
    assert [line["agentId"] for line in latest_run(workspace)] == principals


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", f"Bearer {WRONG}", f"Basic {WRONG}", WRONG, "Bearer {token}x", "Bearer {upper}"]
)
def test_a_request_without_a_valid_token_reaches_no_tool(door, workspace, header):
    token = make(workspace, "new", "ann")
    before = len(records(workspace))
    headers = {} if header is None else {"Authorization": header.format(token=token, upper=token.upper())}
    message, more = modern(1, "tools/call", name="server_info", arguments={})
    answers = [door.post("/mcp", message, **more, **headers), door.post("/rpc", call(1, "server_info"), **headers)]

    assert {answer.status for answer in answers} == {401}
    assert len(records(workspace)) == before


def test_the_token_is_in_no_file_of_the_workspace_or_the_state_directory(door, workspace):
    token = make(workspace, "new", "ann")
    begin(door, token)
    door.end()
    state = [path for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*") if path.is_file()]
    files = [path for path in workspace.rglob("*") if path.is_file() and not path.is_symlink()]

    assert len(state) > 3
    assert [path for path in (*files, *state) if token.encode() in path.read_bytes()] == []
