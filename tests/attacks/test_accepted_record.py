"""After a person accepts a damaged log: locks, limits, revocations and seals from before remain, in every process."""

import os
from pathlib import Path

import pytest
from agents import Agent, LocalAgent, confirm, edit, hash_of, person, plan, several
from children import run_child
from scenes import records

from kaiza.app import App
from kaiza.boundary import change
from kaiza.domain.audit import record

SCOPE = '{modify: ["src/**"], create: ["src/**"]}'


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    with several(workspace, LocalAgent) as begin:
        yield begin


def log_of(root):
    return root / "audit" / "audit-log.jsonl"


def snapshots():
    return list(Path(os.environ["XDG_STATE_HOME"]).rglob("index.json*"))


def edited(root):
    """One record is changed but readable; the snapshot outside the workspace is intact."""
    log_of(root).write_bytes(log_of(root).read_bytes().replace(b'"WINDSURF"', b'"WINDSURE"', 1))


def edited_without_snapshot(root):
    edited(root)
    for one in snapshots():
        one.unlink()


def edited_with_forged_snapshot(root):
    edited(root)
    for one in snapshots():
        one.write_bytes(b"0" * 64 + one.read_bytes()[64:])


def emptied(root):
    log_of(root).write_bytes(b"")


def deleted(root):
    log_of(root).unlink()


DAMAGES = [edited, edited_without_snapshot, emptied, deleted]


def accept(root):
    assert confirm(root, "audit", "accept", "--reason", "compared", "--as", "Ada") == 0
    assert person(root, "audit", "verify") == 0


@pytest.fixture
def accepted(workspace):
    """Closes the agents, damages the log and has a person accept it."""

    def damage_and_accept(damage, *agents):
        for one in agents:
            one.close()
        damage(workspace)
        accept(workspace)

    return damage_and_accept


def try_write(one, plan_hash, path="src/new"):
    """Error code and invariant of a write, or ("ok", None)."""
    output = one.call("write_file", path=path, content="x\n", plan_hash=plan_hash)
    return output.get("error_code", "ok"), output.get("invariant_id")


def restrict(root, one):
    """Forbid in every way that there is; the hashes of the plans."""
    limited = plan(root, scope=SCOPE, more="limits: {files: 2, operations: 3}\n")
    revoked, edited_plan = plan(root, "PLAN-2"), plan(root, "PLAN-3", scope='{create: ["src/**"]}')
    plan(root, "PLAN-4", status="DRAFT")
    assert [one.write(f"src/{name}", limited) for name in "ab"] == ["ok", "ok"]
    assert [one.write("src/c", revoked), one.write("src/d", edited_plan)] == ["ok", "ok"]
    for state in ("active", "active", "active", "locked"):
        assert one.write("elsewhere", edited_plan) == "PLAN_SCOPE_VIOLATION"
        assert one.call("write_report", title="t", content="c")["state"] == state
    before = (root / "plans/PLAN-2.md").read_bytes()
    for words in (("freeze", "wait"), ("plan", "revoke", "PLAN-2"), ("plan", "reject", "PLAN-4")):
        assert person(root, *words) == 0
    (root / "plans/PLAN-2.md").write_bytes(before)
    return limited, revoked, edit(root, "src/**", "**", "PLAN-3"), plan(root, "PLAN-4")


@pytest.mark.parametrize("damage", DAMAGES)
def test_what_was_forbidden_stays_forbidden(agent, workspace, accepted, damage):
    one = agent()
    limited, revoked, wider, rejected = restrict(workspace, one)
    accepted(damage, one)
    later = agent()
    frozen = try_write(later, limited)
    assert confirm(workspace, "thaw") == 0
    locked = try_write(later, limited)[0], later.call("write_report", title="t", content="c")["state"]
    assert confirm(workspace, "session", "unlock") == 0
    use = next(use for use in later.call("session_status")["plan_use"] if use["plan_id"] == "PLAN-1")

    assert frozen == ("POLICY_VIOLATION", "WORKSPACE_FROZEN")
    assert locked == ("SESSION_LOCKED", "locked")
    assert (use["files"], use["operations"], use["lines"], use["bytes"]) == (2, 2, 2, 4)
    assert try_write(later, limited) == ("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")
    assert try_write(later, revoked) == try_write(later, rejected) == ("PLAN_NOT_APPROVED", "PLAN_WITHDRAWN")
    assert try_write(later, wider, "elsewhere") == ("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")
    assert confirm(workspace, "plan", "approve", "PLAN-2") == 0
    assert try_write(later, hash_of(workspace, "PLAN-2")) == ("ok", None)


@pytest.mark.parametrize("damage", [*DAMAGES, edited_with_forged_snapshot])
def test_an_approval_by_command_is_kept_only_if_the_snapshot_has_it(agent, workspace, accepted, damage):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    plan(workspace, status="DRAFT")
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    one = agent()
    assert one.write("src/a", hash_of(workspace)) == "ok"
    accepted(damage, one)
    expected = "PLAN_NOT_APPROVED" if damage in (edited_without_snapshot, edited_with_forged_snapshot) else "ok"

    assert agent().write("src/new", hash_of(workspace)) == expected


def test_if_two_accounts_of_an_approval_differ_a_person_must_approve_again(agent, workspace, accepted):
    plan(workspace, status="DRAFT")
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    one = agent()
    assert one.write("src/a", hash_of(workspace)) == "ok"
    old, approved = hash_of(workspace), (workspace / "plans/PLAN-1.md").read_bytes()
    new = edit(workspace, "# Why", "# why")

    def forged(root):
        log_of(root).write_bytes(log_of(root).read_bytes().replace(old.encode(), new.encode()))

    accepted(forged, one)
    later = agent()
    results = [try_write(later, new)]
    (workspace / "plans/PLAN-1.md").write_bytes(approved)
    results.append(try_write(later, old))

    assert results == [("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")] * 2
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    assert try_write(later, hash_of(workspace)) == ("ok", None)


