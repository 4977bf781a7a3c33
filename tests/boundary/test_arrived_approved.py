"""Approvals that were not edited here: what git brings, and what was never seen as a draft."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from agents import confirm, edit, hash_of, person, plan
from scenes import make_ready, records, see_plans

from kaiza.boundary.case import refresh_case
from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.tool_card import for_unknown_tool
from kaiza.policy.case import Case
from kaiza.store import git
from kaiza.store.disk import state_dir
from kaiza.store.trust.binding import Binding, Standing

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git")


def run_git(root, *words):
    subprocess.run(
        ["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=root, check=True, capture_output=True
    )


@pytest.fixture
def write(begun, workspace):
    """Try to change a file under a plan; "ok", or the invariant of the refusal, or its code and how the plan came."""

    def write(plan_id="PLAN-1", name="a"):
        plan_hash = hash_of(workspace, plan_id)
        arguments = {"path": f"src/{name}", "content": "x\n", "plan_hash": plan_hash, "dry_run": True}
        envelope = begun.call("write_file", arguments).envelope
        if envelope is None:
            return "ok"
        assert envelope["error_code"] == "PLAN_NOT_APPROVED"
        return envelope["cause"].get("came_by") or envelope["invariant_id"]

    (workspace / "src").mkdir()
    return write


def path_of(root, plan_id="PLAN-1"):
    return root / "plans" / f"{plan_id}.md"


def approve_in_file(root, how="edit"):
    """Set the status as an editor or a formatter would."""
    path = path_of(root)
    approved = path.read_text().replace("status: DRAFT", "status: APPROVED")
    if how == "rename":
        path.with_name(".swap").write_text(approved)
        path.with_name(".swap").replace(path)
        return
    if how == "formatter":
        approved = approved.replace("title: A plan", "title: 'A plan'").replace("# Why\n", "# Why\n\n\n")
        approved = approved.replace("\n", "\r\n")
    if how == "name and date":
        approved = approved.replace("approved_by: null", "approved_by: Ann").replace(
            "approved_at: null", 'approved_at: "2026-11-19T09:00:00Z"'
        )
    path.write_bytes(approved.encode())


@pytest.mark.parametrize("how", ["edit", "rename", "formatter", "name and date"])
def test_a_word_edited_in_a_draft_that_was_seen_counts(workspace, write, how):
    plan(workspace, status="DRAFT")
    approve_in_file(workspace, how)

    assert write() == "ok"


@pytest.mark.parametrize("old", ["src/**", "# Why", "A plan"])
def test_a_draft_approved_with_another_text_does_not_count(workspace, write, old):
    plan(workspace, status="DRAFT")
    path_of(workspace).write_text(path_of(workspace).read_text().replace(old, "docs/**"))
    approve_in_file(workspace)

    assert write() == "unseen"


def test_a_plan_never_seen_as_a_draft_counts_once_a_person_approves_it_by_command(workspace, write):
    plan(workspace, plan_id="PLAN-2")
    path_of(workspace).write_text(path_of(workspace, "PLAN-2").read_text().replace("PLAN-2", "PLAN-1"))
    before, content = write(), path_of(workspace).read_bytes()
    approved = confirm(workspace, "plan", "approve", "PLAN-1", "--as", "Ann")

    assert (before, approved, write()) == ("unseen", 0, "ok")
    assert path_of(workspace).read_bytes() == content
    assert [entry["detail"]["action"] for entry in records(workspace) if entry["kind"] == "person"] == ["approve"]
    assert [entry["detail"]["how"] for entry in records(workspace) if entry["kind"] == "plan"] == ["command"]


@pytest.mark.parametrize("between", ["missing", "unreadable"])
def test_approved_bytes_may_come_back_where_nothing_was_withdrawn(workspace, write, between):
    plan(workspace)
    path, content, results = path_of(workspace), path_of(workspace).read_bytes(), [write()]
    if between == "missing":
        path.unlink()
    else:
        path.write_bytes(b"---\nbroken")
    see_plans(workspace)
    path.write_bytes(content)

    assert [*results, write()] == ["ok", "ok"]


def test_a_withdrawal_seen_by_another_process_holds_at_the_intent(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved, content = plan(workspace), path_of(workspace).read_bytes()
    (opened,) = begun.services.workspaces.values()
    real_prepare = opened.transactions.prepare

    def prepare(*arguments, **options):
        edit(workspace, "status: APPROVED", "status: REVOKED")
        see_plans(workspace)
        path_of(workspace).write_bytes(content)
        return real_prepare(*arguments, **options)

    monkeypatch.setattr(opened.transactions, "prepare", prepare)
    envelope = begun.call("write_file", {"path": "src/a", "content": "x\n", "plan_hash": approved}).envelope

    assert envelope["invariant_id"] == "PLAN_WITHDRAWN"
    assert not (workspace / "src/a").exists()


def test_no_process_is_started_at_the_intent_nor_for_a_plan_that_was_decided(begun, workspace, monkeypatch):
    (workspace / "src").mkdir()
    approved = plan(workspace)
    first = begun.call("write_file", {"path": "src/a", "content": "x\n", "plan_hash": approved}).envelope
    monkeypatch.setattr(git, "run", lambda *_words, **_options: pytest.fail("git was started"))
    monkeypatch.setattr(subprocess, "Popen", lambda *_words, **_options: pytest.fail("a process was started"))
    second = begun.call("write_file", {"path": "src/b", "content": "x\n", "plan_hash": approved}).envelope

    assert (first, second) == (None, None)


def test_a_foreign_workspace_has_no_sights_and_no_evidence(begun, workspace):
    (opened,) = begun.services.workspaces.values()
    opened.binding = Binding(Standing.FOREIGN)
    path_of(workspace).write_text(plan_text("DRAFT"))
    opened.look_at_plans()
    path_of(workspace).write_text(plan_text("APPROVED"))
    evidence = opened.plan_evidence(opened.plans.read("PLAN-1"))

    assert not evidence.edited_here
    assert not list(Path(state_dir.path_of(str(workspace))).glob("sights*"))


def plan_text(status):
    return f"""---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{create: ["src/**"]}}
