"""`kaiza undo`: a person restores the files that agents changed."""

import hashlib
import json
import os
import stat
from pathlib import Path

import pytest
from scenes import put_plan

from kaiza.app import App
from kaiza.domain.audit import undo_batches
from kaiza.queries import undoable_changes
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
    files_below = {}
    for directory, names, files in os.walk(root):
        names[:] = [name for name in names if not (directory == str(root) and name in ("audit", ".kaiza"))]
        files_below[directory] = None
        for name in files:
            path = Path(directory, name)
            files_below[str(path.relative_to(root))] = (path.read_bytes(), stat.S_IMODE(path.stat().st_mode))
    return files_below


@pytest.fixture
def agent(workspace):
    """Begins a session; the function it returns makes one change and returns its request id."""
    put_plan(workspace / "plans" / "PLAN-1.md", PLAN)
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
            prompt = {"plan_hash": sha(PLAN.encode()), "session_id": session, **arguments}
            outcome = app.call(tool, prompt)
            assert outcome.envelope is None, outcome.envelope
            return outcome.output.get("request_id")

        change.session = session
        return change

    yield begin
    for app in begun:
        app.close()


def work(change):
    """Create, modify, move and delete files in one session."""
    change("write_file", path="src/deep/new.py", content="n\n")
    change("write_file", path="src/a.py", content="ONE\n", expected_hash=sha(b"one\ntwo\n"))
    change("move_file", source="src/run.sh", destination="src/bin/go.sh", expected_hash=sha(b"#!/bin/sh\n"))
    change("write_file", path="src/gone.py", content="g\n")
    change("delete_file", path="src/gone.py", expected_hash=sha(b"g\n"))


def records(log):
    return [json.loads(line) for line in log.read_bytes().splitlines()]


def test_undoing_a_session_restores_content_and_mode_of_every_file(kaiza, agent, workspace, log):
    before = manifest(workspace)
    change = agent()
    work(change)
    result = kaiza("undo", "--session", change.session[:8], "--yes", "--as", "Ann")
    intent, person = records(log)[-2:]

    assert result.status == 0
    assert manifest(workspace) == before
    assert "-ONE" in result.out
    assert "+one" in result.out
    assert (intent["kind"], intent["outcome"]) == ("intent", None)
    assert (person["kind"], person["outcome"], person["detail"]["person"]) == ("person", "ok", "Ann")
    assert person["detail"]["action"] == "undo"
    assert person["changes"] == intent["changes"] != []
    assert kaiza("audit", "verify").status == 0
    assert json.loads(kaiza("status", "--json").out)["intents"] == []


def test_a_dry_run_changes_nothing_and_records_nothing(kaiza, agent, workspace, log):
    change = agent()
    work(change)
    before = manifest(workspace), log.read_bytes()
    result = json.loads(kaiza("undo", "--session", change.session, "--dry-run", "--json").out)

    assert (manifest(workspace), log.read_bytes()) == before
    assert {(one["operation"], one["path"]) for one in result["changes"]} == {
        ("delete", "src/deep/new.py"),
        ("modify", "src/a.py"),
        ("move", "src/run.sh"),
    }
    assert "rename from src/bin/go.sh" in "".join(one["diff"] for one in result["changes"])
    assert (result["dry_run"], result["request_ids"], result["kept"]) == (True, [], [])


@pytest.mark.parametrize(("answer", "status"), [("y", 0), ("undo", 1)])
def test_undo_asks_after_showing_the_diffs(agent, workspace, screen, answer, status):
    change = agent()
    change("write_file", path="src/new.py", content="n\n")
    prompt = screen("undo", "--session", change.session)
    shown = prompt.answer(answer)

    assert prompt.end() == status
    assert "-n" in shown
    assert (workspace / "src/new.py").exists() is bool(status)


def test_without_a_terminal_nothing_is_restored(agent, workspace, process):
    change = agent()
    change("write_file", path="src/new.py", content="n\n")
    result = process("undo", "--session", change.session, input=b"y\n", cwd=workspace, start_new_session=True)

    assert result.returncode == 3
    assert (workspace / "src/new.py").exists()


def test_a_file_modified_since_is_left_alone_listed_and_a_failure(kaiza, agent, workspace):
    change = agent()
    work(change)
    (workspace / "src/a.py").write_text("a person's\n")
    result = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)

    assert kaiza("undo", "--session", change.session, "--dry-run").status == 1
    assert result["kept"] == [{"path": "src/a.py", "reason": "changed_since"}]
    assert (workspace / "src/a.py").read_text() == "a person's\n"
    assert not (workspace / "src/deep").exists()


def test_single_calls_are_undone_and_an_undo_is_undone_by_its_request_id(kaiza, agent, workspace):
    change = agent()
    first = change("write_file", path="src/1", content="1")
    change("write_file", path="src/2", content="2")
    undone = json.loads(kaiza("undo", "--request", first, "--yes", "--json").out)["request_ids"]
    after_undo = (workspace / "src/1").exists(), (workspace / "src/2").exists()
    again = kaiza("undo", "--request", *undone, "--yes")

    assert after_undo == (False, True)
    assert again.status == 0
    assert (workspace / "src/1").read_text() == "1"


