"""The boundary around tools: one outcome and one record for each call, whatever is raised."""

import json
import os
import re
import shutil
import socket
import subprocess
import threading
import time
import uuid
from dataclasses import dataclass, replace
from datetime import datetime

import pytest
from agents import plan
from doors import until
from scenes import make_ready, records

from kaiza import boundary
from kaiza.app import App
from kaiza.clock import current_timestamp
from kaiza.domain import error_codes, error_envelope
from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.domain.tool_card import ToolOffer
from kaiza.store.documents import workspace_template
from kaiza.tools.registry import AGENT_TOOLS

UTC_MS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


@dataclass(frozen=True)
class NoRequest:
    """A request for tools that are replaced by one that fails."""


def failing(app, tool, arguments):
    outcome = app.call(tool, arguments)
    assert outcome.envelope is not None
    return outcome.envelope


FAULTS = {
    "raise": "UNKNOWN_TOOL_FAILURE",
    "exit": "UNKNOWN_TOOL_FAILURE",
    "oserror": "UNKNOWN_TOOL_FAILURE",
    "str": "INTERNAL_ERROR",
    "object": "INTERNAL_ERROR",
    "bad_output": "INTERNAL_ERROR",
    "list": "INTERNAL_ERROR",
    "wrong_type": "INTERNAL_ERROR",
    "not_json": "INTERNAL_ERROR",
    "surplus": "INTERNAL_ERROR",
    "invariant": "INVARIANT_VIOLATION",
    "legacy": "HASH_MISMATCH",
    "foreign": "UNKNOWN_TOOL_FAILURE",
    "huge": "CAP_EXCEEDED",
    "cycle": "INVALID_PATH",
}


CAUSES = {
    "oserror": {"message": "Permission denied", "code": 13, "name": "PermissionError"},
    "str": {"type": "str"},
    "object": {"type": "dict"},
}


@pytest.mark.rows(
    "S3-14", "S1-1", "S1-2", "S1-3", "S1-6", "S1-12", "S1-15", "S1-19", "S1-54", "S1-55", "S1-60", "S1-64"
)
@pytest.mark.rows("S1-66", "S1-73", "S1-74", "S1-75", "S1-76", "S1-77", "S1-78", "S1-79", "S1-80", "S1-82", "S1-83")
@pytest.mark.rows("S1-97", "S1-98", "S1-100", "S2-26")
@pytest.mark.parametrize(("kind", "code"), FAULTS.items())
def test_an_exception_in_a_tool_becomes_an_envelope_with_a_stable_code_and_one_record(begun, workspace, kind, code):
    before = len(records(workspace))
    envelopes = [failing(begun, "debug_fault", {"kind": kind}) for _ in range(3)]
    written = records(workspace)[before:]

    assert code in error_codes.SYSTEM_ERROR_CODES
    assert [envelope["error_code"] for envelope in envelopes] == [code] * 3
    assert all(tuple(envelope) == error_envelope.KEYS for envelope in envelopes)
    assert json.loads(json.dumps(envelopes[0], allow_nan=False)) == envelopes[0]
    assert [{key: record[key] for key in error_envelope.KEYS} for record in written] == envelopes
    assert {(record["kind"], record["outcome"]) for record in written} == {("call", "error")}
    assert envelopes[0]["invariant_id"] == ("MANDATORY_DIAGNOSTICS" if kind == "invariant" else None)
    assert envelopes[0]["cause"] == CAUSES.get(kind, envelopes[0]["cause"])


@pytest.mark.rows("S1-72")
@pytest.mark.parametrize("name", AGENT_TOOLS)
def test_an_exception_in_any_tool_becomes_one_envelope_and_one_record(workspace, monkeypatch, name):
    def fail(*_):
        raise RuntimeError("boom")

    for rule in ("check_arguments_sound", "judge"):
        monkeypatch.setattr(boundary, rule, lambda *_: None)
    monkeypatch.setattr(boundary, "judge_under_plan", lambda case, *_: case)
    faulty = replace(AGENT_TOOLS[name], parse=lambda *_: NoRequest(), run=fail)
    app = App(
        [os.path.realpath(workspace)], tools={**AGENT_TOOLS, name: faulty}, offer=ToolOffer(allowed=["allow_checks"])
    )
    envelope = failing(app, name, {"role": "WINDSURF"})
    app.close()

    assert (envelope["error_code"], envelope["tool_name"]) == ("UNKNOWN_TOOL_FAILURE", name)
    assert {key: records(workspace)[-1][key] for key in error_envelope.KEYS} == envelope


