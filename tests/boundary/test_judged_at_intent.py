"""Decisions made while a change is being prepared: it is judged again when its intent is written."""

import json
import os
import sys
import threading
from datetime import UTC, datetime, timedelta

import pytest
from agents import Agent, confirm, edit, hash_of, person, plan
from scenes import records

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit.record import Verdict
from kaiza.domain.call import CallRequest, Principal
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.changes.transaction import TransactionManager
from kaiza.store.disk import state_dir
from kaiza.store.trust.http_tokens import read_tokens


@pytest.fixture
def between(begun, workspace):
    """Run a function after the rules have allowed a change and before its intent is written."""
    (workspace / "src").mkdir()
    (open_workspace,) = begun.services.workspaces.values()
    real_append = open_workspace.log.append

    def run_between(function):
        def append(compose, *, durable):
            if durable:  # the intent; the record of the plan's seal comes before it and is not
                open_workspace.log.append = real_append
                function()
            return real_append(compose, durable=durable)

        open_workspace.log.append = append

    return run_between


def write(app, plan_hash, path="src/a"):
    return app.call("write_file", {"path": path, "content": "x\n", "plan_hash": plan_hash}).envelope


def intents(root):
    return [entry for entry in records(root) if entry["kind"] == "intent"]


def soon(seconds=2):
    """A timestamp a few seconds from now."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")[:-6] + "Z"


def until(moment):
    while current_timestamp() < moment:
        os.sched_yield()


def mark_damaged(root):
    """Mark the log as a process does that found it damaged."""
    DamageMark(state_dir.path_of(str(root))).save(Verdict("broken", 0, None, None, anchored=False))


def lock_the_role(app, root, plan_hash):
    other = Agent(root)
    other.write("elsewhere", plan_hash)
    other.close()


BETWEEN = {
    "revoked by command": (lambda _app, root, _: person(root, "plan", "revoke", "PLAN-1"), "PLAN_NOT_APPROVED"),
    "status edited": (lambda _app, root, _: edit(root, "status: APPROVED", "status: REVOKED"), "PLAN_NOT_APPROVED"),
    "text edited": (lambda _app, root, _: edit(root, "# Why", "# why"), "PLAN_NOT_APPROVED"),
    "edited with an error": (lambda _app, root, _: edit(root, "title: A plan", "titel: A plan"), "PLAN_NOT_APPROVED"),
    "deleted": (lambda _app, root, _: (root / "plans/PLAN-1.md").unlink(), "PLAN_NOT_FOUND"),
    "session ended": (lambda app, *_: app.call("end_session", {}), "SESSION_NOT_INITIALIZED"),
    "frozen": (lambda _app, root, _: person(root, "freeze", "stop"), "POLICY_VIOLATION"),
    "damaged": (lambda _app, root, _: mark_damaged(root), "SELF_AUDIT_FAILURE"),
    "locked": (lock_the_role, "SESSION_LOCKED"),
}


@pytest.mark.parametrize(("act", "code"), BETWEEN.values(), ids=BETWEEN)
@pytest.mark.parametrize("before", [0, 1])
def test_a_change_is_refused_for_what_happens_before_its_intent(begun, workspace, between, act, code, before):
    approved = plan(workspace)
    for number in range(before):
        assert write(begun, approved, f"src/{number}") is None
    between(lambda: act(begun, workspace, approved))
    envelope = write(begun, approved)

    assert envelope["error_code"] == code
    assert not (workspace / "src/a").exists()
    assert len(intents(workspace)) == before


def test_a_change_is_refused_if_its_plan_expires_before_the_intent(begun, workspace, between):
    end = soon()
    approved = plan(workspace, more=f'expires: "{end}"\n')
    between(lambda: until(end))
    envelope = write(begun, approved)

    assert (envelope["error_code"], envelope["cause"]["reason"]) == ("PLAN_NOT_APPROVED", "expired")
    assert intents(workspace) == []


def test_an_undo_is_refused_if_its_plan_is_revoked_before_the_intent(begun, workspace, between):
    approved = plan(workspace)
    assert write(begun, approved) is None
    between(lambda: person(workspace, "plan", "revoke", "PLAN-1"))
    envelope = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).envelope

    assert envelope["error_code"] == "PLAN_NOT_APPROVED"
    assert (workspace / "src/a").read_text() == "x\n"
    assert len(intents(workspace)) == 1


def test_an_undo_of_an_undo_is_refused_if_others_reach_the_limit_before_its_intent(begun, workspace, between):
    approved = plan(workspace, more="limits: {operations: 2}\n")
    assert write(begun, approved) is None
    undone = begun.call("undo_changes", {"all_of_session": True, "plan_hash": approved}).output["request_id"]
    other = Agent(workspace)
    between(lambda: other.write("src/b", approved))
    envelope = begun.call("undo_changes", {"request_ids": [undone], "plan_hash": approved}).envelope
    other.close()

    assert envelope["invariant_id"] == "PLAN_LIMIT_REACHED"
    assert sorted(os.listdir(workspace / "src")) == ["b"]


def test_a_change_is_refused_if_its_token_is_revoked_before_the_intent(begun, workspace, between):
    approved = plan(workspace)
    assert person(workspace, "token", "new", "ci") == 0
    (kept,) = read_tokens(str(workspace)).tokens
    principal = Principal(kept.label, str(workspace))

    def call(tool, **arguments):
        request = CallRequest(tool, arguments, conversational=False, principal=principal)
        return begun.answer(begun.stamp(request))

    session = call("begin_session", role="WINDSURF").output["session_id"]
    between(lambda: person(workspace, "token", "revoke", "ci"))
    outcome = call("write_file", path="src/a", content="x\n", plan_hash=approved, session_id=session)

    assert outcome.envelope["error_code"] == "SESSION_NOT_INITIALIZED"
    assert intents(workspace) == []
    assert not (workspace / "src/a").exists()


@pytest.mark.parametrize("is_restored", [True, False])
def test_two_first_changes_under_different_bytes_of_a_plan_do_not_both_succeed(
    begun, workspace, monkeypatch, is_restored
):
    (workspace / "src").mkdir()
    first = plan(workspace)
    before = (workspace / "plans/PLAN-1.md").read_bytes()
    other, codes = Agent(workspace), []
    (open_workspace,) = begun.services.workspaces.values()
    real_prepare = open_workspace.transactions.prepare

    def prepare(*arguments, **options):
        (workspace / "plans/PLAN-1.md").write_text(before.decode().replace("# Why", "# why"))
        assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
        second = hash_of(workspace)
        codes.append(other.write("src/b", second))
        if is_restored:
            (workspace / "plans/PLAN-1.md").write_bytes(before)
        return real_prepare(*arguments, **options)

    monkeypatch.setattr(open_workspace.transactions, "prepare", prepare)
    envelope = write(begun, first)
    other.close()

    assert codes == ["ok"]
    assert (envelope["error_code"], envelope["invariant_id"]) == ("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")
    assert sorted(os.listdir(workspace / "src")) == ["b"]
    assert len(intents(workspace)) == 1


def user_files(root):
    """Paths and contents of all files but the log and Kaiza's own."""
    files = (path for path in root.rglob("*") if not {"audit", ".kaiza"} & set(path.relative_to(root).parts))
    return {path: path.read_bytes() if path.is_file() else None for path in files}


