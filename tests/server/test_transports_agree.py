"""The same frames over stdio and to /rpc, and the same calls in all dialects, get the same answers."""

import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest
from agents import WIDE, plan, sha
from context_caches import MINIMAL, write_cache
from doors import Door, request
from frames import LONG, MALFORMED, SESSION, each_dialect, expects_an_answer, frame, frames
from http_doors import HttpDoor, expected_status
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scenes import bind, make_ready, records

from kaiza.domain.tool_card import READ_ONLY
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.wire import framing, message

VOLATILE = {"timestamp", "request_id", "session_id", "seq", "entry_hash", "duration_ms", "expires_at"}
HASHES = {"entry_hash", "prev_hash"}
"""Both are entry hashes. They cover the ids of the state directory and of the process, which differ in each replay."""
BEGIN = {"role": "WINDSURF", "client": "agent"}
POSITION = {"line": 0, "character": 0}
ARGUMENTS = {
    "read_file": {"path": "src/a.py"},
    "read_files": {"paths": ["src/a.py", "missing", ".env"]},
    "list_directory": {"path": "src"},
    "find_files": {"pattern": "**/*.py"},
    "search_text": {"query": "needle"},
    "read_location": {"uri": "{root}/src/a.py", "position": POSITION},
    "file_info": {"path": "src/a.py"},
    "read_plan": {"plan_id": "PLAN-1"},
    "lint_plan": {"plan_id": "PLAN-1"},
    "read_audit_log": {"since_seq": 2},
    "context_resolve": {"cache": "minimal", "query": "deployment", "budget": 100},
    "context_inspect_cache": {"cache": "minimal"},
}
GENERATED = {"suppress_health_check": list(HealthCheck), "phases": [Phase.generate]}
"""Settings of generated frames. Examples are not reduced: each starts servers."""
ENDING = ("begin_session", "end_session")
REFUSED = [
    ("read_file", {}),
    ("read_file", {"path": 5, "x": None}),
    ("read_file", {"path": "../../etc/passwd"}),
    ("read_file", {"path": "missing"}),
    ("read_file", {"path": ".env"}),
    ("read_file", {"path": "\ud800"}),
    ("find_files", {"pattern": "*", "pageSize": 201}),
    ("find_files", {"pattern": "*", "cursor": "x"}),
    ("save_plan", {"plan_id": "PLAN-2", "content": "x"}),
    ("nope", {}),
    ("", {}),
    ("read_file\n", {"path": "a"}),
    ("context_resolve", {"cache": "minimal", "query": "a", "budget": -1}),
    ("context_resolve", {"cache": "../minimal", "query": "a", "budget": 1}),
    ("context_inspect_cache", {}),
]
HOSTILE = [
    *(line for line, _, _ in MALFORMED if line),
    b"\xef\xbb\xbf{}",
    b'{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}',
    b'{"jsonrpc":"2.0","id":123456789012345678901234567890,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    frame("x" * 9_000, "ping", {}),
    *(
        frame("bad", "tools/call", params)
        for params in (
            {},
            {"tool": "server_info"},
            {"tool": "server_info", "name": "server_info", "arguments": {}},
            {"tool": "server_info", "arguments": {}, "input": {}},
            {"tool": 5, "arguments": {}},
            {"tool": "server_info", "arguments": []},
            {"tool": "server_info", "input": "x"},
            {"name": 5},
            {"name": "server_info", "arguments": [1]},
        )
    ),
    frame(1, "nope", {}),
    frame(1, "ping", {}),
    frame(1, "tools/list", {}),
    frame(1, "tools/list", {"category": "files"}),
    frame(1, "tools/list", {"tier": "nope"}),
    frame(1, "tools/list", {"category": 5}),
    frame(1, "tools/list", {"cursor": "x"}),
    frame("7", "tools/describe", {"tool": "read_file"}),
    frame(7, "tools/describe", {"tool": "nope"}),
    frame(7, "tools/describe", {}),
    frame(7, "server/info", {}),
    frame(7, "server/info", {"x": 1}),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """The path of the workspace, laid out anew for each replay: answers name it."""
    return tmp_path_factory.mktemp("agree") / "project"


def lay_out(root):
    """The same workspace, and no state of an earlier one; the hash of its plan."""
    for directory in (root, os.path.join(os.environ["XDG_STATE_HOME"], "kaiza")):
        shutil.rmtree(directory, ignore_errors=True)
    make_ready(root)
    (root / "src").mkdir()
    (root / "src/a.py").write_text("needle = 1\n")
    (root / ".env").write_text("PASSWORD=x\n")
    # The size of the log depends on how long the calls took.
    (root / ".gitignore").write_text("/audit/\n")
    write_cache(bind(root), "minimal", MINIMAL)
    (root / ".gitignore").write_text(
        "audit/\n.kaiza/\n"
    )  # the log grows, by as many digits as a call took milliseconds
    approved = plan(root, scope=WIDE)
    for path in (*root.rglob("*"), root):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return approved


@contextmanager
def over_stdio(root, *options):
    """A function that sends a frame over stdio and returns its answer; None for a notification."""
    door = Door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(root), *options], stderr=subprocess.DEVNULL)

    def exchange(line):
        door.say(line, request("sentinel", "ping"))
        answers = [door.hear()]
        answers += [door.hear()] if expects_an_answer(line) else []
        others = [answer for answer in answers if answer["id"] != "sentinel"]
        for answer in others:
            assert answer["jsonrpc"] == "2.0"
            assert answer.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
            assert "error" not in answer or answer["error"].keys() == {"code", "message", "data"}
        return others[0] if others else None

    try:
        yield exchange
        assert door.rest() == []
    finally:
        door.process.kill()
        door.process.wait()
        door.process.stdin.close()
        door.process.stdout.close()


