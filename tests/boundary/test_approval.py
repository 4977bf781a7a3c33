"""A person decides, seen from outside: what is approved, taken back, frozen and locked binds every process at once."""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from agents import Agent, edit, hash_of, person, plan, sha, word
from scenes import make_ready, records

from kaiza.boundary import current_timestamp
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log

GRANTS = (
    "approve_plan",
    "plan_approve",
    "unlock",
    "session_unlock",
    "thaw",
    "unfreeze",
    "grant",
    "audit_accept",
    "undo",
)


@pytest.fixture
def agent(workspace):
    (workspace / "src").mkdir()
    begun = []

    def begin(role="WINDSURF"):
        begun.append(Agent(workspace, role))
        return begun[-1]

    yield begin
    for one in begun:
        one.close()


def test_an_approval_edited_into_a_plan_holds_from_the_next_call_and_is_recorded_once(agent, workspace):
    draft = plan(workspace, status="DRAFT")
    one = agent()
    before = one.write("src/1", draft)
    approved = edit(workspace, "status: DRAFT", "status: APPROVED")
    after = [one.write("src/1", approved), one.write("src/2", approved)]
    (seal,) = [each for each in records(workspace) if each["kind"] == "plan"]

    assert (before, after) == ("PLAN_NOT_APPROVED", ["ok", "ok"])
    assert (seal["plan_id"], seal["plan_hash"], seal["detail"]["how"]) == ("PLAN-1", approved, "edited")


def test_a_plan_edited_after_its_first_use_is_refused_until_a_person_approves_it_again(agent, workspace):
    old = plan(workspace)
    one, other = agent(), agent()
    used = one.write("src/1", old)
    new = edit(workspace, "# Why", "# why")
    refused = [each.write("src/2", plan_hash) for each in (one, other) for plan_hash in (old, new)]
    told = other.call("write_file", path="src/2", content="x", plan_hash=new)
    approved = word(workspace, "PLAN-1", "plan", "approve", "PLAN-1", "--as", "Ann")
    after = [one.write("src/2", old), one.write("src/2", new), one.write("src/2", hash_of(workspace))]

    assert (used, refused) == ("ok", ["PLAN_NOT_APPROVED"] * 4)
    assert told["invariant_id"] == "PLAN_CHANGED_AFTER_APPROVAL"
    assert (told["cause"]["approved_hash"], told["cause"]["plan_hash"]) == (old, new)
    assert approved == 0
    assert "ok" not in after[:2]
    assert after[2] == "ok"


@pytest.mark.parametrize("how", ["command", "edited"])
def test_a_revoked_plan_is_refused_from_the_next_call(agent, workspace, how):
    approved = plan(workspace)
    one, other = agent(), agent()
    assert one.write("src/1", approved) == "ok"
    if how == "command":
        assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    else:
        edit(workspace, "status: APPROVED", "status: REVOKED")
    revoked = hash_of(workspace)

    assert [each.write("src/2", each_hash) for each in (one, other) for each_hash in (approved, revoked)] == [
        "PLAN_NOT_APPROVED"
    ] * 4
    assert not (workspace / "src/2").exists()


def test_restoring_the_old_bytes_of_a_revoked_plan_does_not_approve_it(agent, workspace):
    plan(workspace, status="DRAFT")
    one = agent()
    assert word(workspace, "PLAN-1", "plan", "approve", "PLAN-1") == 0
    approved, before = hash_of(workspace), (workspace / "plans/PLAN-1.md").read_bytes()
    assert one.write("src/1", approved) == "ok"
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    (workspace / "plans/PLAN-1.md").write_bytes(before)

    assert one.write("src/2", approved) == "PLAN_NOT_APPROVED"
    assert agent().write("src/2", approved) == "PLAN_NOT_APPROVED"


def test_an_expired_plan_is_refused(agent, workspace):
    expired = plan(workspace, more='expires: "2020-01-01T00:00:00Z"\n')

    assert agent().write("src/1", expired) == "PLAN_NOT_APPROVED"


def test_with_approval_by_command_an_edited_status_does_not_approve(agent, workspace):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    edited = plan(workspace)
    one = agent()
    before = one.write("src/1", edited)
    approved = word(workspace, "PLAN-1", "plan", "approve", "PLAN-1")

    assert (before, approved) == ("PLAN_NOT_APPROVED", 0)
    assert one.write("src/1", edited) != "ok"
    assert one.write("src/1", hash_of(workspace)) == "ok"


def every_change():
    here = sha(b"x\n")
    patch = "--- /dev/null\n+++ b/src/new\n@@ -0,0 +1 @@\n+x\n"
    return [
        ("write_file", {"path": "src/new", "content": "x\n"}),
        ("edit_file", {"path": "src/a", "expected_hash": here, "edits": [{"old_text": "x", "new_text": "y"}]}),
        ("apply_patch", {"patch": patch}),
        ("move_file", {"source": "src/a", "destination": "src/b", "expected_hash": here}),
        ("delete_file", {"path": "src/a", "expected_hash": here}),
        ("undo_changes", {"all_of_session": True}),
    ]


