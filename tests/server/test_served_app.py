"""The real application behind the stdio transport, in a process of its own."""

import fcntl
import json
import os
import sys

import pytest
from agents import WIDE, plan
from doors import call, request, until
from scenes import records

from kaiza.domain import error_envelope

MAX_RESPONSE_BYTES = 512 * 1024
INITIALIZE = request(
    "hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


@pytest.fixture
def served(served_stdio):
    return served_stdio


def test_forty_requests_in_one_write_get_forty_answers_and_forty_records(served, workspace):
    (workspace / "a.txt").write_text("hello\n")
    begin = call(0, "begin_session", role="WINDSURF")
    served.say(INITIALIZE, begin, *(call(number, "read_file", path="a.txt") for number in range(1, 40)))
    answers = [answer for answer in served.rest() if answer["id"] != "hello"]

    assert sorted(answer["id"] for answer in answers) == list(range(40))
    assert not any(answer["result"]["isError"] for answer in answers)
    assert len(records(workspace)) == 40
    assert served.process.returncode == 0


def test_a_cancelled_change_is_made_and_recorded_without_an_answer(served, workspace):
    write = call(1, "write_file", path="new.txt", content="new\n", plan_hash=plan(workspace, scope=WIDE))
    served.say(INITIALIZE, call(0, "begin_session", role="WINDSURF"))
    answers = [served.hear()["id"], served.hear()["id"]]
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    with (workspace / "audit/audit-log.jsonl").open("rb") as log:
        fcntl.flock(log, fcntl.LOCK_EX)  # no intent can be recorded yet
        served.say(write, cancel, request("seen?", "ping"))
        answers.append(served.hear()["id"])

    assert answers + [answer["id"] for answer in served.rest()] == ["hello", 0, "seen?"]
    assert (workspace / "new.txt").read_text() == "new\n"
    assert records(workspace)[-1]["outcome"] == "ok"


def test_answers_stay_within_the_size_limit_and_long_files_are_truncated(served, workspace):
    (workspace / "long.txt").write_text('a "quoted" line\n' * 200_000)
    (workspace / "line.txt").write_text("\\" * 3_000_000)
    served.say(INITIALIZE, call(0, "begin_session", role="WINDSURF"))
    served.hear()
    served.hear()
    for number, path in enumerate(("long.txt", "line.txt"), 1):
        answer = served.ask(call(number, "read_file", path=path))
        line = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()

        assert answer["result"]["structuredContent"]["truncated"] is True
        assert len(line) <= MAX_RESPONSE_BYTES


def test_a_session_begun_without_a_handshake_must_be_named_in_each_call(served):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    begin = request(0, "tools/call", name="begin_session", arguments={"role": "WINDSURF"}, _meta=meta)
    served.ask(begin)
    unnamed = served.ask(request(1, "tools/call", name="session_status", arguments={}, _meta=meta))["result"]

    assert json.loads(unnamed["content"][0]["text"])["error_code"] == "SESSION_NOT_INITIALIZED"


@pytest.mark.rows("S1-77")
@pytest.mark.parametrize("params", [{}, {"name": None}, {"name": 5, "arguments": {"path": "a"}}, {"arguments": []}])
def test_a_call_without_a_usable_name_is_recorded_and_refused(served, workspace, params):
    served.ask(INITIALIZE)
    answer = served.ask(request(1, "tools/call", **params))
    error = answer["error"]
    (written,) = records(workspace)

    assert answer["id"] == 1
    assert (error["code"], error["message"]) == (-32602, "Invalid request parameters")
    assert error["data"]["error_code"] == "INVALID_PARAMS"
    assert error["data"]["details"] == {"reason": written["human_message"]}
    assert (written["tool_name"], written["outcome"], written["error_code"]) == ("unknown", "error", "INVALID_PARAMS")


@pytest.mark.rows("S1-77")
def test_a_call_without_a_usable_name_that_cannot_be_recorded_is_an_audit_failure(served, workspace):
    (workspace / "audit" / "audit-log.jsonl").mkdir()
    served.ask(INITIALIZE)
    result = served.ask(request(1, "tools/call"))["result"]

    assert json.loads(result["content"][0]["text"])["error_code"] == "AUDIT_LOG_FAILED"


@pytest.mark.rows("S1-84")
def test_a_failure_is_recorded_while_its_answer_is_still_blocked(open_door, workspace):
    incoming, outgoing = os.pipe()
    door = open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)], stdout=outgoing)
    with os.fdopen(incoming, "rb") as answers:
        door.say(call(0, "begin_session", role="WINDSURF"))
        session = json.loads(answers.readline())["result"]["structuredContent"]["session_id"]
        os.write(outgoing, b" " * fcntl.fcntl(outgoing, fcntl.F_GETPIPE_SZ))
        os.close(outgoing)
        door.say(call(1, "read_file", path="missing", session_id=session))
        until(lambda: len(records(workspace)) == 2)
        result = json.loads(answers.readline())["result"]

    assert result["isError"] is True
    assert {key: records(workspace)[1][key] for key in error_envelope.KEYS} == json.loads(result["content"][0]["text"])
