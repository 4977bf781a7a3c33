"""Approval, revocation, freeze and lock, tested with server processes: a decision holds in all of them at once."""

import os
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest
from agents import Agent, LocalAgent, confirm, edit, hash_of, person, plan, sha
from scenes import make_ready, records

from kaiza.clock import current_timestamp
from kaiza.domain.audit import record
from kaiza.store.audit import log as audit_log

NAMES_OF_GRANTS = (
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
    agents = []

    def begin(role="WINDSURF"):
        agents.append(Agent(workspace, role))
        return agents[-1]

    yield begin
    for each in agents:
        each.close()


def test_an_approval_edited_into_a_plan_holds_from_the_next_call_and_is_recorded_once(agent, workspace):
    draft = plan(workspace, status="DRAFT")
    executor = agent()
    before = executor.write("src/1", draft)
    approved = edit(workspace, "status: DRAFT", "status: APPROVED")
    after = [executor.write("src/1", approved), executor.write("src/2", approved)]
    (seal,) = [each for each in records(workspace) if each["kind"] == "plan"]

    assert (before, after) == ("PLAN_NOT_APPROVED", ["ok", "ok"])
    assert (seal["plan_id"], seal["plan_hash"], seal["detail"]["how"]) == ("PLAN-1", approved, "edited")


def test_a_plan_edited_after_its_first_use_is_refused_until_a_person_approves_it_again(agent, workspace):
    old = plan(workspace)
    first_agent, other_agent = agent(), agent()
    used = first_agent.write("src/1", old)
    new = edit(workspace, "# Why", "# why")
    refused = [each.write("src/2", plan_hash) for each in (first_agent, other_agent) for plan_hash in (old, new)]
    envelope = other_agent.call("write_file", path="src/2", content="x", plan_hash=new)
    approved = confirm(workspace, "plan", "approve", "PLAN-1", "--as", "Ann")
    after = [first_agent.write("src/2", old), first_agent.write("src/2", new)]

    assert (used, refused) == ("ok", ["PLAN_NOT_APPROVED"] * 4)
    assert envelope["invariant_id"] == "PLAN_CHANGED_AFTER_APPROVAL"
    assert (envelope["cause"]["approved_hash"], envelope["cause"]["plan_hash"]) == (old, new)
    assert approved == 0
    assert (after[0] != "ok", after[1]) == (True, "ok")
    assert hash_of(workspace) == new


@pytest.mark.parametrize("how", ["command", "edited"])
def test_a_revoked_plan_is_refused_from_the_next_call(agent, workspace, how):
    approved = plan(workspace)
    first_agent, other_agent = agent(), agent()
    assert first_agent.write("src/1", approved) == "ok"
    if how == "command":
        assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    else:
        edit(workspace, "status: APPROVED", "status: REVOKED")
    revoked = hash_of(workspace)

    assert [
        each.write("src/2", each_hash) for each in (first_agent, other_agent) for each_hash in (approved, revoked)
    ] == ["PLAN_NOT_APPROVED"] * 4
    assert not (workspace / "src/2").exists()


def test_with_approval_by_command_an_edited_status_does_not_approve(agent, workspace):
    (workspace / "kaiza.toml").write_text('[approval]\nrequire = "command"\n')
    edited = plan(workspace)
    executor = agent()
    before = executor.write("src/1", edited)
    approved = confirm(workspace, "plan", "approve", "PLAN-1")

    assert (before, approved) == ("PLAN_NOT_APPROVED", 0)
    assert hash_of(workspace) == edited
    assert executor.write("src/1", edited) == "ok"


def every_change():
    """A call of each tool that changes files, with its arguments."""
    current_hash = sha(b"x\n")
    patch = "--- /dev/null\n+++ b/src/new\n@@ -0,0 +1 @@\n+x\n"
    return [
        ("write_file", {"path": "src/new", "content": "x\n"}),
        ("edit_file", {"path": "src/a", "expected_hash": current_hash, "edits": [{"old_text": "x", "new_text": "y"}]}),
        ("apply_patch", {"patch": patch}),
        ("move_file", {"source": "src/a", "destination": "src/b", "expected_hash": current_hash}),
        ("delete_file", {"path": "src/a", "expected_hash": current_hash}),
        ("undo_changes", {"all_of_session": True}),
    ]


def refusals(agent, plan_hash):
    """Error codes of every tool that changes files."""
    return {agent.code(tool, plan_hash=plan_hash, **arguments) for tool, arguments in every_change()}


def test_a_freeze_stops_changes_in_every_session_of_every_process_but_not_reads(agent, workspace):
    approved = plan(workspace, scope='{modify: ["src/**"], create: ["src/**"], delete: ["src/**"]}')
    first_agent, other_agent = agent(), agent()
    assert first_agent.write("src/a", approved) == "ok"
    assert person(workspace, "freeze", "look into it") == 0
    late = agent()
    refused = [refusals(each, approved) for each in (first_agent, other_agent, late)]
    envelope = other_agent.call("write_file", path="src/new", content="x", plan_hash=approved)

    assert refused == [{"POLICY_VIOLATION"}] * 3
    assert envelope["invariant_id"] == "WORKSPACE_FROZEN"
    assert sorted(os.listdir(workspace / "src")) == ["a"]
    assert [each.code("read_file", path="src/a") for each in (first_agent, other_agent, late)] == ["ok"] * 3
    assert late.call("session_status")["state"] == "active"
    assert confirm(workspace, "thaw") == 0
    assert [
        each.write(f"src/{name}", approved) for name, each in zip("123", (first_agent, other_agent, late), strict=True)
    ] == ["ok"] * 3


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
    assert confirm(workspace, "thaw") == 0
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
    has_written = threading.Event()

    def write_until_refused(number, writer):
        for turn in range(10_000):
            if writer.write(f"src/{number}-{turn}", approved) != "ok":
                return
            has_written.set()

    threads = [threading.Thread(target=write_until_refused, args=pair) for pair in enumerate(busy)]
    for thread in threads:
        thread.start()
    has_written.wait(20)
    frozen = person(workspace, "freeze", "now")
    for thread in threads:
        thread.join()
    log = records(workspace)
    (freeze,) = [entry["seq"] for entry in log if entry["kind"] == "person"]
    intents = [entry for entry in log if entry["kind"] == "intent"]

    assert frozen == 0
    assert max(intent["seq"] for intent in intents) < freeze
    assert sorted(os.listdir(workspace / "src")) == sorted(intent["changes"][0]["path"][4:] for intent in intents)


def test_a_lock_holds_in_every_process_and_reports_release_it_three_times(agent, workspace):
    approved = plan(workspace)
    first_agent, other_agent = agent(), agent()
    states = []
    for _ in range(4):
        assert first_agent.write("elsewhere", approved) == "PLAN_SCOPE_VIOLATION"
        assert [each.write("src/a", approved) for each in (first_agent, other_agent)] == ["SESSION_LOCKED"] * 2
        assert other_agent.code("list_directory", path="src") == "ok"
        states.append(other_agent.call("write_report", title="t", content="c")["state"])
    late = agent()

    assert states == ["active"] * 3 + ["locked"]
    assert [each.write("src/a", approved) for each in (first_agent, other_agent, late)] == ["SESSION_LOCKED"] * 3
    assert confirm(workspace, "session", "unlock") == 0
    assert [
        each.write(f"src/{name}", approved) for name, each in zip("123", (first_agent, other_agent, late), strict=True)
    ] == ["ok"] * 3


def test_with_release_by_person_a_report_does_not_unlock(agent, workspace):
    (workspace / "kaiza.toml").write_text('[lock]\nrelease = "person"\n')
    approved = plan(workspace)
    executor = agent()
    executor.write("elsewhere", approved)

    assert executor.call("write_report", title="t", content="c")["state"] == "locked"
    assert executor.write("src/a", approved) == "SESSION_LOCKED"


def git(root, *arguments):
    subprocess.run(["git", "-C", str(root), "-c", "user.name=a", "-c", "user.email=a@b", *arguments], check=True)


def delete_untracked(workspace, what):
    """Delete the snapshots of the log, Kaiza's directory, or everything that git does not track."""
    if what == "snapshots":
        for snapshot in Path(os.environ["XDG_STATE_HOME"]).rglob("index.json*"):
            snapshot.unlink()
    elif what == "kaiza's own":
        shutil.rmtree(workspace / ".kaiza", ignore_errors=True)
    else:
        git(workspace, "clean", "-fdxq")


@pytest.mark.parametrize("what", ["snapshots", "kaiza's own", "git clean"])
@pytest.mark.parametrize("stop", ["freeze", "lock", "limit", "revoked"])
def test_deleting_snapshots_kaizas_directory_or_untracked_files_does_not_unlock_or_thaw(agent, workspace, stop, what):
    (workspace / "audit/.gitignore").write_text("*\n!.gitignore\n")
    approved = plan(workspace, more="limits: {files: 1}\n")
    git(workspace, "init", "-q")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "all")
    executor = agent()
    assert executor.write("src/a", approved) == "ok"
    if stop == "lock":
        executor.write("elsewhere", approved)
    elif stop == "freeze":
        assert person(workspace, "freeze", "stop") == 0
    elif stop == "revoked":
        assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    delete_untracked(workspace, what)
    late = agent()
    refused = [each.code("write_file", path="src/b", content="x", plan_hash=approved) for each in (executor, late)]

    assert "ok" not in refused
    assert not (workspace / "src/b").exists()


