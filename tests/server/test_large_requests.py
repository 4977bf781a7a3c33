"""Requests of many megabytes: a file of 8 MiB is written, replaced and undone; a larger one is refused and recorded."""

import base64
import json
import sys

import pytest
from agents import WIDE, plan
from doors import call
from scenes import records

from kaiza.domain.caps import Caps

LARGEST = Caps().written_bytes
LINE = "x = 'é' # \\ \" \t 0123456789\n"


@pytest.fixture
def ask(request, workspace, open_door, open_http):
    """Sends calls to a server in a workspace, on stdio or over HTTP."""
    serve = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)]
    if request.param == "stdio":
        return open_door(serve).ask
    door = open_http([*serve, "--http", "127.0.0.1:0", "--no-auth"])
    return lambda message: door.post("/mcp", message).value


def text_of(size):
    text = LINE * (size // len(LINE.encode()))
    return text + "z" * (size - len(text.encode()))


@pytest.mark.parametrize("ask", ["stdio", "http"], indirect=True)
def test_a_file_of_8_mib_is_written_replaced_and_undone_and_a_larger_one_refused(ask, workspace):
    plan_hash = plan(workspace, scope=WIDE)
    session = ask(call("b", "begin_session", role="WINDSURF"))["result"]["structuredContent"]["session_id"]
    given = {"path": "large.py", "plan_hash": plan_hash, "session_id": session}
    old, new = text_of(LARGEST), text_of(LARGEST - 1)

    def write(**arguments):
        return ask(call("w", "write_file", **given, **arguments))["result"]

    created = write(content=old)
    before = created["structuredContent"]["after_hash"]
    too_large = write(content=old + "z", expected_hash=before)
    replaced = write(content=base64.b64encode(new.encode()).decode(), encoding="base64", expected_hash=before)
    assert (workspace / "large.py").read_bytes() == new.encode()
    changes = [replaced["structuredContent"]["request_id"]]
    undone = ask(call("u", "undo_changes", request_ids=changes, plan_hash=plan_hash, session_id=session))
    cause = json.loads(too_large["content"][0]["text"])["cause"]

    assert undone["result"]["isError"] is False
    assert (workspace / "large.py").read_text() == old
    assert (cause["cap"], cause["limit"], cause["size"]) == ("written_bytes", LARGEST, LARGEST + 1)
    assert [record["error_code"] for record in records(workspace) if record["kind"] == "call"] == [
        None,
        None,
        "CAP_EXCEEDED",
        None,
        None,
    ]