@contextmanager
def over_http(root, *options):
    """The same over HTTP."""
    serving = ["serve", "--workspace", str(root), "--http", "127.0.0.1:0", "--no-auth", *options]
    door = HttpDoor([sys.executable, "-m", "kaiza", *serving])

    def exchange(line):
        answer = door.post("/rpc", line)
        assert answer.status == expected_status(answer), answer.body
        return answer.value if answer.body else None

    try:
        yield exchange
        assert door.end() == 0
    finally:
        door.process.kill()
        door.process.wait()
        door.process.stderr.close()


def replay(transport, root, lines, *options, at_once=1):
    """The answers to the frames, in a session of a new workspace; over HTTP, several may be in flight."""
    approved = lay_out(root)
    with transport(root, *options) as exchange:
        begun = exchange(frame("begin", "tools/call", {"tool": "begin_session", "arguments": BEGIN}))
        session = begun["result"]["output"]["session_id"]
        replaced = {SESSION: session, "{plan}": approved, "{root}": root.as_uri()}

        def send(line):
            for old, new in replaced.items():
                line = line.replace(old.encode(), new.encode())
            return exchange(line)

        with ThreadPoolExecutor(at_once) as threads:
            return [begun, *threads.map(send, lines)]


def settle(value, volatile=VOLATILE | HASHES):
    """The value without its volatile members, also in text blocks that hold JSON."""
    if isinstance(value, dict):
        return {key: settle(item, volatile) for key, item in value.items() if key not in volatile}
    if isinstance(value, list):
        return [settle(item, volatile) for item in value]
    if isinstance(value, str) and value.startswith("{"):
        try:
            return settle(json.loads(value), volatile)
        except ValueError:
            return value
    return value


def readings(index=None):
    """A call of every tool that only reads, in one dialect or in all, and calls that are refused."""
    names = [row["id"] for row in SchemaRegistry().catalog() if row["safety_level"] == READ_ONLY]
    calls = [(name, ARGUMENTS.get(name, {})) for name in names if name not in ENDING]
    lines = []
    for number, (tool, arguments) in enumerate([*calls, *REFUSED]):
        shapes = each_dialect(tool, {**arguments, "session_id": SESSION})
        lines += [frame(number, "tools/call", params) for params in (shapes if index is None else [shapes[index]])]
    return lines


