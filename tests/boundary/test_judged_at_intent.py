"""What a person decides while a change is being worked out counts: the intent is judged by what holds then."""

import json
import os
import sys
from datetime import UTC, datetime, timedelta

import pytest
from agents import Agent, edit, person, plan
from scenes import records

from kaiza.boundary import current_timestamp
from kaiza.domain import errors
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir


@pytest.fixture
def between(begun, workspace):
    """Has something done when the rules have agreed and the intent is about to be written."""
    (workspace / "src").mkdir()
    (ground,) = begun.services.workspaces.values()
    really = ground.log.append

    def have(done):
        def append(compose, *, durable):
            if durable:  # the record of the approved bytes comes before it
                ground.log.append = really
                done()
            return really(compose, durable=durable)

        ground.log.append = append

    return have


def write(app, plan_hash, path="src/a"):
    return app.call("write_file", {"path": path, "content": "x\n", "plan_hash": plan_hash}).envelope


def intents(root):
    return [one for one in records(root) if one["kind"] == "intent"]


def soon(seconds=2):
    """A time that is not yet, and soon is."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def until(moment):
    while current_timestamp() < moment:
        os.sched_yield()


def gone(root):
    (root / "plans/PLAN-1.md").unlink()


@pytest.mark.parametrize(
    ("how", "code"),
    [
        (lambda root: person(root, "plan", "revoke", "PLAN-1"), "PLAN_NOT_APPROVED"),
        (lambda root: edit(root, "status: APPROVED", "status: REVOKED"), "PLAN_NOT_APPROVED"),
        (lambda root: edit(root, "# Why", "# why"), "PLAN_NOT_APPROVED"),
        (lambda root: edit(root, "title: A plan", "titel: A plan"), "PLAN_NOT_APPROVED"),
        (gone, "PLAN_NOT_FOUND"),
    ],
    ids=["revoked by command", "the word edited", "another text", "a text with an error", "deleted"],
)
@pytest.mark.parametrize("before", [0, 1])
def test_a_change_is_refused_if_its_plan_loses_approval_before_the_intent(begun, workspace, between, how, code, before):
    approved = plan(workspace)
    for number in range(before):
        assert write(begun, approved, f"src/{number}") is None
    between(lambda: how(workspace))
    told = write(begun, approved)

    assert told["error_code"] == code
    assert not (workspace / "src/a").exists()
    assert len(intents(workspace)) == before


def test_a_change_is_refused_if_its_plan_expires_before_the_intent(begun, workspace, between):
    end = soon()
    approved = plan(workspace, more=f'expires: "{end}"\n')
    between(lambda: until(end))
    told = write(begun, approved)

    assert (told["error_code"], told["cause"]["reason"]) == ("PLAN_NOT_APPROVED", "expired")
    assert intents(workspace) == []
    assert not (workspace / "src/a").exists()


def test_an_undo_is_refused_if_its_plan_is_revoked_before_the_intent(begun, workspace, between):
    approved = plan(workspace)
    assert write(begun, approved) is None
    between(lambda: person(workspace, "plan", "revoke", "PLAN-1"))
    told = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).envelope

    assert told["error_code"] == "PLAN_NOT_APPROVED"
    assert (workspace / "src/a").read_text() == "x\n"
    assert len(intents(workspace)) == 1


def test_an_undo_of_an_undo_is_refused_if_others_reach_the_limit_before_its_intent(begun, workspace, between):
    approved = plan(workspace, more="limits: {operations: 2}\n")
    assert write(begun, approved) is None
    undone = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).output["request_id"]
    other = Agent(workspace)
    between(lambda: other.write("src/b", approved))
    told = begun.call("undo_changes", {"request_ids": [undone], "plan_hash": approved}).envelope
    other.close()

    assert told["invariant_id"] == "PLAN_LIMIT_REACHED"
    assert sorted(os.listdir(workspace / "src")) == ["b"]


def test_a_change_is_refused_if_the_workspace_is_frozen_before_the_intent(begun, workspace, between):
    approved = plan(workspace)
    between(lambda: person(workspace, "freeze", "stop"))
    told = write(begun, approved)

    assert told["invariant_id"] == "WORKSPACE_FROZEN"
    assert intents(workspace) == []
    assert not (workspace / "src/a").exists()


def test_a_change_is_refused_if_the_role_is_locked_before_the_intent(begun, workspace, between):
    approved = plan(workspace)
    other = Agent(workspace)
    between(lambda: other.write("elsewhere", approved))
    told = write(begun, approved)
    other.close()

    assert told["error_code"] == "SESSION_LOCKED"
    assert intents(workspace) == []
    assert not (workspace / "src/a").exists()


@pytest.mark.parametrize("put_back", [True, False])
def test_two_first_changes_under_different_bytes_of_a_plan_do_not_both_succeed(begun, workspace, monkeypatch, put_back):
    (workspace / "src").mkdir()
    first = plan(workspace)
    before = (workspace / "plans/PLAN-1.md").read_bytes()
    other, codes = Agent(workspace), []
    (ground,) = begun.services.workspaces.values()
    really = ground.transactions.prepare

    def prepare(*asked, **more):
        second = edit(workspace, "# Why", "# why")
        codes.append(other.write("src/b", second))
        if put_back:
            (workspace / "plans/PLAN-1.md").write_bytes(before)
        return really(*asked, **more)

    monkeypatch.setattr(ground.transactions, "prepare", prepare)
    told = write(begun, first)
    other.close()

    assert codes == ["ok"]
    assert (told["error_code"], told["invariant_id"]) == ("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")
    assert sorted(os.listdir(workspace / "src")) == ["b"]
    assert len(intents(workspace)) == 1


def user_files(root):
    """Names and contents of what is the user's in a workspace."""
    files = (path for path in root.rglob("*") if not {"audit", ".kaiza"} & set(path.relative_to(root).parts))
    return {path: path.read_bytes() if path.is_file() else None for path in files}