def test_the_last_change_is_undone_one_step_at_a_time(kaiza, agent, workspace):
    change = agent()
    made = [change("write_file", path=f"src/{number}", content="x") for number in range(3)]
    change("undo_changes", request_ids=[made[2]])
    shown = kaiza("undo", "--last", "--dry-run")
    first = json.loads(kaiza("undo", "--last", "--yes", "--json").out)
    second = json.loads(kaiza("undo", "--last", "--yes", "--json").out)
    third = kaiza("undo", "--last", "--yes")

    assert "The last change: record" in shown.out
    assert "src/1" in shown.out.splitlines()[0]
    assert ([first["undone"], second["undone"]], third.status) == ([[made[1]], [made[0]]], 0)
    assert "Nothing to restore" in third.out
    assert not any((workspace / "src" / str(number)).exists() for number in range(3))


def test_without_a_choice_undo_lists_what_can_be_undone_and_changes_nothing(kaiza, agent, workspace, log):
    empty = kaiza("undo")
    first, second = agent(), agent()
    made = first("write_file", path="src/1", content="1")
    gone = first("write_file", path="src/2", content="2")
    other = second("write_file", path="src/3", content="3")
    kaiza("undo", "--request", gone, "--yes")
    before = manifest(workspace), log.read_bytes()
    listed, shown = json.loads(kaiza("undo", "--json").out), kaiza("undo")

    assert (empty.status, shown.status) == (0, 0)
    assert "Nothing to undo" in empty.out
    assert [one["request_id"] for one in listed["changes"]] == [other, made]
    assert [(one["id"], one["changes"]) for one in listed["sessions"]] == [(second.session, 1), (first.session, 1)]
    assert [(one["id"], one["changes"]) for one in listed["plans"]] == [("PLAN-1", 2)]
    for words in (f"--request {made}", f"--session {first.session}", "--plan PLAN-1"):
        assert f"    kaiza undo {words}\n" in shown.out
    assert gone not in shown.out
    assert (manifest(workspace), log.read_bytes()) == before


def test_calls_and_plans_are_named_by_their_first_characters(kaiza, agent, workspace):
    change = agent()
    first = change("write_file", path="src/1", content="1")
    change("write_file", path="src/2", content="2")
    (workspace / "plans/PLAN-1.md").unlink()
    by_call = json.loads(kaiza("undo", "--request", first[:13], "--dry-run", "--json").out)
    by_plan = json.loads(kaiza("undo", "--plan", "PLAN", "--dry-run", "--json").out)

    assert by_call["undone"] == [first]
    assert len(by_plan["undone"]) == 2
    assert kaiza("undo", "--request", "", "--dry-run").status == 1
    assert kaiza("undo", "--plan", "PLAN-2", "--dry-run").status == 0


def test_a_log_from_elsewhere_cannot_control_the_terminal_through_the_listing(kaiza, write_log, body):
    change = {"path": "a\x1b[2J", "source": None, "operation": "create", "before_hash": None, "after_hash": "1" * 64}
    change |= {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
    odd = {"session_id": "s\x1b[2J", "plan_id": "P\x1b[2J", "request_id": "r\x1b[2J", "timestamp": "t\x1b[2J"}
    write_log({**body("write_file", changes=[change]), **odd})
    shown = kaiza("undo")

    assert shown.status == 0
    assert "\x1b" not in shown.out
    assert shown.out.count("\\x1b[2J") >= 5


def test_undoing_a_plan_covers_all_its_sessions_and_runs_once(kaiza, agent, workspace):
    before = manifest(workspace)
    first, second = agent(), agent()
    first("write_file", path="src/1", content="1")
    second("write_file", path="src/1", content="2", expected_hash=sha(b"1"))
    result = kaiza("undo", "--plan", "PLAN-1", "--yes")
    (workspace / "src/1").write_text("2")
    again = json.loads(kaiza("undo", "--plan", "PLAN-1", "--yes", "--json").out)

    assert result.status == 0
    assert again["changes"] == []
    assert (workspace / "src/1").read_text() == "2"
    (workspace / "src/1").unlink()
    assert manifest(workspace) == before


def test_changes_that_an_agent_undid_are_not_undone_again(kaiza, agent, workspace):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    change("undo_changes", request_ids=[made])
    (workspace / "src/1").write_text("1")
    result = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)

    assert result["changes"] == []
    assert (workspace / "src/1").read_text() == "1"


def test_an_agent_cannot_undo_a_persons_undo(kaiza, agent, workspace):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    (undone,) = json.loads(kaiza("undo", "--request", made, "--yes", "--json").out)["request_ids"]

    with pytest.raises(AssertionError, match="INVALID_INPUT_VALUE"):
        change("undo_changes", request_ids=[undone])
    assert not (workspace / "src/1").exists()