def test_a_running_server_keeps_the_limits_it_knew(agent, workspace):
    limited = plan(workspace, scope=SCOPE, more="limits: {files: 1}\n")
    one = agent()
    assert one.write("src/a", limited) == "ok"
    edited(workspace)
    assert person(workspace, "audit", "verify") == 1
    assert one.write("src/b", limited) == "SELF_AUDIT_FAILURE"
    accept(workspace)

    assert try_write(one, limited) == try_write(agent(), limited) == ("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")


def crash_before_outcome(root, approved):
    """Kill a server after the last file of a change and before its outcome is recorded; return the request id."""

    def write_and_die():
        app = App([os.path.realpath(root)])
        app.call("begin_session", {"role": "WINDSURF"})
        (opened,) = app.services.workspaces.values()
        change.record_outcome = lambda *_, **__: (opened.save_snapshot("2026-11-18T09:00:00.000Z"), os._exit(0))
        app.call("write_file", {"path": "src/a", "content": "x\n", "plan_hash": approved})

    assert run_child(write_and_die) == 0
    return records(root)[-1]["request_id"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_interrupted_change_is_recovered_recorded_and_can_be_undone(agent, workspace, accepted, damage):
    limited = plan(workspace, scope=SCOPE, more="limits: {files: 1}\n")
    request_id = crash_before_outcome(workspace, limited)
    accepted(damage)
    one = agent()
    (recovery,) = [each for each in records(workspace) if each["kind"] == "recovery"]
    result = try_write(one, limited)
    undone = one.call("undo_changes", request_ids=[request_id], plan_hash=limited)
    recovered = (recovery["request_id"], recovery["changes"][0]["path"], recovery["plan_hash"])

    assert [(each["request_id"], each["result"]) for each in one.begun["recovered"]] == [(request_id, "applied")]
    assert recovered == (request_id, "src/a", limited)
    assert result == ("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")
    assert [each["operation"] for each in undone["changes"]] == ["delete"]


def test_a_change_with_a_recorded_outcome_is_not_recovered_again(agent, workspace, accepted):
    limited = plan(workspace, scope=SCOPE, more="limits: {operations: 1}\n")
    crash_before_outcome(workspace, limited)
    (snapshot,) = [one for one in snapshots() if one.name == "index.json"]
    old_snapshot = snapshot.read_bytes()
    one = agent()
    assert [each["result"] for each in one.begun["recovered"]] == ["applied"]
    one.close()
    (workspace / "src/a").unlink()
    snapshot.write_bytes(old_snapshot)
    accepted(edited)
    later = agent()

    assert later.begun["recovered"] == []
    assert try_write(later, limited) == ("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")


def test_state_too_large_for_one_record_is_split_into_several(agent, workspace, accepted):
    limited = plan(workspace, scope=SCOPE, more="limits: {files: 700}\n")
    one = agent()
    names = [f"src/{number:03d}-{'x' * 200}/{'y' * 200}" for number in range(600)]
    for at in range(0, 600, 100):
        patch = "".join(f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n" for name in names[at : at + 100])
        assert one.code("apply_patch", patch=patch, plan_hash=limited) == "ok"
    accepted(edited, one)
    accepting = [each for each in records(workspace) if each["kind"] == "person"]
    (use,) = agent().call("session_status")["plan_use"]

    assert len(accepting) > 1
    assert {each["detail"]["action"] for each in accepting} == {"accept"}
    assert [each["seq"] for each in accepting] == list(range(1, len(accepting) + 1))
    assert use["files"] == 600


def test_usage_since_the_snapshot_is_added_although_older_records_are_lost(agent, workspace, accepted):
    limited = plan(workspace, more="limits: {operations: 4}\n")
    one = agent()
    assert [one.write(f"src/{name}", limited) for name in "ab"] == ["ok", "ok"]
    one.close()
    other = Agent(workspace)
    assert [other.write(f"src/{name}", limited) for name in "cd"] == ["ok", "ok"]
    other.door.process.kill()

    def shortened(root):
        lines = log_of(root).read_bytes().splitlines(keepends=True)
        sessions = [index for index, line in enumerate(lines) if b'"tool_name":"begin_session"' in line]
        log_of(root).write_bytes(b"".join(lines[sessions[1] :]))

    accepted(shortened, other)

    assert try_write(agent(), limited) == ("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")


@pytest.mark.parametrize("has_snapshot", [True, False])
def test_a_seal_that_only_the_damaged_log_has_approves_nothing(agent, workspace, accepted, has_snapshot):
    one = agent()
    assert one.write("src/a", plan(workspace, scope=SCOPE)) == "ok"

    def pull(root):
        """What git does to an ignored file that a commit contains: replaces it without a question."""
        path = root / "plans/PLAN-2.md"
        path.write_text((root / "plans/PLAN-1.md").read_text().replace("PLAN-1", "PLAN-2"))
        seal = record.new_body(
            "plan",
            timestamp="2026-11-18T09:00:00.000Z",
            plan_id="PLAN-2",
            plan_hash=hash_of(root, "PLAN-2"),
            detail={"how": "edited"},
        )
        log_of(root).write_bytes(record.serialize_and_hash(seal, 1, record.GENESIS)[0])
        for each in () if has_snapshot else snapshots():
            each.unlink()

    accepted(pull, one)

    assert try_write(agent(), hash_of(workspace, "PLAN-2")) == ("PLAN_NOT_APPROVED", "PLAN_ARRIVED_APPROVED")
    assert agent().write("src/b", hash_of(workspace, "PLAN-1")) == "ok"
