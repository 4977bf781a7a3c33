"""The real house behind the real door, in its own process."""

import json
import sys
import time

import pytest
from doors import call, request
from scenes import records

RESPONSE_CAP = 512 * 1024
INITIALIZE = request(
    "hello", "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
)


@pytest.fixture
def served(open_door, workspace):
    return open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)])


def test_forty_requests_in_one_breath_get_forty_answers_and_forty_records(served, workspace):
    (workspace / "a.txt").write_text("hello\n")
    begin = call(0, "begin_session", role="WINDSURF")
    served.say(INITIALIZE, begin, *(call(number, "read_file", path="a.txt") for number in range(1, 40)))
    answers = [answer for answer in served.rest() if answer["id"] != "hello"]

    assert sorted(answer["id"] for answer in answers) == list(range(40))
    assert not any(answer["result"]["isError"] for answer in answers)
    assert len(records(workspace)) == 40
    assert served.process.returncode == 0


def test_a_signal_ends_the_real_server_with_0_and_every_answer_has_its_record(served, workspace):
    (workspace / "a.txt").write_text("hello\n" * 1000)
    served.say(INITIALIZE, call(0, "begin_session", role="WINDSURF"))
    served.hear()
    served.hear()
    served.say(*(call(number, "read_file", path="a.txt") for number in range(1, 20)))
    served.signal()
    began = time.monotonic()
    answers = served.after_its_end()

    assert served.process.returncode == 0
    assert time.monotonic() - began < 3
    assert len(records(workspace)) == len(answers) + 1


def test_no_answer_is_longer_than_its_cap_and_a_long_file_is_read_in_windows(served, workspace):
    (workspace / "long.txt").write_text('a "quoted" line\n' * 200_000)
    (workspace / "line.txt").write_text("\\" * 3_000_000)
    served.say(INITIALIZE, call(0, "begin_session", role="WINDSURF"))
    served.hear()
    served.hear()
    for number, path in enumerate(("long.txt", "line.txt"), 1):
        answer = served.ask(call(number, "read_file", path=path))
        line = json.dumps(answer, ensure_ascii=False, separators=(",", ":")).encode()

        assert answer["result"]["structuredContent"]["truncated"] is True
        assert len(line) <= RESPONSE_CAP


def test_a_session_begun_without_a_handshake_has_to_be_named(served):
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
    begin = request(0, "tools/call", name="begin_session", arguments={"role": "WINDSURF"}, _meta=meta)
    served.ask(begin)
    unnamed = served.ask(request(1, "tools/call", name="session_status", arguments={}, _meta=meta))["result"]

    assert json.loads(unnamed["content"][0]["text"])["error_code"] == "SESSION_NOT_INITIALIZED"