def test_undo_works_in_a_frozen_workspace(kaiza, agent, workspace):
    change = agent()
    change("write_file", path="src/1", content="1")
    kaiza("freeze", "look")

    assert kaiza("undo", "--session", change.session, "--yes").status == 0
    assert not (workspace / "src/1").exists()


def test_a_forged_record_cannot_make_undo_touch_the_control_plane(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    made = change("write_file", path="src/1", content="1")
    writer = audit_log.AuditLog(str(workspace), follow=lambda _record: None)
    body = {name: value for name, value in records(log)[-1].items() if name not in ("seq", "prev_hash", "entry_hash")}
    bad = json.loads(json.dumps(body).replace("src/1", "plans/PLAN-1.md").replace(made, "forged"))
    writer.append(lambda: bad, durable=True)
    writer.close()
    result = json.loads(kaiza("undo", "--request", "forged", "--yes", "--json").out)

    assert result["kept"] == [{"path": "plans/PLAN-1.md", "reason": "protected"}]
    assert (workspace / "plans/PLAN-1.md").read_text() == PLAN


def test_an_undo_too_large_for_one_record_is_split_into_batches(kaiza, agent, workspace, log, monkeypatch):
    monkeypatch.setattr(undo_batches, "MAX_BATCH_BYTES", 1000)
    change = agent()
    before = manifest(workspace)
    for number in range(12):
        change("write_file", path=f"src/{number}", content=str(number))
    result = json.loads(kaiza("undo", "--session", change.session, "--yes", "--json").out)
    parts = [one for one in records(log) if one["kind"] == "person"]

    assert len(result["request_ids"]) == len(parts) > 2
    assert [path for part in parts for path in (one["path"] for one in part["changes"])] == [
        f"src/{number}" for number in reversed(range(12))
    ]
    assert manifest(workspace) == before
    assert kaiza("undo", "--request", *result["request_ids"], "--yes").status == 0
    assert (workspace / "src/11").read_text() == "11"


def test_a_failed_undo_leaves_every_file_unchanged_and_is_recorded(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    work(change)
    before = manifest(workspace)

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("kaiza.store.changes.operation.ActiveOperation.perform", refuse)
    result = kaiza("undo", "--session", change.session, "--yes")
    last = records(log)[-1]

    assert result.status == 1
    assert manifest(workspace) == before
    assert (last["kind"], last["outcome"], last["error_code"]) == ("person", "error", "FILE_WRITE_FAILED")
    assert json.loads(kaiza("status", "--json").out)["intents"] == []


def test_an_undo_that_cannot_be_recorded_is_rolled_back(kaiza, agent, workspace, log, monkeypatch):
    change = agent()
    work(change)
    before, really = manifest(workspace), TransactionManager.apply

    def apply_then_make_the_log_read_only(*arguments):
        really(*arguments)
        assert manifest(workspace) != before
        log.chmod(0o444)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(TransactionManager, "apply", apply_then_make_the_log_read_only)
        result = kaiza("undo", "--session", change.session, "--yes")
    log.chmod(0o600)

    assert result.status == 1
    assert "AUDIT_LOG_FAILED" in result.err
    assert manifest(workspace) == before
    assert records(log)[-1]["kind"] == "intent"
    assert kaiza("undo", "--session", change.session, "--yes").status == 0
    assert manifest(workspace) != before


@pytest.mark.parametrize("words", [["--session", "0000"], ["--request", "nothing"]])
def test_an_unknown_session_or_request_is_a_failure(kaiza, workspace, words):
    assert kaiza("undo", *words, "--yes").status == 1


@pytest.mark.parametrize(
    "words", [["--yes"], ["--session", "a", "--plan", "PLAN-1"], ["--plan", "x"], ["--last", "--plan", "PLAN-1"]]
)
def test_at_most_one_selection_is_possible(kaiza, workspace, words):
    assert kaiza("undo", *words).status == 2


def test_nothing_to_undo_is_a_success(kaiza, agent, workspace):
    change = agent()

    assert kaiza("undo", "--plan", "PLAN-1").status == 0
    assert kaiza("undo", "--session", change.session).status == 0


def test_nothing_is_undone_from_a_damaged_log(kaiza, agent, workspace, log):
    change = agent()
    change("write_file", path="src/1", content="1")
    log.write_bytes(log.read_bytes().replace(b"src/1", b"src/2", 1))

    assert kaiza("undo", "--plan", "PLAN-1", "--yes").status == 1
    assert (workspace / "src/1").exists()


def test_diffs_are_shown_up_to_a_number_of_bytes_in_all(kaiza, agent, monkeypatch):
    change = agent()
    for name in "xyz":
        change("write_file", path=f"src/{name}", content=name * 5000 + "\n")
    monkeypatch.setattr(undoable_changes, "MAX_DIFF_BYTES", 8000)
    result = json.loads(kaiza("undo", "--session", change.session, "--dry-run", "--json").out)

    assert [bool(one["diff"]) for one in result["changes"]] == [True, True, False]