@pytest.mark.rows("S1-13", "S1-14", "S1-81", "S1-95")
def test_phase_and_plan_hash_are_returned_and_recorded_as_given(begun, workspace):
    plan_hash = plan(workspace)
    arguments = {"kind": "raise", "phase_id": "PHASE_5A", "plan_hash": plan_hash}
    envelope = failing(begun, "debug_fault", arguments)

    assert (envelope["phase_id"], envelope["plan_hash"]) == ("PHASE_5A", plan_hash)
    assert (records(workspace)[-1]["phase_id"], records(workspace)[-1]["plan_hash"]) == ("PHASE_5A", plan_hash)
    assert failing(begun, "debug_fault", {"kind": "raise"})["phase_id"] is None


@pytest.mark.rows("S1-14")
def test_the_plan_hash_of_an_envelope_is_a_plans_or_null(begun, workspace):
    drafted, approved = plan(workspace, "PLAN-1", "DRAFT"), plan(workspace, "PLAN-2")
    write = {"path": "a", "content": "x"}
    refused_early = failing(begun, "write_file", {**write, "plan_hash": approved, "surplus": 1})
    shown = {
        plan_hash: failing(begun, "write_file", {**write, "plan_hash": plan_hash})["plan_hash"]
        for plan_hash in (drafted, approved, "ab" * 32)
    }

    assert shown == {drafted: drafted, approved: approved, "ab" * 32: None}
    assert (refused_early["error_code"], refused_early["plan_hash"]) == ("INVALID_INPUT_VALUE", approved)
    assert records(workspace)[-1]["arguments"]["plan_hash"] == "ab" * 32


@pytest.mark.rows("S1-17")
def test_a_stack_trace_is_returned_only_with_debug_stack_and_never_recorded(begun, workspace, monkeypatch):
    without = failing(begun, "debug_fault", {"kind": "raise"})
    monkeypatch.setenv("DEBUG_STACK", "1")
    still_without = failing(begun, "debug_fault", {"kind": "raise"})
    monkeypatch.setenv("DEBUG_STACK", "true")
    envelope = failing(begun, "debug_fault", {"kind": "raise"})

    assert "stack_trace" not in without
    assert "stack_trace" not in still_without
    assert "OwnError" in envelope["stack_trace"]
    assert "stack_trace" not in records(workspace)[-1]