def test_no_tool_on_the_wire_approves_unlocks_thaws_or_grants(agent, workspace):
    executor, planner = agent(), agent("ANTIGRAVITY")
    offered = {tool["name"] for each in (executor, planner) for tool in each.ask("tools/list")["tools"]}
    answers = [executor.call(name, plan_id="PLAN-1", role="WINDSURF") for name in NAMES_OF_GRANTS]
    recorded = [(each["tool_name"], each["error_code"]) for each in records(workspace)][-len(NAMES_OF_GRANTS) :]

    assert offered
    assert not [name for name in offered if re.search("approv|unlock|thaw|freez|grant|revoke|accept|permit", name)]
    assert {answer["error_code"] for answer in answers} == {"TOOL_NOT_FOUND"}
    assert recorded == [(name, "TOOL_NOT_FOUND") for name in NAMES_OF_GRANTS]


def violated_invariants(root):
    """The id of each invariant that an agent can violate, in a workspace of its own."""
    (make_ready(root) / ".env").write_text("TOKEN=1")
    limited = plan(root, more="limits: {files: 1}\n")
    other = plan(root, "PLAN-2")
    executor = LocalAgent(root)
    arguments = {"path": "src/b", "content": "x\n"}
    assert executor.write("src/a", limited) == "ok"
    envelopes = [executor.call("read_file", path=".env"), executor.call("write_file", **arguments, plan_hash=limited)]
    assert executor.write("src/c", other) == "ok"
    (root / "plans/PLAN-2.md").write_text((root / "plans/PLAN-2.md").read_text() + "More.\n")
    envelopes.append(executor.call("write_file", **arguments, plan_hash=other))
    assert person(root, "freeze", "stop") == 0
    envelopes.append(executor.call("write_file", **arguments, plan_hash=limited))
    executor.close()
    executor = LocalAgent(make_ready(root / "another"))
    plan_hash = plan(root / "another")
    envelopes.append(executor.call("write_file", path="AGENTS.md", content="x\n", plan_hash=plan_hash))
    executor.close()
    return [envelope["invariant_id"] for envelope in envelopes]


@pytest.mark.rows("S1-62")
def test_invariant_ids_are_the_same_in_every_run(tmp_path):
    first, second = violated_invariants(tmp_path / "one"), violated_invariants(tmp_path / "two")

    assert first == second
    assert first == [
        "READ_PROTECTED",
        "PLAN_LIMIT_REACHED",
        "PLAN_CHANGED_AFTER_APPROVAL",
        "WORKSPACE_FROZEN",
        "CONTROL_PLANE_PROTECTED",
    ]