---
"""


@pytest.mark.parametrize(
    "words", [["plan", "list"], ["plan", "show", "PLAN-1"], ["status"], ["doctor"], ["plan", "lint"]]
)
def test_each_command_that_reads_plans_sees_a_draft(workspace, write, words):
    path_of(workspace).write_text(plan_text("DRAFT"))
    person(workspace, *words)
    path_of(workspace).write_text(plan_text("APPROVED"))

    assert write() == "ok"


def test_a_draft_that_an_agent_saves_is_seen_at_once(make_app, workspace):
    app = make_app(workspace)
    planner = app.call("begin_session", {"role": "ANTIGRAVITY"}).output["session_id"]
    app.call("save_plan", {"plan_id": "PLAN-1", "content": plan_text("DRAFT"), "session_id": planner})
    seen = (state_dir.path_of(str(workspace)) / "sights.json").read_text()
    os.unlink(path_of(workspace))
    path_of(workspace).write_text(plan_text("APPROVED"))
    app.call("begin_session", {"role": "WINDSURF"})
    (opened,) = app.services.workspaces.values()

    assert "PLAN-1" in seen
    assert opened.plan_evidence(opened.plans.read("PLAN-1")).edited_here


def test_a_draft_written_by_plan_new_may_be_approved_in_an_editor(begun, workspace):
    assert person(workspace, "plan", "new", "PLAN-1") == 0
    approve_in_file(workspace)
    (opened,) = begun.services.workspaces.values()

    assert opened.plan_evidence(opened.plans.read("PLAN-1")).edited_here


def test_evidence_of_earlier_bytes_is_not_used_for_those_at_the_intent(begun, workspace):
    (opened,) = begun.services.workspaces.values()
    plan(workspace)
    evidence = ApprovalEvidence(merged_ref="refs/heads/main", signer="ann")
    judged = Case(
        card=for_unknown_tool("write_file"), arguments={}, now="", audit_state=opened.audit_state,
        plan_id="PLAN-1", parsed=opened.plans.read("PLAN-1").parsed, evidence=evidence,
    )  # fmt: skip
    same = refresh_case(judged, opened).evidence
    edit(workspace, "# Why", "# why")
    other = refresh_case(judged, opened).evidence

    assert (same.merged_ref, same.signer, same.edited_here) == ("refs/heads/main", "ann", True)
    assert (other.merged_ref, other.signer, other.edited_here) == (None, None, False)


@needs_git
def test_an_approval_of_an_earlier_workspace_at_the_same_path_does_not_count(make_app, workspace):
    def try_write():
        app = make_app(workspace)
        app.call("begin_session", {"role": "WINDSURF"})
        arguments = {"path": "src/a", "content": "x\n", "plan_hash": hash_of(workspace)}
        envelope = app.call("write_file", arguments).envelope
        app.close()
        return envelope and envelope["cause"].get("came_by")

    plan(workspace)
    content = path_of(workspace).read_bytes()
    before = try_write()
    shutil.rmtree(workspace)
    make_ready(workspace)
    path_of(workspace).write_bytes(content)
    run_git(workspace, "init", "-q")
    run_git(workspace, "add", "plans")

    assert (before, try_write()) == (None, "git")
