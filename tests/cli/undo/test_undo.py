"""`kaiza undo`: a person puts back what agents changed."""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest

from kaiza.app import App
from kaiza.boundary import human_undo
from kaiza.store.audit import log as audit_log
from kaiza.store.changes.transaction import TransactionManager

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: APPROVED
author: A
created: "2026-11-18T09:00:00Z"
scope: {modify: ["src/**"], create: ["src/**"], delete: ["src/**"], move: [{from: "src/**", to: "src/**"}]}
---
# Why
"""


def sha(content):
    return hashlib.sha256(content).hexdigest()


def manifest(root):
    found = {}
    for here, names, files in os.walk(root):
        names[:] = [name for name in names if not (here == str(root) and name in ("audit", ".kaiza"))]
        found[here] = None
        for name in files:
            path = Path(here, name)
            found[str(path.relative_to(root))] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return found


@pytest.fixture
def agent(workspace):
    """Makes calls in a session of its own; each change comes back as its request id."""
    (workspace / "plans" / "PLAN-1.md").write_text(PLAN)
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").write_bytes(b"one\ntwo\n")
    (workspace / "src" / "run.sh").write_bytes(b"#!/bin/sh\n")
    (workspace / "src" / "run.sh").chmod(0o755)
    begun = []

    def begin():
        app = App([str(workspace)])
        begun.append(app)
        session = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]

        def change(tool, **arguments):
            asked = {"plan_hash": sha(PLAN.encode()), "session_id": session, **arguments}
            outcome = app.call(tool, asked)
            assert outcome.envelope is None, outcome.envelope
            return outcome.output.get("request_id")

        change.session = session
        return change

    yield begin
    for app in begun:
        app.close()


def work(change):
    """Everything that can happen to a file, in one session."""
    change("write_file", path="src/deep/new.py", content="n\n")
    change("write_file", path="src/a.py", content="ONE\n", expected_hash=sha(b"one\ntwo\n"))
    change("move_file", source="src/run.sh", destination="src/bin/go.sh", expected_hash=sha(b"#!/bin/sh\n"))
    change("write_file", path="src/gone.py", content="g\n")
    change("delete_file", path="src/gone.py", expected_hash=sha(b"g\n"))


def records(log):
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def test_a_session_is_put_back_byte_for_byte_and_mode_for_mode(kaiza, agent, workspace, log):
    before = manifest(workspace)
    change = agent()
    work(change)
    told = kaiza("undo", "--session", change.session[:8], "--yes", "--as", "Ann")
    intent, person = records(log)[-2:]

    assert told.status == 0
    assert manifest(workspace) == before
    assert "-ONE" in told.out
    assert "+one" in told.out
    assert (intent["kind"], intent["outcome"]) == ("intent", None)
    assert (person["kind"], person["outcome"], person["detail"]["person"]) == ("person", "ok", "Ann")
    assert person["detail"]["action"] == "undo"
    assert person["changes"] == intent["changes"] != []
    assert kaiza("audit", "verify").status == 0
    assert json.loads(kaiza("status", "--json").out)["intents"] == []


def test_looking_only_changes_nothing_and_writes_nothing(kaiza, agent, workspace, log):
    change = agent()
    work(change)
    before = manifest(workspace), log.read_bytes()
    told = json.loads(kaiza("undo", "--session", change.session, "--dry-run", "--json").out)

    assert (manifest(workspace), log.read_bytes()) == before
    assert {(one["operation"], one["path"]) for one in told["changes"]} == {
        ("delete", "src/deep/new.py"),
        ("modify", "src/a.py"),
        ("move", "src/run.sh"),
    }
    assert "rename from src/bin/go.sh" in "".join(one["diff"] for one in told["changes"])
    assert (told["dry_run"], told["request_ids"], told["kept"]) == (True, [], [])


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("yes", 0), ("n", 1), ("", 1), ("\x04", 1)])
def test_a_person_is_asked_after_the_diffs_and_no_is_the_default(agent, workspace, screen, answer, status):
    change = agent()
    change("write_file", path="src/new.py", content="n\n")
    asked = screen("undo", "--session", change.session)
    shown = asked.until("[y/N]")
    asked.type(answer if answer == "\x04" else f"{answer}\n")

    assert asked.end() == status
    assert "-n" in shown
    assert (workspace / "src/new.py").exists() is bool(status)


def test_without_a_terminal_nobody_is_asked_and_nothing_is_put_back(agent, workspace, process):
    change = agent()
    change("write_file", path="src/new.py", content="n\n")
    told = process("undo", "--session", change.session, input=b"y\n", cwd=workspace, start_new_session=True)

    assert told.returncode == 3
    assert (workspace / "src/new.py").exists()


def test_what_others_changed_since_is_kept_listed_and_a_no(kaiza, agent, workspace):
    change = agent()
    work(change)
    (workspace / "src/a.py").write_text("a person's\n")
    told = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)

    assert kaiza("undo", "--session", change.session, "--dry-run").status == 1
    assert told["kept"] == [{"path": "src/a.py", "reason": "changed_since"}]
    assert (workspace / "src/a.py").read_text() == "a person's\n"
    assert not (workspace / "src/deep").exists()


def test_single_calls_are_put_back_and_an_undo_is_undone_by_its_name(kaiza, agent, workspace):
    change = agent()
    first = change("write_file", path="src/1", content="1")
    change("write_file", path="src/2", content="2")
    undone = json.loads(kaiza("undo", "--request", first, "--yes", "--json").out)["request_ids"]
    between = (workspace / "src/1").exists(), (workspace / "src/2").exists()
    again = kaiza("undo", "--request", *undone, "--yes")

    assert between == (False, True)
    assert again.status == 0
    assert (workspace / "src/1").read_text() == "1"


def test_a_plan_is_put_back_over_all_its_sessions_once(kaiza, agent, workspace):
    before = manifest(workspace)
    one, other = agent(), agent()
    one("write_file", path="src/1", content="1")
    other("write_file", path="src/1", content="2", expected_hash=sha(b"1"))
    told = kaiza("undo", "--plan", "PLAN-1", "--yes")
    (workspace / "src/1").write_text("2")
    again = json.loads(kaiza("undo", "--plan", "PLAN-1", "--yes", "--json").out)

    assert told.status == 0
    assert again["changes"] == []
    assert (workspace / "src/1").read_text() == "2"
    (workspace / "src/1").unlink()
    assert manifest(workspace) == before


def test_an_agents_undo_is_known_to_a_persons(kaiza, agent, workspace):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    change("undo_changes", request_ids=[made])
    (workspace / "src/1").write_text("1")
    told = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)

    assert told["changes"] == []
    assert (workspace / "src/1").read_text() == "1"


def test_what_a_person_put_back_is_not_undone_by_an_agent(kaiza, agent, workspace):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    (undone,) = json.loads(kaiza("undo", "--request", made, "--yes", "--json").out)["request_ids"]

    with pytest.raises(AssertionError, match="INVALID_INPUT_VALUE"):
        change("undo_changes", request_ids=[undone])
    assert not (workspace / "src/1").exists()


def test_a_frozen_workspace_is_still_put_back_by_a_person(kaiza, agent, workspace):
    change = agent()
    change("write_file", path="src/1", content="1")
    kaiza("freeze", "look")

    assert kaiza("undo", "--session", change.session, "--yes").status == 0
    assert not (workspace / "src/1").exists()


def test_what_a_record_names_of_the_control_plane_is_kept(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    writer = audit_log.AuditLog(str(workspace), follow=lambda _record: None)
    body = {name: value for name, value in records(log)[-1].items() if name not in ("seq", "prev_hash", "entry_hash")}
    bad = json.loads(json.dumps(body).replace("src/1", "plans/PLAN-1.md").replace(made, "forged"))
    writer.append(lambda: bad, durable=True)
    writer.close()
    told = json.loads(kaiza("undo", "--request", "forged", "--yes", "--json").out)

    assert told["kept"] == [{"path": "plans/PLAN-1.md", "reason": "protected"}]
    assert (workspace / "plans/PLAN-1.md").read_text() == PLAN


def test_more_than_one_record_holds_goes_back_in_parts(kaiza, agent, workspace, log, monkeypatch):
    monkeypatch.setattr(human_undo, "MAX_BATCH_BYTES", 1000)
    change = agent()
    before = manifest(workspace)
    for number in range(12):
        change("write_file", path=f"src/{number}", content=str(number))
    told = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)
    parts = [one for one in records(log) if one["kind"] == "person"]

    assert len(told["request_ids"]) == len(parts) > 2
    assert [path for part in parts for path in (one["path"] for one in part["changes"])] == [
        f"src/{number}" for number in reversed(range(12))
    ]
    assert manifest(workspace) == before
    assert kaiza("undo", "--request", *told["request_ids"], "--yes").status == 0
    assert (workspace / "src/11").read_text() == "11"


def test_a_failure_leaves_every_file_as_it_was_and_is_recorded(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    work(change)
    before = manifest(workspace)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kaiza.store.changes.operation.ActiveOperation.perform", refuse)
    told = kaiza("undo", "--session", change.session, "--yes")
    last = records(log)[-1]

    assert told.status == 1
    assert manifest(workspace) == before
    assert (last["kind"], last["outcome"], last["error_code"]) == ("person", "error", "FILE_WRITE_FAILED")
    assert json.loads(kaiza("status", "--json").out)["intents"] == []


def test_an_undo_that_cannot_be_recorded_is_taken_back(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    work(change)
    before, really = manifest(workspace), TransactionManager.apply

    def and_then_the_record_is_read_only(*arguments):
        really(*arguments)
        assert manifest(workspace) != before
        log.chmod(0o444)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(TransactionManager, "apply", and_then_the_record_is_read_only)
        told = kaiza("undo", "--session", change.session, "--yes")
    log.chmod(0o600)

    assert told.status == 1
    assert "AUDIT_LOG_FAILED" in told.err
    assert manifest(workspace) == before
    assert records(log)[-1]["kind"] == "intent"
    assert kaiza("undo", "--session", change.session, "--yes").status == 0
    assert manifest(workspace) != before


@pytest.mark.parametrize("words", [["--session", "0000"], ["--request", "nothing"]])
def test_what_is_not_in_the_record_is_a_no(kaiza, workspace, words):
    assert kaiza("undo", *words, "--yes").status == 1


@pytest.mark.parametrize("words", [[], ["--session", "a", "--plan", "PLAN-1"], ["--plan", "x"], ["--dry-run"]])
def test_it_must_be_said_what_to_undo(kaiza, workspace, words):
    assert kaiza("undo", *words).status == 2


def test_nothing_to_put_back_is_a_yes(kaiza, agent, workspace):
    change = agent()

    assert kaiza("undo", "--plan", "PLAN-1").status == 0
    assert kaiza("undo", "--session", change.session).status == 0


def test_a_damaged_record_undoes_nothing(kaiza, agent, workspace, log):
    change = agent()
    change("write_file", path="src/1", content="1")
    log.write_bytes(log.read_bytes().replace(b"src/1", b"src/2", 1))

    assert kaiza("undo", "--plan", "PLAN-1", "--yes").status == 1
    assert (workspace / "src/1").exists()
