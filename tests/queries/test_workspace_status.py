"""The state of a workspace as a value."""

from pathlib import Path

import pytest
from scenes import put_plan

from kaiza.clock import current_timestamp
from kaiza.domain.caps import Caps
from kaiza.queries import plan_review
from kaiza.queries.workspace_status import workspace_status
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/*.py"]}}
---
# Why
"""


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "project"
    for name in ("plans", "audit", "src"):
        (root / name).mkdir(parents=True)
    (root / "src" / "a.py").write_text("x\n")
    put_plan(root / "plans" / "PLAN-1.md", PLAN.format(status="APPROVED"))
    opened = Workspace(str(root), Caps())
    yield opened
    opened.close(current_timestamp())


def test_a_new_workspace_has_an_intact_log_and_its_plans(workspace):
    status = workspace_status(workspace)

    assert status["record"] == {"verdict": "intact", "records": 0, "head": None}
    assert [(plan["plan_id"], plan["allows"]) for plan in status["plans"]] == [("PLAN-1", True)]
    assert (status["frozen"], status["locks"], status["sessions"], status["intents"]) == (None, [], [], [])


def test_a_freeze_is_part_of_the_status(workspace):
    human_decisions.record_decision(workspace, "freeze", "Ann", detail={"reason": "release"})

    assert workspace_status(workspace)["frozen"]["reason"] == "release"


def test_a_review_names_the_files_in_scope_and_why_a_plan_allows_nothing(workspace):
    Path(workspace.root, "plans/PLAN-1.md").write_text(PLAN.format(status="DRAFT"))
    stored = workspace.plans.read("PLAN-1")
    review = plan_review.review_plan(workspace, stored)

    assert [file["path"] for file in review["touches"]["named"]] == ["src/a.py"]
    assert (review["allows"], review["why_not"]) == (False, "its status is DRAFT")
    assert review["difference"] is None