def test_no_file_is_touched_before_the_intent_is_on_disk_and_in_the_checkpoint(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    before, seen, real_apply = user_files(workspace), [], TransactionManager.apply

    def apply(manager, prepared):
        checkpoint_seq = Checkpoint(state_dir.path_of(str(workspace))).read().head.seq
        seen.append((user_files(workspace), intents(workspace)[-1]["seq"] == checkpoint_seq))
        real_apply(manager, prepared)

    monkeypatch.setattr(TransactionManager, "apply", apply)

    assert write(begun, approved, "src/new/a") is None
    assert seen == [(before, True)]
    assert (workspace / "src/new/a").read_text() == "x\n"


def test_the_outcome_of_a_change_is_on_disk_and_in_the_checkpoint_when_it_is_answered(begun, workspace):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    answered = [write(begun, approved, f"src/{number}") for number in range(2)]
    checkpoint_seq = Checkpoint(state_dir.path_of(str(workspace))).read().head.seq

    assert answered == [None, None]
    assert checkpoint_seq == records(workspace)[-1]["seq"]


def test_no_file_is_changed_if_the_intent_cannot_be_synced(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    before = user_files(workspace)

    def fail(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        envelope = write(begun, approved)

    assert envelope["error_code"] == "AUDIT_LOG_FAILED"
    assert user_files(workspace) == before
    assert list((workspace / ".kaiza").glob("journal/*")) == []
    with pytest.raises(errors.SystemError):  # after a failed fsync this process never reports success again
        begun.close()


@pytest.fixture(params=["sandbox", "no sandbox"])
def with_and_without_sandbox(request, monkeypatch, tmp_path):
    if request.param == "no sandbox":
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))


@pytest.fixture
def checked(make_app, workspace):
    """Run programs as the checks of a plan's only phase, and return the error envelope."""

    def check(*programs, more=""):
        for number, program in enumerate(programs):
            (workspace / f"{number}.py").write_text(program)
        argvs = [[sys.executable, f"{number}.py"] for number in range(len(programs))]
        approved = plan(workspace, more=f"{more}phases: [{{phase_id: ONE, verify: {json.dumps(argvs)}}}]\n")
        app = make_app(workspace, allowed=("allow_checks", "allow_unsandboxed_checks"))
        app.call("begin_session", {"role": "WINDSURF"})
        return app.call("run_checks", {"plan_hash": approved, "phase_id": "ONE"}).envelope

    return check


@pytest.mark.parametrize(
    ("stop", "refusal"),
    [
        (lambda root: person(root, "freeze", "stop"), ("POLICY_VIOLATION", "WORKSPACE_FROZEN")),
        (mark_damaged, ("SELF_AUDIT_FAILURE", None)),
    ],
    ids=["frozen", "damaged"],
)
@pytest.mark.usefixtures("with_and_without_sandbox")
def test_no_further_check_runs_once_the_workspace_is_frozen_or_its_log_damaged(checked, workspace, stop, refusal):
    def stop_during_the_check():
        while not (workspace / "started").exists():
            os.sched_yield()
        stop(workspace)
        (workspace / "stopped").touch()

    meanwhile = threading.Thread(target=stop_during_the_check, daemon=True)
    meanwhile.start()
    wait = "import os\nopen('started', 'w')\nwhile not os.path.exists('stopped'): os.sched_yield()"
    envelope = checked(wait, "open('ran', 'w')")

    assert (envelope["error_code"], envelope["invariant_id"]) == refusal
    assert not (workspace / "ran").exists()


def test_no_further_check_runs_once_the_plan_has_expired(checked, workspace):
    end = soon(5)
    wait = f"""
import datetime
while datetime.datetime.now(datetime.UTC).isoformat() < {end[:-1]!r} + "9":
    pass
"""
    envelope = checked(wait, "open('ran', 'w')", more=f'expires: "{end}"\n')

    assert (envelope["error_code"], envelope["cause"].get("reason")) == ("PLAN_NOT_APPROVED", "expired")
    assert not (workspace / "ran").exists()
