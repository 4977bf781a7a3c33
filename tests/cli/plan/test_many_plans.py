"""Lists of thousands of plans: bounded in work, and honest about what they leave out."""

import json

import pytest

from kaiza.store import git
from kaiza.store.documents import plan_files
from kaiza.store.trust import seen_plans

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-{number}
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/a.py"]}}
---
"""


@pytest.fixture
def counted(monkeypatch):
    """How often sights were saved and git was started."""
    counts = {"saved": 0, "git": 0}
    real_write, real_run = seen_plans.SeenPlans._write_plans, git.run

    def write(*words):
        counts["saved"] += 1
        return real_write(*words)

    def run(*words, **options):
        counts["git"] += 1
        return real_run(*words, **options)

    monkeypatch.setattr(seen_plans.SeenPlans, "_write_plans", write)
    monkeypatch.setattr(git, "run", run)
    return counts


@pytest.fixture
def plans(workspace, monkeypatch):
    monkeypatch.setattr(plan_files, "MAX_LISTED", 40)
    for number in range(60):
        status = "APPROVED" if number % 2 else "DRAFT"
        (workspace / f"plans/PLAN-{number}.md").write_text(PLAN.format(number=number, status=status))
    (workspace / ".git").mkdir()


def test_a_list_saves_what_it_saw_once_and_asks_git_a_fixed_number_of_questions(kaiza, plans, counted):
    listed = json.loads(kaiza("plan", "list", "--json").out)["plans"]
    first = dict(counted)
    kaiza("plan", "list", "--json")

    assert len(listed) == 40
    assert first["saved"] <= 2
    assert first["git"] <= 10
    assert counted["saved"] == first["saved"]


def test_every_list_says_how_many_plans_it_leaves_out(kaiza, plans, workspace, make_app):
    texts = [kaiza("plan", "list").err, kaiza("status").out, kaiza("doctor").out]
    app = make_app(workspace)
    begun = app.call("begin_session", {"role": "WINDSURF"}).output
    page = app.call("list_plans", {}).output

    assert all("20 older plan files are not listed" in " ".join(text.split()) for text in texts)
    assert "20 older plan files are not listed" in begun["summary"]
    assert "20 older plan files are not listed" in page["summary"]
    assert len(page["items"]) == 40
