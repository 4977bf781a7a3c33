"""Fuzzing: every line that is not a notification gets one well-formed answer, and the server survives."""

import os
import subprocess
import sys

import pytest
from doors import Door, request
from frames import encode_line, expects_an_answer, replace_byte, values
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

LONG = bool(os.environ.get("KAIZA_LONG"))
SENTINEL = request("sentinel", "ping")
CODES = {-32700, -32600, -32601, -32602, -32603, -32022}

methods = st.sampled_from(
    ["initialize", "ping", "tools/list", "tools/call", "server/discover", "notifications/initialized", "", "nope"]
)
versions = st.sampled_from(["2026-07-28", "2025-11-25", "x", None, 5])
metas = values | st.fixed_dictionaries(
    {},
    optional={
        "io.modelcontextprotocol/protocolVersion": versions,
        "io.modelcontextprotocol/clientCapabilities": values | st.just({}),
        "io.modelcontextprotocol/clientInfo": values,
    },
)
names = st.sampled_from(["echo", "fail", "patch", "crash", "zip", "", "Echo"])
params = st.fixed_dictionaries(
    {},
    optional={
        "name": names | values,
        "arguments": values | st.dictionaries(st.text(max_size=4), values, max_size=3),
        "_meta": metas,
        "cursor": values,
        "protocolVersion": versions,
        "capabilities": values | st.just({}),
        "clientInfo": values | st.just({"name": "f", "version": "1"}),
    },
)
messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.just("2.0") | st.just("2.0") | values,
        "id": st.integers(0, 3) | st.text(max_size=3) | values,
        "method": methods | methods | values,
        "params": params | params | values,
        "extra": values,
    },
)
requests = st.builds(
    lambda number, method, params: {"jsonrpc": "2.0", "id": number, "method": method, "params": params},
    st.integers() | st.text(max_size=3),
    methods,
    params,
)


whole_lines = (messages | requests | values).map(encode_line)
lines = (
    whole_lines
    | st.builds(replace_byte, whole_lines, st.integers(0, 1000), st.integers(0, 255).filter(lambda byte: byte != 10))
    | st.binary(max_size=60).map(lambda line: line.replace(b"\n", b" "))
)


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory):
    record = tmp_path_factory.mktemp("fuzz") / "record"
    fake_app = os.path.join(os.path.dirname(os.path.dirname(__file__)), "fake_app.py")
    door = Door([sys.executable, fake_app, str(record)], record, stderr=subprocess.DEVNULL)
    yield door
    door.process.kill()
    door.process.wait()
    door.process.stdin.close()
    door.process.stdout.close()


@pytest.mark.long
@settings(max_examples=20_000 if LONG else 300, suppress_health_check=list(HealthCheck))
@given(lines)
def test_every_fuzzed_line_is_answered_and_the_server_survives(fuzzed, line):
    fuzzed.say(line, SENTINEL)
    answers = [fuzzed.hear()]
    while answers[-1]["id"] != "sentinel":
        answers.append(fuzzed.hear())
    if expects_an_answer(line):
        answers.extend([fuzzed.hear()] if len(answers) == 1 else [])

    assert len(answers) == (2 if expects_an_answer(line) else 1)
    for answer in answers:
        assert answer["jsonrpc"] == "2.0"
        assert answer.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
        assert "error" not in answer or answer["error"]["code"] in CODES
        assert "error" not in answer or answer["error"].keys() == {"code", "message", "data"}