def refusals(one, plan_hash):
    """What every kind of change comes to now."""
    return {one.code(tool, plan_hash=plan_hash, **asked) for tool, asked in every_change()}


def test_a_freeze_stops_changes_in_every_session_of_every_process_but_not_reads(agent, workspace):
    approved = plan(workspace, scope='{modify: ["src/**"], create: ["src/**"], delete: ["src/**"]}')
    one, other = agent(), agent()
    assert one.write("src/a", approved) == "ok"
    assert person(workspace, "freeze", "look into it") == 0
    late = agent()
    refused = [refusals(each, approved) for each in (one, other, late)]
    told = other.call("write_file", path="src/new", content="x", plan_hash=approved)

    assert refused == [{"POLICY_VIOLATION"}] * 3
    assert told["invariant_id"] == "WORKSPACE_FROZEN"
    assert sorted(os.listdir(workspace / "src")) == ["a"]
    assert [each.code("read_file", path="src/a") for each in (one, other, late)] == ["ok"] * 3
    assert late.call("session_status")["state"] == "active"
    assert word(workspace, "thaw", "thaw") == 0
    assert [each.write(f"src/{name}", approved) for name, each in zip("123", (one, other, late), strict=True)] == [
        "ok"
    ] * 3


DRAFT = """---
kaiza_plan: 1
plan_id: {plan_id}
title: A plan
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/**"]}}
---
# Why
"""


def test_no_draft_is_saved_while_the_workspace_is_frozen_or_the_role_locked(agent, workspace):
    planner = agent("ANTIGRAVITY")

    def save(plan_id):
        return planner.call("save_plan", plan_id=plan_id, content=DRAFT.format(plan_id=plan_id))

    saved = save("PLAN-1").get("error_code")
    assert person(workspace, "freeze", "look into it") == 0
    frozen = save("PLAN-2")
    assert word(workspace, "thaw", "thaw") == 0
    members = {"tool_name": "write_file", "role": "ANTIGRAVITY", "outcome": "error", "request_id": "r"}
    members |= {"error_code": "OUTSIDE_WORKSPACE", "timestamp": current_timestamp()}
    log = audit_log.AuditLog(os.path.realpath(workspace), follow=lambda _record: None)
    log.append(lambda: record.new_body("call", **members), durable=True)
    log.close()
    locked = save("PLAN-3")

    assert saved is None
    assert (frozen["error_code"], frozen["invariant_id"]) == ("POLICY_VIOLATION", "WORKSPACE_FROZEN")
    assert locked["error_code"] == "SESSION_LOCKED"
    assert os.listdir(workspace / "plans") == ["PLAN-1.md"]
    assert planner.call("write_report", title="t", content="c")["state"] == "active"
    assert save("PLAN-3").get("error_code") is None


def test_no_change_of_four_busy_processes_begins_after_the_freeze(agent, workspace):
    approved = plan(workspace)
    busy = [agent() for _ in range(4)]
    enough = threading.Event()

    def work(number, one):
        for turn in range(10_000):
            if one.write(f"src/{number}-{turn}", approved) != "ok":
                return
            enough.set()

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(busy)]
    for thread in threads:
        thread.start()
    enough.wait(20)
    frozen = person(workspace, "freeze", "now")
    for thread in threads:
        thread.join()
    told = records(workspace)
    (freeze,) = [one["seq"] for one in told if one["kind"] == "person"]
    intents = [one for one in told if one["kind"] == "intent"]

    assert frozen == 0
    assert max(one["seq"] for one in intents) < freeze
    assert sorted(os.listdir(workspace / "src")) == sorted(one["changes"][0]["path"][4:] for one in intents)


def test_a_lock_holds_in_every_process_and_reports_release_it_three_times(agent, workspace):
    approved = plan(workspace)
    one, other = agent(), agent()
    states = []
    for _ in range(4):
        assert one.write("elsewhere", approved) == "PLAN_SCOPE_VIOLATION"
        assert [each.write("src/a", approved) for each in (one, other)] == ["SESSION_LOCKED"] * 2
        assert other.code("list_directory", path="src") == "ok"
        states.append(other.call("write_report", title="t", content="c")["state"])
    late = agent()

    assert states == ["active"] * 3 + ["locked"]
    assert [each.write("src/a", approved) for each in (one, other, late)] == ["SESSION_LOCKED"] * 3
    assert word(workspace, "unlock", "session", "unlock") == 0
    assert [each.write(f"src/{name}", approved) for name, each in zip("123", (one, other, late), strict=True)] == [
        "ok"
    ] * 3


def test_with_release_by_person_a_report_does_not_unlock(agent, workspace):
    (workspace / "kaiza.toml").write_text('[lock]\nrelease = "person"\n')
    approved = plan(workspace)
    one = agent()
    one.write("elsewhere", approved)

    assert one.call("write_report", title="t", content="c")["state"] == "locked"
    assert one.write("src/a", approved) == "SESSION_LOCKED"


def git(root, *words):
    subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True)