def changes():
    """Calls that change files and undo that, then calls that fail, lock the role and unlock it, in every dialect."""
    given = {"session_id": SESSION, "plan_hash": "{plan}"}
    old, new = sha(b"needle = 1\n"), sha(b"needle = 2\n")
    done = [
        ("write_file", {"path": "b.py", "content": "b = 1\n"}),
        ("edit_file", {"path": "src/a.py", "expected_hash": old, "edits": [{"old_text": "1", "new_text": "2"}]}),
        ("move_file", {"source": "b.py", "destination": "c.py", "expected_hash": sha(b"b = 1\n")}),
        ("delete_file", {"path": "src/a.py", "expected_hash": new}),
        ("undo_changes", {"all_of_session": True}),
    ]
    failed = [
        ("write_file", {"path": "src/a.py", "content": "b = 2\n"}),
        ("write_file", {"path": "src/a.py", "content": "b = 2\n", "expected_hash": new}),
        ("apply_patch", {"patch": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-x\n+y\n"}),
        ("write_file", {"path": "d.py", "content": "x", "plan_hash": "0" * 64}),
        ("write_file", {"path": "plans/PLAN-3.md", "content": "x"}),
        ("write_file", {"path": "d.py", "content": "x"}),
        ("session_status", {"plan_hash": None}),
        ("write_report", {"plan_hash": None, "title": "Out of scope", "content": "I was wrong."}),
    ]
    calls = [(index, *call) for calls in (done, failed) for index in range(3) for call in calls]
    return [
        frame(number, "tools/call", each_dialect(tool, without_null({**given, **arguments}))[index])
        for number, (index, tool, arguments) in enumerate(calls)
    ]


def without_null(arguments):
    return {name: value for name, value in arguments.items() if value is not None}


@pytest.mark.rows("S3-28", "S3-29", "S3-30")
def test_the_same_frames_get_the_same_answers_over_stdio_and_http(root):
    lines = [*HOSTILE, *readings()]
    stdio, http = (replay(transport, root, lines) for transport in (over_stdio, over_http))

    assert_same(lines, settle(stdio), settle(http))


@pytest.mark.rows("S3-28")
def test_deterministic_servers_answer_changes_with_the_same_ids_and_times_over_stdio_and_http(root):
    lines = changes()
    stdio, http = (replay(transport, root, lines, "--deterministic") for transport in (over_stdio, over_http))

    assert_same(lines, settle(stdio, HASHES), settle(http, HASHES))
    assert "1970-01-01T00:00:00" in json.dumps(stdio)
    assert {answer["id"] for answer in stdio if "result" in answer} >= {*range(15), "begin"}


def assert_same(lines, stdio, http):
    for line, one, other in zip([b"begin", *lines], stdio, http, strict=True):
        assert one == other, line


@pytest.mark.rows("S4-16", "S4-17")
def test_every_tool_that_reads_gives_the_same_output_in_every_dialect(root):
    each = [settle(replay(over_stdio, root, readings(index))[1:]) for index in range(3)]
    outputs = [{answer["id"]: find_output(answer.get("result", {})) for answer in answers} for answers in each]

    assert all(answer["jsonrpc"] == "2.0" for answers in each for answer in answers)
    assert outputs[0] == outputs[1] == outputs[2]
    assert sum(output is not None for output in outputs[0].values()) > len(ARGUMENTS)


def find_output(result):
    """The output of a result, whatever the dialect; None for an error."""
    return result.get("structuredContent", result.get("output"))


@pytest.mark.rows("S3-28", "S3-29", "S3-30", "S4-17")
def test_frames_that_are_too_long_get_the_same_answers_over_stdio_and_http(root):
    content = {"content": "y" * framing.MAX_LINE}
    calls = each_dialect("write_file", content)
    lines = [
        frame("ping", "ping", content),
        *(frame(number, "tools/call", params) for number, params in enumerate(calls)),
    ]
    stdio, http = (replay(transport, root, lines, "--deterministic") for transport in (over_stdio, over_http))

    assert_same([line[:80] for line in lines], settle(stdio, HASHES), settle(http, HASHES))
    assert [answer["id"] for answer in stdio] == ["begin", "ping", 0, 1, 2]
    assert stdio[1]["error"]["code"] == -32600
    assert stdio[3]["error"]["code"] == -32002
    assert [record["error_code"] for record in records(root) if record["kind"] == "call"][1:] == [
        "INVALID_TOOL_INPUT"
    ] * 3


@pytest.mark.long
@pytest.mark.rows("S3-28")
@settings(max_examples=150 if LONG else 3, **GENERATED)
@given(st.lists(frames, min_size=40, max_size=60))
def test_generated_frames_get_the_same_answers_over_stdio_and_http(root, lines):
    stdio, http = (replay(transport, root, lines, "--deterministic") for transport in (over_stdio, over_http))

    assert_same(lines, settle(stdio, HASHES), settle(http, HASHES))


# Five minutes, half a minute, two seconds.
SURVIVED = 700 if LONG else 60 if os.environ.get("CI") else 2


@pytest.mark.long
@settings(max_examples=SURVIVED, **GENERATED)
@given(st.lists(frames, min_size=40, max_size=60).map(lambda lines: lines * 4))
def test_a_server_survives_generated_frames_and_records_every_call(root, lines):
    replay(over_http, root, lines, "--deterministic", at_once=8)
    parsed = [message.parse(line) for line in lines]
    called = sum(isinstance(each, message.Request) and each.method == "tools/call" for each in parsed)
    written = [record["request_id"] for record in records(root) if record["kind"] == "call"]

    assert len(written) == len(set(written)) == called + 1
    assert verify_log(str(root)).verdict == "intact"
