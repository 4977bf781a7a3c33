"""What an agent's undo may reach: its plan's own changes, within the plan, and nothing that a person took back."""

import json
import os
import subprocess
import sys

import pytest
from agents import edit, person, plan, several, sha
from scenes import records

from kaiza.app import App
from kaiza.boundary import change, current_timestamp
from kaiza.cli import dispatch
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log
from kaiza.store.changes.transaction import TransactionManager

SCOPE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"], move: [{from: "src/**", to: "src/**"}]}'
ONLY_DOCS = '{modify: ["docs/x.md"], deny: ["src/**"]}'
LONG_AGO = 'expires: "2020-01-01T00:00:00Z"\n'


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    with several(workspace) as begin:
        yield begin


def wrote(one, path, plan_hash, content="x\n", **more):
    """A change that is made; its name."""
    told = one.call("write_file", path=path, content=content, plan_hash=plan_hash, **more)
    assert "error_code" not in told, told
    return told["request_id"]


def undid(one, plan_hash, *request_ids, **more):
    """The answer to an undo of these calls, or of the whole session."""
    which = {"request_ids": list(request_ids)} if request_ids else {"all_of_session": True}
    return one.call("undo_changes", plan_hash=plan_hash, **which, **more)


def taken_back(root, *request_ids):
    """A person's undo of these calls; its names."""
    words = [sys.executable, "-m", "kaiza", "undo", "--request", *request_ids, "--yes", "--json"]
    done = subprocess.run(words, cwd=root, capture_output=True, check=True)
    return json.loads(done.stdout)["request_ids"]


def files(root):
    return {str(path.relative_to(root)): path.read_text() for path in (root / "src").rglob("*") if path.is_file()}


def test_changes_of_a_revoked_plan_are_not_redone_under_another(agent, workspace):
    old, new = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=ONLY_DOCS)
    one = agent()
    made = wrote(one, "src/a", old, "BACKDOOR\n")
    undone = undid(one, old, made)["request_id"]
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    told = [undid(one, each, undone)["error_code"] for each in (old, new)]

    assert told == ["PLAN_NOT_APPROVED", "PLAN_SCOPE_VIOLATION"]
    assert files(workspace) == {}


def test_changes_made_under_another_plan_are_refused_and_listed(agent, workspace):
    old, new = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=ONLY_DOCS)
    one, other = agent(), agent()
    made = [wrote(one, f"src/{name}", old) for name in "abcde"]
    edit(workspace, "status: APPROVED", "status: DONE")
    tried = undid(other, new, *made, dry_run=True)
    told = undid(other, new, *made)
    after = other.write("docs/x.md", new)

    assert (tried["error_code"], told["error_code"]) == ("PLAN_SCOPE_VIOLATION", "PLAN_SCOPE_VIOLATION")
    assert (told["cause"]["rule"], sorted(told["cause"]["request_ids"])) == ("undo_of_the_plan", sorted(made))
    assert sorted(files(workspace)) == [f"src/{name}" for name in "abcde"]
    assert after == "SESSION_LOCKED"


def test_undoing_a_session_undoes_the_plans_changes_and_lists_the_others(agent, workspace):
    first, second = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    one = agent()
    wrote(one, "src/a", first)
    wrote(one, "src/b", second)
    wrote(one, "src/both", first, "1")
    wrote(one, "src/both", second, "2", expected_hash=sha(b"1"))
    told = undid(one, second)
    again = one.write("src/c", second)

    assert {each["path"] for each in told["changes"]} == {"src/b", "src/both"}
    assert told["kept"] == [{"path": "src/a", "reason": "other_plan"}]
    assert files(workspace) == {"src/a": "x\n", "src/both": "1", "src/c": "x\n"}
    assert again == "ok"


def test_what_a_person_undid_is_not_redone_by_undoing_an_older_undo(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    one = agent()
    made = wrote(one, "src/a", allowed)
    undone = undid(one, allowed, made)["request_id"]
    redone = undid(one, allowed, undone)["request_id"]
    (persons,) = taken_back(workspace, made)
    told = [undid(one, allowed, each) for each in (undone, redone, made)]
    refused = undid(one, allowed, persons)

    assert [each["changes"] for each in told] == [[], [], []]
    assert told[0]["kept"] == [{"path": "src/a", "reason": "taken_back"}]
    assert refused["error_code"] == "INVALID_INPUT_VALUE"
    assert files(workspace) == {}
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    assert undid(one, allowed, undone)["error_code"] == "PLAN_NOT_APPROVED"
    assert files(workspace) == {}


def test_what_a_person_undid_is_not_redone_by_undoing_an_older_change(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    one = agent()
    wrote(one, "src/a", allowed, "good\n")
    wrote(one, "src/a", allowed, "bad\n", expected_hash=sha(b"good\n"))
    better = wrote(one, "src/a", allowed, "good\n", expected_hash=sha(b"bad\n"))
    worse = wrote(one, "src/a", allowed, "bad\n", expected_hash=sha(b"good\n"))
    taken_back(workspace, worse)
    told = undid(one, allowed, better)
    session = undid(one, allowed)

    assert (told["changes"], told["kept"]) == ([], [{"path": "src/a", "reason": "taken_back"}])
    assert (session["changes"], session["kept"]) == ([], [{"path": "src/a", "reason": "taken_back"}])
    assert files(workspace) == {"src/a": "good\n"}


def test_a_file_created_again_under_another_plan_is_not_deleted_even_with_the_same_bytes(agent, workspace):
    first, second = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    one, other = agent(), agent()
    made = wrote(one, "src/a", first)
    (workspace / "src/a").unlink()
    wrote(other, "src/a", second)
    told = [undid(one, first, made), undid(one, first)]

    assert [(each["changes"], each["kept"]) for each in told] == [([], [{"path": "src/a", "reason": "other_plan"}])] * 2
    assert files(workspace) == {"src/a": "x\n"}


def test_a_change_is_undone_if_another_plans_later_change_was_undone(agent, workspace):
    first, second = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    one, other = agent(), agent()
    made = wrote(one, "src/a", first, "1")
    undid(other, second, wrote(other, "src/a", second, "2", expected_hash=sha(b"1")))
    told = undid(one, first, made)

    assert ([each["operation"] for each in told["changes"]], told["kept"]) == (["delete"], [])


def test_a_change_made_after_a_persons_undo_can_be_undone(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    one = agent()
    taken_back(workspace, wrote(one, "src/a", allowed, "first\n"))
    wrote(one, "src/a", allowed, "second\n")
    told = undid(one, allowed)

    assert ([each["path"] for each in told["changes"]], told["kept"]) == (["src/a"], [])
    assert files(workspace) == {}


def test_an_undo_is_exempt_from_limits_and_its_undo_is_not(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 1}\n")
    one = agent()
    made = wrote(one, "src/a", limited)
    undone = undid(one, limited, made)["request_id"]
    told = [undid(one, limited, undone) for _ in range(6)]

    assert {each["invariant_id"] for each in told} == {"PLAN_LIMIT_REACHED"}
    assert files(workspace) == {}


@pytest.mark.parametrize(("limit", "left"), [("operations: 3", 2), ("lines: 6", 2), ("bytes: 12", 2), ("lines: 2", 0)])
def test_an_undo_of_an_undo_counts_towards_every_limit(agent, workspace, limit, left):
    limited = plan(workspace, scope=SCOPE, more=f"limits: {{{limit}}}\n")
    one = agent()
    made, again = wrote(one, "src/a", limited, "1\n2\n"), 0
    undone = undid(one, limited, made)["request_id"]
    while "error_code" not in (told := undid(one, limited, undone)) and again < 9:
        again += 1
        undone = undid(one, limited, made)["request_id"]
    use = one.call("session_status")["plan_use"][0]

    assert told["invariant_id"] == "PLAN_LIMIT_REACHED"
    assert again == left
    assert (use["operations"], use["lines"], use["bytes"]) == (1 + left, 2 + 2 * left, 4 + 4 * left)


def test_undoing_opposite_changes_in_turn_counts_towards_the_limit(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 3}\n")
    one = agent()
    wrote(one, "src/a", limited, "1")
    there = wrote(one, "src/a", limited, "2", expected_hash=sha(b"1"))
    back = wrote(one, "src/a", limited, "1", expected_hash=sha(b"2"))
    told = [undid(one, limited, each).get("invariant_id") for each in (back, there, back, there)]

    assert told == [None, None, "PLAN_LIMIT_REACHED", None]
    assert files(workspace) == {"src/a": "1"}


def test_a_redone_change_is_undone_free_of_limits_again(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 2}\n")
    one = agent()
    made = wrote(one, "src/a", limited)
    undone = undid(one, limited, made)["request_id"]
    undid(one, limited, undone)
    there = files(workspace)
    told = undid(one, limited, made)

    assert there == {"src/a": "x\n"}
    assert [each["operation"] for each in told["changes"]] == ["delete"]


def test_an_undo_of_an_undo_needs_a_phase_and_is_judged_by_its_scope(agent, workspace):
    phases = 'phases: [{phase_id: ONE}, {phase_id: TWO, scope: {create: ["docs/**"]}}]\n'
    allowed = plan(workspace, scope=SCOPE, more=phases)
    one = agent()
    made = wrote(one, "src/a", allowed, phase_id="ONE")
    undone = undid(one, allowed, made)["request_id"]
    told = [undid(one, allowed, undone, dry_run=True, **more) for more in ({}, {"phase_id": "TWO"}, {"phase_id": "X"})]
    again = undid(one, allowed, undone, phase_id="ONE")

    assert [each["error_code"] for each in told] == ["MISSING_REQUIRED_FIELD", *["PLAN_SCOPE_VIOLATION"] * 2]
    assert [each["operation"] for each in again["changes"]] == ["create"]
    assert files(workspace) == {"src/a": "x\n"}


def test_a_path_that_became_unreadable_is_not_undone(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    made = wrote(agent(), "src/keys/a", allowed)
    (workspace / "kaiza.toml").write_text('deny_read = ["src/keys/**"]\n')
    told = undid(agent(), allowed, made)

    assert (told["changes"], told["kept"]) == ([], [{"path": "src/keys/a", "reason": "protected"}])
    assert files(workspace) == {"src/keys/a": "x\n"}


@pytest.mark.parametrize("how", ["draft", "expired", "revoked", "none"])
def test_nothing_is_undone_under_a_plan_that_is_not_approved_now(agent, workspace, how):
    allowed = plan(workspace, scope=SCOPE)
    one = agent()
    made = wrote(one, "src/a", allowed)
    asked = {
        "draft": lambda: plan(workspace, "PLAN-2", "DRAFT", scope=SCOPE),
        "expired": lambda: plan(workspace, "PLAN-2", scope=SCOPE, more=LONG_AGO),
        "revoked": lambda: edit(workspace, "status: APPROVED", "status: REVOKED") and allowed,
        "none": lambda: "0" * 64,
    }[how]()
    told = [undid(one, asked, made)["error_code"], undid(one, asked)["error_code"]]

    assert told == ["PLAN_NOT_FOUND" if how == "none" else "PLAN_NOT_APPROVED"] * 2
    assert files(workspace) == {"src/a": "x\n"}
    assert [each["outcome"] for each in records(workspace) if each["tool_name"] == "undo_changes"] == ["error"] * 2


def test_content_rules_apply_to_an_undo_of_an_undo(agent, workspace):
    allowed = plan(workspace, scope=SCOPE, more="policy: {secrets: refuse}\n")
    secret = "key = 'AKIA" + "ABCDEFGHIJKLMNOP" + "'\n"
    (workspace / "src/a").write_text(secret)
    one = agent()
    made = wrote(one, "src/a", allowed, "clean\n", expected_hash=sha(secret.encode()))
    undone = undid(one, allowed, made)["request_id"]
    again = undid(one, allowed, undone)["request_id"]
    told = undid(one, allowed, again)

    assert told["error_code"] == "POLICY_VIOLATION"
    assert files(workspace) == {"src/a": "clean\n"}


def forged(root, request_id, path, plan_hash, before):
    """A change in the record that its plan would not allow, as an older Kaiza may have made it."""
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
    one = agent()
    (workspace / path).parent.mkdir(exist_ok=True)
    (workspace / path).write_text("before\n")
    kept = wrote(one, "src/b", allowed, "before\n", phase_id="ONE")
    undid(one, allowed, kept)
    (workspace / path).write_text("after\n")
    forged(workspace, "older", path, allowed, sha(b"before\n"))
    told = undid(one, allowed, "older", phase_id="ONE")

    assert (told["changes"], told["kept"]) == ([], [{"path": path, "reason": "protected"}])
    assert (workspace / path).read_text() == "after\n"


def crashed(root, *asked):
    """Change files in a server that is gone between the last file and the outcome; the names of the changes."""
    child = os.fork()
    if child == 0:
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        change.record_outcome = lambda *_, **__: os._exit(0)
        app.call(*asked)
        os._exit(1)
    os.waitpid(child, 0)
    return [one["request_id"] for one in records(root) if one["kind"] == "intent"]


def test_a_change_completed_by_recovery_belongs_to_its_plan(agent, workspace):
    allowed, other = plan(workspace, scope=SCOPE), plan(workspace, "PLAN-2", scope=SCOPE)
    (made,) = crashed(workspace, "write_file", {"path": "src/a", "content": "x\n", "plan_hash": allowed})
    one = agent()
    told = undid(one, other, made, dry_run=True)
    undone = undid(one, allowed, made)

    assert one.begun["recovered"][0]["result"] == "applied"
    assert told["error_code"] == "PLAN_SCOPE_VIOLATION"
    assert [each["operation"] for each in undone["changes"]] == ["delete"]


def test_a_change_completed_by_recovery_belongs_to_its_session(begun, workspace):
    (workspace / "src").mkdir()
    allowed = plan(workspace, scope=SCOPE)
    session = begun.call("session_status", {}).output["session_id"]
    asked = {"path": "src/a", "content": "x\n", "plan_hash": allowed, "session_id": session}
    crashed(workspace, "write_file", asked)
    begun.call("begin_session", {"role": "WINDSURF"})
    told = begun.call("undo_changes", {"all_of_session": True, "plan_hash": allowed, "session_id": session}).output

    assert [one["operation"] for one in told["changes"]] == ["delete"]


def test_an_undo_completed_by_recovery_counts_as_an_undo(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 1}\n")
    one = agent()
    made = wrote(one, "src/a", limited)
    one.close()
    *_, undone = crashed(workspace, "undo_changes", {"request_ids": [made], "plan_hash": limited})
    later = agent()
    told = undid(later, limited, undone)
    (workspace / "src/a").write_text("x\n")
    again = undid(later, limited, made)

    assert later.begun["recovered"][0]["result"] == "applied"
    assert [each["invariant_id"] for each in (told, again)] == ["PLAN_LIMIT_REACHED"] * 2


def test_a_persons_undo_completed_by_recovery_counts_as_a_persons(agent, workspace):
    allowed = plan(workspace, scope=SCOPE)
    one = agent()
    made = wrote(one, "src/a", allowed)
    undone = undid(one, allowed, made)["request_id"]
    undid(one, allowed, undone)
    child = os.fork()
    if child == 0:
        really = TransactionManager.apply
        TransactionManager.apply = lambda *told: (really(*told), os._exit(0))
        os.chdir(workspace)
        dispatch.main(["undo", "--request", made, "--yes", "--json"])
        os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    later = agent()
    told = [undid(later, allowed, each) for each in (undone, made)]
    persons = later.begun["recovered"][0]["request_id"]

    assert [each["changes"] for each in told] == [[], []]
    assert told[0]["kept"] == [{"path": "src/a", "reason": "taken_back"}]
    assert undid(later, allowed, persons)["error_code"] == "INVALID_INPUT_VALUE"
    assert files(workspace) == {}


def test_an_undo_is_refused_if_another_process_undid_and_redid_the_change_first(workspace, monkeypatch):
    (workspace / "src").mkdir()
    plan_hash = plan(workspace, scope=SCOPE)
    one, other = App([os.path.realpath(workspace)]), App([os.path.realpath(workspace)])
    for each in (one, other):
        each.call("begin_session", {"role": "WINDSURF"})
    made = one.call("write_file", {"path": "src/a", "content": "x\n", "plan_hash": plan_hash}).output["request_id"]
    really = TransactionManager.prepare

    def quicker(committer, *arguments, **options):
        monkeypatch.setattr(TransactionManager, "prepare", really)
        undone = other.call("undo_changes", {"request_ids": [made], "plan_hash": plan_hash}).output["request_id"]
        again = other.call("undo_changes", {"request_ids": [undone], "plan_hash": plan_hash})
        assert again.envelope is None
        return really(committer, *arguments, **options)

    monkeypatch.setattr(TransactionManager, "prepare", quicker)
    late = one.call("undo_changes", {"request_ids": [made], "plan_hash": plan_hash}).envelope
    kept = files(workspace)
    last = one.call("undo_changes", {"request_ids": [made], "plan_hash": plan_hash})
    for each in (one, other):
        each.close()

    assert late["error_code"] == "HASH_MISMATCH"
    assert kept == {"src/a": "x\n"}
    assert last.envelope is None
