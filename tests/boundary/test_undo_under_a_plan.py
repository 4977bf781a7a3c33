"""Limits of an agent's undo: its plan's own changes, as the plan allows, and nothing that a person has undone."""

import json
import os
import subprocess
import sys

import pytest
from agents import LocalAgent, edit, person, plan, several, sha
from children import run_child
from scenes import records

from kaiza.app import App
from kaiza.boundary import change
from kaiza.cli import dispatch
from kaiza.clock import current_timestamp
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log
from kaiza.store.changes.transaction import TransactionManager

SCOPE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"], move: [{from: "src/**", to: "src/**"}]}'
ONLY_DOCS = '{modify: ["docs/x.md"], deny: ["src/**"]}'
EXPIRED = 'expires: "2020-01-01T00:00:00Z"\n'


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    with several(workspace, LocalAgent) as begin:
        yield begin


def write(agent, path, plan_hash, content="x\n", **more):
    """Make a change and return its request id."""
    output = agent.call("write_file", path=path, content=content, plan_hash=plan_hash, **more)
    assert "error_code" not in output, output
    return output["request_id"]


def undo(agent, plan_hash, *request_ids, **more):
    """Undo these calls, or the whole session; return the output or envelope."""
    target = {"request_ids": list(request_ids)} if request_ids else {"all_of_session": True}
    return agent.call("undo_changes", plan_hash=plan_hash, **target, **more)


def undo_as_person(root, *request_ids):
    """Undo these calls as a person; return the request ids of the undo."""
    command = [sys.executable, "-m", "kaiza", "undo", "--request", *request_ids, "--yes", "--json"]
    done = subprocess.run(command, cwd=root, capture_output=True, check=True)
    return json.loads(done.stdout)["request_ids"]


def files(root):
    return {str(path.relative_to(root)): path.read_text() for path in (root / "src").rglob("*") if path.is_file()}


def test_changes_made_under_another_plan_are_refused_and_listed(agent, workspace):
    old, new = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=ONLY_DOCS)
    first_agent, other_agent = agent(), agent()
    request_ids = [write(first_agent, f"src/{name}", old) for name in "abcde"]
    edit(workspace, "status: APPROVED", "status: DONE")
    dry_run = undo(other_agent, new, *request_ids, dry_run=True)
    output = undo(other_agent, new, *request_ids)
    after = other_agent.write("docs/x.md", new)

    assert (dry_run["error_code"], output["error_code"]) == ("PLAN_SCOPE_VIOLATION", "PLAN_SCOPE_VIOLATION")
    assert (output["cause"]["rule"], sorted(output["cause"]["request_ids"])) == (
        "undo_of_the_plan",
        sorted(request_ids),
    )
    assert sorted(files(workspace)) == [f"src/{name}" for name in "abcde"]
    assert after == "SESSION_LOCKED"


def test_undoing_a_session_undoes_the_plans_changes_and_lists_the_others(agent, workspace):
    first, second = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    executor = agent()
    write(executor, "src/a", first)
    write(executor, "src/b", second)
    write(executor, "src/both", first, "1")
    write(executor, "src/both", second, "2", expected_hash=sha(b"1"))
    output = undo(executor, second)
    again = executor.write("src/c", second)

    assert {change["path"] for change in output["changes"]} == {"src/b", "src/both"}
    assert output["kept"] == [{"path": "src/a", "reason": "other_plan"}]
    assert files(workspace) == {"src/a": "x\n", "src/both": "1", "src/c": "x\n"}
    assert again == "ok"


def test_what_a_person_undid_is_not_redone_by_undoing_an_older_undo(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    executor = agent()
    request_id = write(executor, "src/a", allowed)
    undone = undo(executor, allowed, request_id)["request_id"]
    redone = undo(executor, allowed, undone)["request_id"]
    (persons,) = undo_as_person(workspace, request_id)
    outputs = [undo(executor, allowed, each) for each in (undone, redone, request_id)]
    refused = undo(executor, allowed, persons)

    assert [output["changes"] for output in outputs] == [[], [], []]
    assert outputs[0]["kept"] == [{"path": "src/a", "reason": "taken_back"}]
    assert refused["error_code"] == "INVALID_INPUT_VALUE"
    assert files(workspace) == {}
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    assert undo(executor, allowed, undone)["error_code"] == "PLAN_NOT_APPROVED"
    assert files(workspace) == {}


def test_what_a_person_undid_is_not_redone_by_undoing_an_older_change(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    executor = agent()
    write(executor, "src/a", allowed, "good\n")
    write(executor, "src/a", allowed, "bad\n", expected_hash=sha(b"good\n"))
    better = write(executor, "src/a", allowed, "good\n", expected_hash=sha(b"bad\n"))
    worse = write(executor, "src/a", allowed, "bad\n", expected_hash=sha(b"good\n"))
    undo_as_person(workspace, worse)
    output = undo(executor, allowed, better)
    session = undo(executor, allowed)

    assert (output["changes"], output["kept"]) == ([], [{"path": "src/a", "reason": "taken_back"}])
    assert (session["changes"], session["kept"]) == ([], [{"path": "src/a", "reason": "taken_back"}])
    assert files(workspace) == {"src/a": "good\n"}


def test_a_file_created_again_under_another_plan_is_not_deleted_even_with_the_same_bytes(agent, workspace):
    first, second = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    first_agent, other_agent = agent(), agent()
    request_id = write(first_agent, "src/a", first)
    (workspace / "src/a").unlink()
    write(other_agent, "src/a", second)
    outputs = [undo(first_agent, first, request_id), undo(first_agent, first)]

    assert [(output["changes"], output["kept"]) for output in outputs] == [
        ([], [{"path": "src/a", "reason": "other_plan"}])
    ] * 2
    assert files(workspace) == {"src/a": "x\n"}


def test_an_undo_is_exempt_from_limits_and_its_undo_is_not(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 1}\n")
    executor = agent()
    request_id = write(executor, "src/a", limited)
    undone = undo(executor, limited, request_id)["request_id"]
    outputs = [undo(executor, limited, undone) for _ in range(6)]

    assert {output["invariant_id"] for output in outputs} == {"PLAN_LIMIT_REACHED"}
    assert files(workspace) == {}


@pytest.mark.parametrize(("limit", "left"), [("operations: 3", 2), ("lines: 6", 2), ("bytes: 12", 2), ("lines: 2", 0)])
def test_an_undo_of_an_undo_counts_towards_every_limit(agent, workspace, limit, left):
    limited = plan(workspace, scope=SCOPE, more=f"limits: {{{limit}}}\n")
    executor = agent()
    made, again = write(executor, "src/a", limited, "1\n2\n"), 0
    undone = undo(executor, limited, made)["request_id"]
    while "error_code" not in (output := undo(executor, limited, undone)) and again < 9:
        again += 1
        undone = undo(executor, limited, made)["request_id"]
    use = executor.call("session_status")["plan_use"][0]

    assert output["invariant_id"] == "PLAN_LIMIT_REACHED"
    assert again == left
    assert (use["operations"], use["lines"], use["bytes"]) == (1 + left, 2 + 2 * left, 4 + 4 * left)


def test_an_undo_of_an_undo_needs_a_phase_and_is_judged_by_its_scope(agent, workspace):
    more = 'phases: [{phase_id: ONE}, {phase_id: TWO, scope: {create: ["docs/**"]}}]\n'
    allowed = plan(workspace, scope=SCOPE, more=more)
    executor = agent()
    request_id = write(executor, "src/a", allowed, phase_id="ONE")
    undone = undo(executor, allowed, request_id)["request_id"]
    phases = ({}, {"phase_id": "TWO"}, {"phase_id": "X"})
    outputs = [undo(executor, allowed, undone, dry_run=True, **phase) for phase in phases]
    again = undo(executor, allowed, undone, phase_id="ONE")

    assert [output["error_code"] for output in outputs] == ["MISSING_REQUIRED_FIELD", *["PLAN_SCOPE_VIOLATION"] * 2]
    assert [change["operation"] for change in again["changes"]] == ["create"]
    assert files(workspace) == {"src/a": "x\n"}


def test_a_path_that_became_unreadable_is_not_undone(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    request_id = write(agent(), "src/keys/a", allowed)
    (workspace / "kaiza.toml").write_text('deny_read = ["src/keys/**"]\n')
    output = undo(agent(), allowed, request_id)

    assert (output["changes"], output["kept"]) == ([], [{"path": "src/keys/a", "reason": "protected"}])
    assert files(workspace) == {"src/keys/a": "x\n"}


@pytest.mark.parametrize("how", ["draft", "expired", "revoked", "none"])
def test_nothing_is_undone_under_a_plan_that_is_not_approved_now(agent, workspace, how):
    allowed = plan(workspace, scope=SCOPE)
    executor = agent()
    request_id = write(executor, "src/a", allowed)
    plan_hash = {
        "draft": lambda: plan(workspace, "PLAN-2", "DRAFT", scope=SCOPE),
        "expired": lambda: plan(workspace, "PLAN-2", scope=SCOPE, more=EXPIRED),
        "revoked": lambda: edit(workspace, "status: APPROVED", "status: REVOKED") and allowed,
        "none": lambda: "0" * 64,
    }[how]()
    codes = [undo(executor, plan_hash, request_id)["error_code"], undo(executor, plan_hash)["error_code"]]

    assert codes == ["PLAN_NOT_FOUND" if how == "none" else "PLAN_NOT_APPROVED"] * 2
    assert files(workspace) == {"src/a": "x\n"}
    assert [each["outcome"] for each in records(workspace) if each["tool_name"] == "undo_changes"] == ["error"] * 2


def test_content_rules_apply_to_an_undo_of_an_undo(agent, workspace):
    allowed = plan(workspace, scope=SCOPE, more="policy: {secrets: refuse}\n")
    secret = "key = 'AKIA" + "ABCDEFGHIJKLMNOP" + "'\n"
    (workspace / "src/a").write_text(secret)
    executor = agent()
    request_id = write(executor, "src/a", allowed, "clean\n", expected_hash=sha(secret.encode()))
    undone = undo(executor, allowed, request_id)["request_id"]
    again = undo(executor, allowed, undone)["request_id"]
    output = undo(executor, allowed, again)

    assert output["error_code"] == "POLICY_VIOLATION"
    assert files(workspace) == {"src/a": "clean\n"}


def append_change(root, request_id, path, plan_hash, before):
    """Record a change that its plan would not allow."""
    change = {"path": path, "source": None, "operation": "modify", "before_hash": before, "mode": None, "size": 1}
    change |= {"after_hash": sha((root / path).read_bytes()), "lines_added": 1, "lines_removed": 1}
    log = audit_log.AuditLog(os.path.realpath(root), follow=lambda _record: None)
    members = {"request_id": request_id, "session_id": "another", "tool_name": "write_file", "outcome": "ok"}
    members |= {"timestamp": current_timestamp(), "plan_id": "PLAN-1", "plan_hash": plan_hash, "changes": [change]}
    log.append(lambda: record.new_body("call", **members), durable=True)
    log.close()


@pytest.mark.parametrize("path", ["src/keys/a", "AGENTS.md", "src/late/a"])
def test_a_path_that_the_plan_denies_or_does_not_unlock_is_not_undone(agent, workspace, path):
    phases = 'phases: [{phase_id: ONE, scope: {create: ["src/**"], deny: ["src/late/**"]}}]\n'
    allowed = plan(workspace, scope=SCOPE.replace("}]}", '}], deny: ["src/keys/**"]}'), more=phases)
    executor = agent()
    (workspace / path).parent.mkdir(exist_ok=True)
    (workspace / path).write_text("before\n")
    kept = write(executor, "src/b", allowed, "before\n", phase_id="ONE")
    undo(executor, allowed, kept)
    (workspace / path).write_text("after\n")
    append_change(workspace, "older", path, allowed, sha(b"before\n"))
    output = undo(executor, allowed, "older", phase_id="ONE")

    assert (output["changes"], output["kept"]) == ([], [{"path": path, "reason": "protected"}])
    assert (workspace / path).read_text() == "after\n"


def crash_during(root, *call):
    """Make a call in a process that ends before the outcome is recorded; return the ids of the intents."""

    def begin_and_call():
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        change.record_outcome = lambda *_, **__: os._exit(0)
        app.call(*call)

    run_child(begin_and_call)
    return [entry["request_id"] for entry in records(root) if entry["kind"] == "intent"]


def test_a_change_completed_by_recovery_belongs_to_its_plan(agent, workspace):
    allowed, other = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    (made,) = crash_during(workspace, "write_file", {"path": "src/a", "content": "x\n", "plan_hash": allowed})
    executor = agent()
    output = undo(executor, other, made, dry_run=True)
    undone = undo(executor, allowed, made)

    assert executor.begun["recovered"][0]["result"] == "applied"
    assert output["error_code"] == "PLAN_SCOPE_VIOLATION"
    assert [change["operation"] for change in undone["changes"]] == ["delete"]


def test_an_undo_completed_by_recovery_counts_as_an_undo(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 1}\n")
    executor = agent()
    request_id = write(executor, "src/a", limited)
    executor.close()
    *_, undone = crash_during(workspace, "undo_changes", {"request_ids": [request_id], "plan_hash": limited})
    later = agent()
    output = undo(later, limited, undone)
    (workspace / "src/a").write_text("x\n")
    again = undo(later, limited, request_id)

    assert later.begun["recovered"][0]["result"] == "applied"
    assert output["invariant_id"] == "PLAN_LIMIT_REACHED"
    assert (again["changes"], files(workspace)) == ([], {"src/a": "x\n"})


def test_a_persons_undo_completed_by_recovery_counts_as_a_persons(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    executor = agent()
    request_id = write(executor, "src/a", allowed)
    undone = undo(executor, allowed, request_id)["request_id"]
    undo(executor, allowed, undone)

    def undo_and_die():
        real_apply = TransactionManager.apply
        TransactionManager.apply = lambda *arguments: (real_apply(*arguments), os._exit(0))
        os.chdir(workspace)
        dispatch.main(["undo", "--request", request_id, "--yes", "--json"])

    assert run_child(undo_and_die) == 0
    later = agent()
    outputs = [undo(later, allowed, each) for each in (undone, request_id)]
    persons = later.begun["recovered"][0]["request_id"]

    assert [output["changes"] for output in outputs] == [[], []]
    assert outputs[0]["kept"] == [{"path": "src/a", "reason": "taken_back"}]
    assert undo(later, allowed, persons)["error_code"] == "INVALID_INPUT_VALUE"
    assert files(workspace) == {}


def test_an_undo_is_refused_if_another_process_undid_and_redid_the_change_first(workspace, monkeypatch):
    (workspace / "src").mkdir()
    plan_hash = plan(workspace, scope=SCOPE)
    one, other = App([os.path.realpath(workspace)]), App([os.path.realpath(workspace)])
    for each in (one, other):
        each.call("begin_session", {"role": "WINDSURF"})
    request_id = one.call("write_file", {"path": "src/a", "content": "x\n", "plan_hash": plan_hash}).output[
        "request_id"
    ]
    real_prepare = TransactionManager.prepare

    def undo_and_redo_first(manager, *arguments, **options):
        monkeypatch.setattr(TransactionManager, "prepare", real_prepare)
        undone = other.call("undo_changes", {"request_ids": [request_id], "plan_hash": plan_hash}).output["request_id"]
        again = other.call("undo_changes", {"request_ids": [undone], "plan_hash": plan_hash})
        assert again.envelope is None
        return real_prepare(manager, *arguments, **options)

    monkeypatch.setattr(TransactionManager, "prepare", undo_and_redo_first)
    late = one.call("undo_changes", {"request_ids": [request_id], "plan_hash": plan_hash}).envelope
    kept = files(workspace)
    last = one.call("undo_changes", {"request_ids": [request_id], "plan_hash": plan_hash})
    for each in (one, other):
        each.close()

    assert late["error_code"] == "HASH_MISMATCH"
    assert kept == {"src/a": "x\n"}
    assert last.envelope is None
