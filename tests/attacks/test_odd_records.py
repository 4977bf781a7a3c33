"""Records of odd shape, with a valid chain, as a clone may bring them: every command and tool still answers."""

import os
import sys

import pytest
from agents import hash_of, plan
from attacks.test_hostile_log import CHANGE, MEMBERS, bodies
from logs import write_bodies
from scenes import bind, make_ready

from kaiza.app import App
from kaiza.cli import dispatch
from kaiza.domain.audit import record

COMMANDS = [
    ["audit", "tail", "-n", "5000"],
    ["audit", "tail", "--json"],
    ["audit", "show"],
    ["audit", "show", "--json"],
    ["audit", "show", "7"],
    ["audit", "show", "--session", "s", "--tool", "x", "--role", "WINDSURF", "--plan", "x", "--outcome", "ok"],
    ["audit", "show", "--path", "src/**", "--code", "x", "--kind", "call", "--since", "1h"],
    ["audit", "verify"],
    ["audit", "verify", "--json"],
    ["audit", "export"],
    ["audit", "export", "--session", "s"],
    ["undo", "--dry-run", "--session", "s"],
    ["undo", "--dry-run", "--request", "r"],
    ["undo", "--dry-run", "--plan", "PLAN-1"],
    ["undo", "--dry-run", "--json", "--plan", "PLAN-1"],
    ["status"],
    ["status", "--json"],
    ["session", "list"],
    ["session", "list", "--json"],
    ["session", "show", "s"],
    ["session", "show", "s", "--json"],
    ["plan", "list"],
    ["plan", "list", "--json"],
    ["plan", "show", "PLAN-1"],
    ["plan", "show", "PLAN-1", "--json"],
    ["doctor"],
    ["doctor", "--json"],
]
ODD_CHANGES = [
    *({"path": path} for path in ["", ".", "..", "../x", "/etc/passwd", "a\0b", "a//b", "x" * 5000, "\x1b[2J"]),
    *({"path": path} for path in ["plans/PLAN-1.md", ".kaiza/id", ".env", "a\nb", "~", "audit"]),
    *({"source": source, "operation": "move"} for source in ["", "../x", "a", "/etc/passwd", ".git/config"]),
    *({"after_hash": digest, "before_hash": digest} for digest in ["", "zz", "../../x", "a" * 5000, "\0", "0" * 64]),
    *({"operation": operation} for operation in ["", "modify", "delete", "move", "chmod"]),
    *({"mode": mode} for mode in [-1, 0, 0o7777, 1 << 40]),
    *({"size": size, "lines_added": size} for size in [0, 1 << 40]),
]
LAST = [{}, {"timestamp": None}, {"timestamp": 7}, {"timestamp": "x"}, {"timestamp": "9999-12-31T23:59:59+14:00"}]
LAST += [{"timestamp": "0001-01-01T00:00:00"}, {"kind": []}, {"detail": []}, {"changes": 7}]


def changed_bodies():
    """Records of changes whose members have the right types and odd values, all of one session and plan."""
    yield record.new_body("call", **MEMBERS)
    for number, odd in enumerate(ODD_CHANGES):
        for kind in ("intent", "call", "person", "recovery"):
            ids = {"request_id": f"{kind}-{number}", "tool_name": "write_file", "detail": {"result": "applied"}}
            whole = record.new_body(kind, **{**MEMBERS, **ids})
            yield {**whole, "changes": [{**CHANGE, **odd}]}


LOGS = {"odd members": bodies, "odd changes": changed_bodies}


@pytest.fixture
def clone(tmp_path, monkeypatch):
    root = bind(make_ready(tmp_path / "clone"))
    plan(root)
    monkeypatch.chdir(root)
    monkeypatch.setenv("HOME", str(tmp_path))
    return root


def status_of(words):
    """Exit status of a command. An exception that it raises fails the test: a person would see a traceback."""
    try:
        return dispatch.main(words)
    except SystemExit as ended:
        return ended.code
    finally:
        sys.stdout.flush()


@pytest.mark.usefixtures("capfdbinary")
@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_every_command_answers_on_a_log_of_odd_records(clone, log, words):
    write_bodies(clone, LOGS[log]())

    assert status_of(words) in {0, 1, 3}


@pytest.mark.usefixtures("capfdbinary")
@pytest.mark.parametrize("last", LAST, ids=str)
def test_commands_answer_when_the_last_record_is_odd(clone, last):
    write_bodies(clone, [record.new_body("call", **MEMBERS), {**record.new_body("call", **MEMBERS), **last}])
    commands = [["doctor"], ["status"], ["audit", "tail"], ["session", "list"], ["session", "show", "s"]]

    assert {status_of(words) for words in commands} <= {0, 1, 3}


@pytest.mark.parametrize("log", LOGS)
def test_every_tool_answers_on_a_log_of_odd_records(clone, log):
    write_bodies(clone, LOGS[log]())
    approved = plan(clone)
    app = App([os.path.realpath(clone)])
    begun = app.call("begin_session", {"role": "WINDSURF"})
    calls = [
        ("session_status", {}),
        ("read_audit_log", {}),
        ("read_audit_log", {"path": "src/a", "outcome": "ok", "tool_name": "begin_session", "since_seq": 7}),
        ("read_audit_log", {"since_seq": 400}),
        ("verify_audit_log", {}),
        ("list_plans", {}),
        ("read_plan", {"plan_id": "PLAN-1"}),
        ("undo_changes", {"all_of_session": True, "plan_hash": approved}),
        ("undo_changes", {"request_ids": ["call-1"], "plan_hash": approved}),
    ]
    assert begun.envelope is None
    session = {"session_id": begun.output["session_id"]}
    codes = {(app.call(tool, {**arguments, **session}).envelope or {}).get("error_code") for tool, arguments in calls}
    app.close()

    assert "SESSION_NOT_INITIALIZED" not in codes
    assert codes.isdisjoint({"INTERNAL_ERROR", "UNKNOWN_TOOL_FAILURE", "AUDIT_LOG_FAILED", "INVARIANT_VIOLATION"})


@pytest.mark.parametrize("member", [*record.FIELDS[1:-2], "later"])
def test_an_agent_reads_the_log_around_a_record_of_another_form(clone, member):
    sound = record.new_body("call", **MEMBERS)
    odd = [5, 1.5, True, "", [], {}, [1], [{"path": 5}], [{**CHANGE, "later": 1}]]
    write_bodies(clone, [sound, *({**sound, member: value} for value in odd), sound])
    app = App([os.path.realpath(clone)])
    session = {"session_id": app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]}
    whole, filtered = app.call("read_audit_log", session), app.call("read_audit_log", {"path": "x", **session})
    app.close()
    seqs = [each["seq"] for each in whole.output["items"]]

    assert {1, len(odd) + 2} < set(seqs)
    assert filtered.output
    assert all("later" not in each for each in whole.output["items"])
    assert bool(whole.diagnostics) == (not set(range(1, len(odd) + 3)) <= set(seqs))


@pytest.mark.usefixtures("capfdbinary")
def test_an_undo_restores_sound_changes_beside_odd_ones(clone):
    approved = hash_of(clone)
    write_bodies(clone, changed_bodies())
    app = App([os.path.realpath(clone)])
    app.call("begin_session", {"role": "WINDSURF"})
    written = app.call("write_file", {"path": "src/new", "content": "x", "plan_hash": approved})
    app.close()
    status = status_of(["undo", "--plan", "PLAN-1", "--yes"])

    assert written.envelope is None
    assert status == 1
    assert not (clone / "src/new").exists()