def forget(workspace, what):
    """Delete what only indexes the record, or everything that git does not know."""
    if what == "index":
        for index in Path(os.environ["XDG_STATE_HOME"]).rglob("index.json*"):
            index.unlink()
    elif what == "kaiza's own":
        shutil.rmtree(workspace / ".kaiza", ignore_errors=True)
    else:
        git(workspace, "clean", "-fdxq")


@pytest.mark.parametrize("ignored", [True, False])
@pytest.mark.parametrize("what", ["index", "kaiza's own", "git clean"])
@pytest.mark.parametrize("stop", ["freeze", "lock", "limit", "revoked"])
def test_deleting_snapshots_kaizas_directory_or_untracked_files_does_not_unlock_or_thaw(
    agent, workspace, stop, what, ignored
):
    if what != "git clean" and not ignored:
        return
    if ignored:
        (workspace / "audit/.gitignore").write_text("*\n!.gitignore\n")
    approved = plan(workspace, more="limits: {files: 1}\n")
    git(workspace, "init", "-q")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "all")
    one = agent()
    assert one.write("src/a", approved) == "ok"
    if stop == "lock":
        one.write("elsewhere", approved)
    elif stop == "freeze":
        assert person(workspace, "freeze", "stop") == 0
    elif stop == "revoked":
        assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    forget(workspace, what)
    late = agent()
    refused = [each.code("write_file", path="src/b", content="x", plan_hash=approved) for each in (one, late)]

    assert "ok" not in refused
    assert not (workspace / "src/b").exists()


def test_no_tool_on_the_wire_approves_unlocks_thaws_or_grants(agent, workspace):
    one, planner = agent(), agent("ANTIGRAVITY")
    offered = {tool["name"] for each in (one, planner) for tool in each.ask("tools/list")["tools"]}
    asked = [one.call(name, plan_id="PLAN-1", role="WINDSURF") for name in GRANTS]
    recorded = [(each["tool_name"], each["error_code"]) for each in records(workspace)][-len(GRANTS) :]

    assert offered
    assert not [name for name in offered if re.search("approv|unlock|thaw|freez|grant|revoke|accept|permit", name)]
    assert {told["error_code"] for told in asked} == {"TOOL_NOT_FOUND"}
    assert recorded == [(name, "TOOL_NOT_FOUND") for name in GRANTS]


def test_decisions_of_a_person_are_recorded_with_their_name(agent, workspace):
    plan(workspace, status="DRAFT")
    one = agent()
    assert word(workspace, "PLAN-1", "plan", "approve", "PLAN-1", "--as", "Ann") == 0
    one.write("elsewhere", hash_of(workspace))
    assert word(workspace, "unlock", "session", "unlock", "--as", "Ann") == 0
    assert person(workspace, "freeze", "stop", "--as", "Ann") == 0
    assert word(workspace, "thaw", "thaw", "--as", "Ann") == 0
    assert person(workspace, "plan", "revoke", "PLAN-1", "--as", "Ann") == 0
    told = [one["detail"] for one in records(workspace) if one["kind"] == "person"]

    assert [one["action"] for one in told] == ["approve", "unlock", "freeze", "thaw", "revoke"]
    assert {one["person"] for one in told} == {"Ann"}
    assert (
        json.loads(
            subprocess.run(
                [sys.executable, "-m", "kaiza", "audit", "verify", "--json"],
                cwd=workspace,
                capture_output=True,
                check=True,
            ).stdout
        )["verdict"]
        == "intact"
    )


def broken_invariants(root):
    """The id of each invariant that an agent runs into in a workspace of its own."""
    (make_ready(root) / ".env").write_text("TOKEN=1")
    limited = plan(root, more="limits: {files: 1}\n")
    other = plan(root, "PLAN-2")
    one = Agent(root)
    asked = {"path": "src/b", "content": "x\n"}
    assert one.write("src/a", limited) == "ok"
    told = [one.call("read_file", path=".env"), one.call("write_file", **asked, plan_hash=limited)]
    assert one.write("src/c", other) == "ok"
    (root / "plans/PLAN-2.md").write_text((root / "plans/PLAN-2.md").read_text() + "More.\n")
    told.append(one.call("write_file", **asked, plan_hash=other))
    assert person(root, "freeze", "stop") == 0
    told.append(one.call("write_file", **asked, plan_hash=limited))
    one.close()
    one = Agent(make_ready(root / "another"))
    told.append(one.call("write_file", path="AGENTS.md", content="x\n", plan_hash=plan(root / "another")))
    one.close()
    return [each["invariant_id"] for each in told]


@pytest.mark.rows("S1-62")
def test_invariant_ids_are_the_same_in_every_run(tmp_path):
    first, second = broken_invariants(tmp_path / "one"), broken_invariants(tmp_path / "two")

    assert first == second
    assert first == [
        "READ_PROTECTED",
        "PLAN_LIMIT_REACHED",
        "PLAN_CHANGED_AFTER_APPROVAL",
        "WORKSPACE_FROZEN",
        "CONTROL_PLANE_PROTECTED",
    ]