def test_no_file_is_touched_before_the_intent_is_on_disk_and_in_the_checkpoint(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    before, seen, really = user_files(workspace), [], TransactionManager.apply

    def apply(committer, prepared):
        anchored = Checkpoint(state_dir.path_of(str(workspace))).read().head.seq
        seen.append((user_files(workspace), intents(workspace)[-1]["seq"] == anchored))
        really(committer, prepared)

    monkeypatch.setattr(TransactionManager, "apply", apply)

    assert write(begun, approved, "src/new/a") is None
    assert seen == [(before, True)]
    assert (workspace / "src/new/a").read_text() == "x\n"


def test_no_file_is_changed_if_the_intent_cannot_be_synced(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    before = user_files(workspace)

    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        told = write(begun, approved)

    assert told["error_code"] == "AUDIT_LOG_FAILED"
    assert user_files(workspace) == before
    assert list((workspace / ".kaiza").glob("journal/*")) == []
    with pytest.raises(errors.SystemError):  # nothing of this process reaches the disk any more
        begun.close()


@pytest.fixture
def checked(make_app, workspace):
    """The answer to a check of a plan whose only phase runs these programs."""

    def check(*programs, more=""):
        for number, program in enumerate(programs):
            (workspace / f"{number}.py").write_text(program)
        argvs = [[sys.executable, f"{number}.py"] for number in range(len(programs))]
        approved = plan(workspace, more=f"{more}phases: [{{phase_id: ONE, verify: {json.dumps(argvs)}}}]\n")
        app = make_app(workspace, allowed=("allow_checks",))
        app.call("begin_session", {"role": "WINDSURF"})
        return app.call("run_checks", {"plan_hash": approved, "phase_id": "ONE"}).envelope

    return check


def test_no_further_check_runs_once_a_person_has_frozen_the_workspace(checked, workspace):
    freeze = f"""
import os, subprocess, sys
os.environ["XDG_STATE_HOME"] = {os.environ["XDG_STATE_HOME"]!r}
subprocess.run([sys.executable, "-m", "kaiza", "freeze", "stop"], check=True)
"""
    told = checked(freeze, "open('ran', 'w')")

    assert told["invariant_id"] == "WORKSPACE_FROZEN"
    assert not (workspace / "ran").exists()


def test_no_further_check_runs_once_the_plan_has_expired(checked, workspace):
    end = soon(5)
    wait = f"""
import datetime
while datetime.datetime.now(datetime.UTC).isoformat() < {end[:-1]!r} + "9":
    pass
"""
    told = checked(wait, "open('ran', 'w')", more=f'expires: "{end}"\n')

    assert (told["error_code"], told["cause"].get("reason")) == ("PLAN_NOT_APPROVED", "expired")
    assert not (workspace / "ran").exists()