@pytest.mark.rows("S1-8", "S1-9", "S1-10", "S1-94")
def test_role_session_and_workspace_of_an_envelope_are_null_before_a_session(app, workspace, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(workspace)
    early = failing(app, "read_file", {"path": "x"})
    session = app.call("begin_session", {"role": "ANTIGRAVITY", "workspace_root": str(link)}).output
    late = failing(app, "read_file", {"path": "x"})

    assert (early["role"], early["session_id"], early["workspace_root"]) == (None, None, None)
    assert (late["role"], late["session_id"]) == ("ANTIGRAVITY", session["session_id"])
    assert late["workspace_root"] == os.path.realpath(workspace)
    assert uuid.UUID(session["session_id"]).version == 4


@pytest.mark.rows("S1-16")
def test_timestamps_are_from_the_servers_clock(begun, workspace):
    calls = [{"path": "x"}, {"path": "x", "timestamp": "2001-02-03T04:05:06.000Z"}, {"kind": "raise"}]
    timestamps = []
    for arguments in calls:
        before = current_timestamp()
        timestamps.append(failing(begun, "read_file" if "path" in arguments else "debug_fault", arguments)["timestamp"])
        assert before <= timestamps[-1] <= current_timestamp()
        assert UTC_MS.fullmatch(timestamps[-1])
        until(lambda: current_timestamp() > timestamps[-1])

    assert timestamps == sorted(set(timestamps))
    assert [record["timestamp"] for record in records(workspace)][-3:] == timestamps
    assert abs(datetime.fromisoformat(timestamps[-1]).timestamp() - time.time()) < 60


@pytest.mark.rows("S1-21", "S1-86")
def test_a_call_refused_for_want_of_a_session_succeeds_after_begin_session(app, workspace):
    (workspace / "a.txt").write_text("hello\n")
    refused = failing(app, "read_file", {"path": "a.txt"})
    app.call("begin_session", {"role": "WINDSURF"})

    assert refused["error_code"] == "SESSION_NOT_INITIALIZED"
    assert app.call("read_file", {"path": "a.txt"}).output["content"] == "hello\n"


@pytest.mark.rows("S1-11", "S1-19")
def test_an_unknown_tool_is_refused_and_recorded_by_its_name(begun, workspace):
    envelope = failing(begun, "no_such_tool", {"path": "x"})

    assert (envelope["error_code"], envelope["tool_name"]) == ("TOOL_NOT_FOUND", "no_such_tool")
    assert records(workspace)[-1]["tool_name"] == "no_such_tool"
    assert records(workspace)[-1]["session_id"] is not None


def test_the_long_name_of_an_unknown_tool_is_truncated_in_the_record(begun, workspace):
    envelope = failing(begun, "n" * 100_000, {})
    written = records(workspace)[-1]

    assert envelope["error_code"] == "TOOL_NOT_FOUND"
    assert (envelope["tool_name"], written["tool_name"]) == ("n" * 64, "n" * 64)
    assert len(json.dumps([envelope, written])) < 4096


def test_arguments_that_are_not_an_object_are_refused_and_recorded(begun, workspace):
    envelope = failing(begun, "read_file", "x")

    assert envelope["error_code"] == "INVALID_PARAMS"
    assert records(workspace)[-1]["error_code"] == "INVALID_PARAMS"


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        pytest.param(
            *("read_location", {"uri": "a.py", "position": {"line": 0, "character": 0}}, "INVALID_INPUT_FORMAT"),
            marks=pytest.mark.rows("S1-25", "S2-16"),
        ),
        ("write_file", {"path": "a", "content": "", "plan_hash": "not a hash"}, "INVALID_INPUT_FORMAT"),
        pytest.param("read_file", {}, "MISSING_REQUIRED_FIELD", marks=pytest.mark.rows("S1-27")),
        pytest.param("read_file", {"path": 5}, "INVALID_INPUT_TYPE", marks=pytest.mark.rows("S1-24")),
        pytest.param("read_file", {"path": ""}, "INVALID_INPUT_VALUE", marks=pytest.mark.rows("S1-26")),
        ("read_file", {"path": "a", "zzz": 1}, "INVALID_INPUT_VALUE"),
        ("read_file", {"path": "a", "max_lines": 5001}, "INVALID_INPUT_VALUE"),
        ("read_file", {"path": "a", "max_lines": "5"}, "INVALID_INPUT_TYPE"),
        ("read_file", {"path": "a", "max_lines": 5.0}, "INVALID_INPUT_TYPE"),
        ("read_file", {"path": "a", "max_lines": True}, "INVALID_INPUT_TYPE"),
        ("read_file", {"max_lines": "5", "zzz": 1}, "MISSING_REQUIRED_FIELD"),
    ],
)
def test_arguments_are_not_coerced_and_the_most_important_fault_sets_the_code(begun, tool, arguments, code):
    assert failing(begun, tool, arguments)["error_code"] == code


def test_all_errors_are_reported_at_once(begun):
    envelope = failing(begun, "read_file", {"max_lines": "5", "zzz": 1})

    assert {(fault["argument"], fault["code"]) for fault in envelope["cause"]["faults"]} == {
        ("path", "MISSING_REQUIRED_FIELD"),
        ("max_lines", "INVALID_INPUT_TYPE"),
        ("zzz", "INVALID_INPUT_VALUE"),
    }


@pytest.mark.parametrize(
    ("tool", "path", "code"),
    [
        pytest.param("read_file", "a\0b", "INVALID_PATH", marks=pytest.mark.rows("S1-31")),
        pytest.param("list_directory", "missing", "PATH_NOT_FOUND", marks=pytest.mark.rows("S1-32")),
        pytest.param("read_file", "../../etc/passwd", "PATH_TRAVERSAL_BLOCKED", marks=pytest.mark.rows("S1-33")),
        pytest.param("read_file", "/etc/passwd", "OUTSIDE_WORKSPACE", marks=pytest.mark.rows("S1-34")),
        pytest.param("read_file", "out/passwd", "OUTSIDE_WORKSPACE", marks=pytest.mark.rows("S1-34")),
        pytest.param("read_file", "missing.txt", "FILE_NOT_FOUND", marks=pytest.mark.rows("S1-35")),
        pytest.param("read_file", "plans", "FILE_READ_FAILED", marks=pytest.mark.rows("S1-37")),
        ("read_file", "pipe", "FILE_READ_FAILED"),
        ("read_file", ".env", "POLICY_VIOLATION"),
        ("read_file", "to_env", "POLICY_VIOLATION"),
        ("read_file", ".kaiza/objects/aa", "POLICY_VIOLATION"),
        ("read_file", "x" * 256, "INVALID_PATH"),
        ("read_file", "\ud800", "INVALID_PATH"),
    ],
)
def test_an_unreadable_path_is_refused_with_its_code(begun, workspace, tool, path, code):
    (workspace / "out").symlink_to("/etc")
    (workspace / ".env").write_text("TOKEN=1")
    (workspace / "to_env").symlink_to(".env")
    os.mkfifo(workspace / "pipe")
    envelope = failing(begun, tool, {"path": path})

    assert envelope["error_code"] == code
    assert envelope["invariant_id"] == ("READ_PROTECTED" if code == "POLICY_VIOLATION" else None)


CALLS_WITH_PATHS_OUTSIDE = [
    ("read_file", {"path": "/etc/passwd"}),
    ("read_file", {"path": "out/passwd"}),
    ("read_file", {"path": "../../etc/passwd"}),
    ("list_directory", {"path": "/var/log"}),
    ("find_files", {"path": "/usr/share", "pattern": "*"}),
    ("search_text", {"path": "/usr/share", "query": "x"}),
    ("file_info", {"path": "/home/ann/notes.txt"}),
    ("read_location", {"uri": "file:///etc/passwd", "position": {"line": 0, "character": 0}}),
    ("write_file", {"path": "/etc/passwd", "content": "x", "plan_hash": "0" * 64}),
    ("move_file", {"source": "/etc/a", "destination": "/etc/b", "expected_hash": "0" * 64, "plan_hash": "0" * 64}),
    ("read_plan", {"plan_id": "/etc/passwd"}),
    ("begin_session", {"role": "WINDSURF", "workspace_root": "/etc"}),
    ("debug_fault", {"kind": "oserror"}),
    ("/usr/bin/env", {}),
]


@pytest.mark.rows("S1-7")
@pytest.mark.parametrize(("tool", "arguments"), CALLS_WITH_PATHS_OUTSIDE)
def test_error_messages_do_not_repeat_the_requested_path(begun, workspace, tool, arguments):
    (workspace / "out").symlink_to("/etc")
    envelope = failing(begun, tool, arguments)

    assert not re.search(r"(?<!\w)/\w+|passwd|etc\b", envelope["human_message"])
    assert re.fullmatch(r"[A-Z].+\.", envelope["human_message"])


@pytest.mark.parametrize(
    ("arguments", "word", "name"),
    [
        ({"role": "planner"}, "planner", "ANTIGRAVITY"),
        ({"role": "ANTIGRAVITY"}, "planner", "ANTIGRAVITY"),
        ({"role": "executor"}, "executor", "WINDSURF"),
        ({"role": "WINDSURF"}, "executor", "WINDSURF"),
        ({}, "executor", "WINDSURF"),
    ],
)
def test_a_role_is_named_by_its_word_or_its_name_and_is_executor_if_none_is(app, arguments, word, name):
    begun = app.call("begin_session", arguments).output

    assert (begun["role"], app.call("session_status", {}).output["role"]) == (word, word)
    assert failing(app, "read_file", {"path": "missing"})["role"] == name


@pytest.mark.rows("S1-30")
def test_a_server_bound_to_a_role_refuses_sessions_of_the_other_role(make_app, workspace):
    other = make_app(workspace).call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    bound = make_app(workspace, bound_role="ANTIGRAVITY")

    assert [bound.call("begin_session", each).output["role"] for each in ({"role": "planner"}, {})] == ["planner"] * 2
    for role in ("executor", "WINDSURF"):
        assert failing(bound, "begin_session", {"role": role})["error_code"] == "ROLE_MISMATCH"
    assert failing(bound, "read_file", {"path": "x", "session_id": other})["error_code"] == "ROLE_MISMATCH"


@pytest.mark.rows("S1-23")
@pytest.mark.parametrize("root", ["/", "below", "relative"])
def test_a_session_is_opened_only_on_a_configured_root(app, workspace, root):
    (workspace / "below").mkdir()
    requested = {"/": "/", "below": str(workspace / "below"), "relative": "."}[root]

    assert failing(app, "begin_session", {"role": "WINDSURF", "workspace_root": requested})["error_code"] == (
        "SESSION_INITIALIZATION_FAILED"
    )


@pytest.mark.rows("S1-89")
def test_a_session_that_cannot_begin_has_an_invariant_id_for_each_cure(make_app, workspace, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    several = make_app(workspace, bare)
    requested = {
        "ROOT_NOT_NAMED": {},
        "ROOT_NOT_SERVED": {"workspace_root": "/"},
        "NOT_READY": {"workspace_root": str(bare)},
    }
    envelopes = {
        invariant: failing(several, "begin_session", {"role": "WINDSURF", **arguments})
        for invariant, arguments in requested.items()
    }

    assert {envelope["error_code"] for envelope in envelopes.values()} == {"SESSION_INITIALIZATION_FAILED"}
    assert {invariant: envelope["invariant_id"] for invariant, envelope in envelopes.items()} == {
        invariant: invariant for invariant in requested
    }


@pytest.mark.rows("S1-89")
def test_invalid_paths_say_why_in_their_cause(begun, workspace):
    (workspace / "loop").symlink_to("loop")
    paths = ["a\0b", "a/" * 2500, "x" * 256, "loop"]
    causes = [failing(begun, "read_file", {"path": path})["cause"] for path in paths]

    assert [cause.get("why") for cause in causes] == ["character", "path_length", "name_length", None]
    assert causes[-1]["name"] == "OSError"


@pytest.mark.rows("S1-15", "S1-58")
def test_the_cause_of_a_file_error_has_the_systems_error_beside_the_path(begun):
    assert failing(begun, "read_file", {"path": "missing.txt"})["cause"] == {
        "message": "No such file or directory",
        "code": 2,
        "name": "FileNotFoundError",
        "path": "missing.txt",
    }


@pytest.mark.rows("S1-59")
def test_timestamps_have_one_format_for_a_given_instant(monkeypatch):
    written = {}
    for instant in (0, 1_769_850_000_000_000_000, 1_769_850_000_123_999_999):
        monkeypatch.setattr(time, "time_ns", lambda instant=instant: instant)
        written[instant] = {current_timestamp() for _ in range(3)}

    assert list(written.values()) == [
        {"1970-01-01T00:00:00.000Z"},
        {"2026-01-31T09:00:00.000Z"},
        {"2026-01-31T09:00:00.123Z"},
    ]


def test_a_workspace_that_is_not_initialized_is_not_written_to(make_app, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    app = make_app(bare)

    assert failing(app, "begin_session", {"role": "WINDSURF"})["error_code"] == "SESSION_INITIALIZATION_FAILED"
    assert failing(app, "read_file", {"path": "x"})["error_code"] == "SESSION_NOT_INITIALIZED"
    assert app.call("server_info", {}).output["resolver"] in ("openat2", "walk")
    assert list(bare.iterdir()) == []


@pytest.mark.rows("S1-77")
def test_failing_calls_in_a_workspace_without_a_log_directory_are_recorded(make_app, workspace):
    (workspace / "audit").rmdir()
    app = make_app(workspace)
    calls = [("read_file", {"path": "x"}), ("no_such_tool", {}), ("write_file", {}), ("session_status", {})]
    codes = [failing(app, tool, arguments)["error_code"] for tool, arguments in calls]

    assert [(record["tool_name"], record["error_code"]) for record in records(workspace)] == list(
        zip([tool for tool, _ in calls], codes, strict=True)
    )
    assert (workspace / "audit/.gitignore").read_bytes() == workspace_template.GITIGNORE_CONTENT


@pytest.mark.rows("S1-77")
def test_calls_are_recorded_and_the_log_is_damaged_where_its_directory_was_deleted(make_app, workspace):
    first = make_app(workspace)
    first.call("begin_session", {"role": "WINDSURF"})
    first.close()
    shutil.rmtree(workspace / "audit")
    second = make_app(workspace)

    assert failing(second, "read_file", {"path": "x"})["error_code"] == "SESSION_NOT_INITIALIZED"
    assert [record["tool_name"] for record in records(workspace)] == ["read_file"]
    assert {each.damage() for each in second.services.workspaces.values()} == {"missing"}


@pytest.mark.rows("S1-77")
def test_a_call_without_a_session_is_recorded_in_the_first_workspace_with_a_log(make_app, workspace, tmp_path):
    bare = tmp_path / "bare"
    bare.mkdir()
    app = make_app(bare, workspace)
    failing(app, "read_file", {"path": "x"})
    failing(app, "begin_session", {"role": "WINDSURF", "workspace_root": str(bare)})

    assert [record["tool_name"] for record in records(workspace)] == ["read_file", "begin_session"]
    assert list(bare.iterdir()) == []


def test_a_call_that_cannot_be_recorded_for_want_of_a_directory_fails(make_app, small_disk):
    root = small_disk / "project"
    (root / "plans").mkdir(parents=True)
    app = make_app(root)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    for tool, arguments in (("server_info", {}), ("begin_session", {"role": "WINDSURF"}), ("read_file", {"path": "x"})):
        assert failing(app, tool, arguments)["error_code"] == "AUDIT_LOG_FAILED"


def test_sessions_survive_a_restart_and_are_shared(make_app, workspace):
    first = make_app(workspace)
    session = first.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    second = make_app(workspace)
    (workspace / "a").write_text("x")

    assert second.call("read_file", {"path": "a", "session_id": session}).output["content"] == "x"
    second.call("end_session", {"session_id": session})
    assert failing(first, "read_file", {"path": "a", "session_id": session})["error_code"] == "SESSION_NOT_INITIALIZED"


def test_a_session_is_implied_only_if_there_is_one_and_the_connection_was_initialized(app, workspace):
    (workspace / "a").write_text("x")
    app.call("begin_session", {"role": "WINDSURF"})
    unopened = app.answer(app.stamp(CallRequest("read_file", {"path": "a"}, conversational=False)))
    implied = app.call("read_file", {"path": "a"})
    app.call("begin_session", {"role": "WINDSURF"})

    assert unopened.envelope["error_code"] == "SESSION_NOT_INITIALIZED"
    assert implied.output["content"] == "x"
    assert failing(app, "read_file", {"path": "a"})["error_code"] == "SESSION_NOT_INITIALIZED"


def test_with_several_workspaces_a_session_names_its_own(make_app, tmp_path):
    one, two = make_ready(tmp_path / "one"), make_ready(tmp_path / "two")
    (two / "a").write_text("two")
    app = make_app(one, two)

    assert failing(app, "begin_session", {"role": "WINDSURF"})["error_code"] == "SESSION_INITIALIZATION_FAILED"
    session = app.call("begin_session", {"role": "WINDSURF", "workspace_root": str(two)}).output["session_id"]
    assert app.call("read_file", {"path": "a", "session_id": session}).output["content"] == "two"
    assert records(two)[-1]["tool_name"] == "read_file"
    assert records(one)[-1]["error_code"] == "SESSION_INITIALIZATION_FAILED"


def test_an_absolute_path_below_the_root_is_accepted(begun, workspace):
    (workspace / "a").write_text("x")

    assert begun.call("read_file", {"path": f"{os.path.realpath(workspace)}/a"}).output["path"] == "a"
    assert failing(begun, "read_file", {"path": f"{workspace}/../project/a"})["error_code"] == "PATH_TRAVERSAL_BLOCKED"


@pytest.mark.rows("S1-52")
@pytest.mark.parametrize("obstacle", ["a directory", "a socket"])
def test_no_answer_is_given_without_a_record(begun, workspace, obstacle):
    log = workspace / "audit" / "audit-log.jsonl"
    (workspace / "a").write_text("secret")
    log.unlink()
    if obstacle == "a directory":
        log.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(log))
    outcome = begun.call("read_file", {"path": "a"})

    assert outcome.output is None
    assert outcome.envelope["error_code"] == "AUDIT_LOG_FAILED"
    assert outcome.receipt is None


def test_a_session_that_cannot_be_recorded_is_not_opened(app, workspace):
    (workspace / "audit" / "audit-log.jsonl").mkdir()
    envelope = failing(app, "begin_session", {"role": "WINDSURF"})

    assert envelope["error_code"] == "AUDIT_LOG_FAILED"
    assert (envelope["role"], envelope["session_id"], envelope["workspace_root"]) == (None, None, None)


@pytest.mark.parametrize("thrown", [SystemExit(1), KeyboardInterrupt(), MemoryError(), GeneratorExit()], ids=repr)
def test_an_exception_in_a_rule_becomes_one_envelope_and_one_record(begun, workspace, monkeypatch, thrown):
    def fail(*_):
        raise thrown

    monkeypatch.setattr("kaiza.boundary.judge", fail)
    envelope = failing(begun, "read_file", {"path": "a"})

    assert (envelope["error_code"], envelope["tool_name"]) == ("INTERNAL_ERROR", "read_file")
    assert {key: records(workspace)[-1][key] for key in error_envelope.KEYS} == envelope


@pytest.mark.rows("S1-53")
def test_a_log_locked_for_too_long_is_an_audit_lock_failure(make_app, workspace):
    import fcntl

    app = make_app(workspace, caps=Caps(audit_lock_ms=200))
    app.call("begin_session", {"role": "WINDSURF"})
    with (workspace / "audit" / "audit-log.jsonl").open("rb+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        envelope = failing(app, "session_status", {})

    assert envelope["error_code"] == "AUDIT_LOCK_FAILED"
    assert app.call("session_status", {}).output is not None


@pytest.mark.rows("S2-25")
def test_a_call_past_its_deadline_is_recorded_and_answered_once(make_app, workspace, quick_caps):
    app = make_app(workspace, caps=quick_caps)
    app.call("begin_session", {"role": "WINDSURF"})
    call = app.stamp(CallRequest("debug_fault", {"kind": "hang"}))
    late = []
    worker = threading.Thread(target=lambda: late.append(app.answer(call)))
    worker.start()
    expired = app.expire(call)
    worker.join()

    assert expired.envelope["error_code"] == "CAP_EXCEEDED"
    assert expired.envelope["cause"] == {"cap": "timeout", "timeout_ms": 200}
    assert (expired.code.rpc, expired.code.error_type) == (-32003, "timeout")
    assert late == [None]
    assert [record["tool_name"] for record in records(workspace)] == ["begin_session", "debug_fault"]


@pytest.mark.rows("S4-52")
def test_a_call_has_thirty_seconds_by_default(begun):
    before = time.monotonic()
    deadline = begun.stamp(CallRequest("server_info", {})).deadline

    assert before + 30 <= deadline <= time.monotonic() + 30


def test_content_and_queries_are_recorded_by_hash_and_length_only(begun, workspace):
    begun.call("search_text", {"query": "my-password"})

    line = (workspace / "audit" / "audit-log.jsonl").read_text().splitlines()[-1]
    assert "my-password" not in line
    assert json.loads(line)["arguments"]["query"]["length"] == len("my-password")
