"""What a person is shown of a plan that arrived approved."""

import json

import pytest
from scenes import put_plan, see_plans

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/a.py"]}}
---
# Why
"""


@pytest.fixture
def path(workspace):
    return workspace / "plans/PLAN-1.md"


@pytest.fixture
def arrive(path):
    """A draft is seen, then a plan with another scope is there, approved."""
    path.write_text(PLAN.format(status="DRAFT"))
    see_plans(path.parent.parent)
    path.write_text(PLAN.format(status="APPROVED").replace("src/a.py", "**"))


def test_the_list_counts_what_counts_and_why(path, kaiza, arrive):
    put_plan(path.with_name("PLAN-2.md"), PLAN.format(status="APPROVED").replace("PLAN-1", "PLAN-2"))
    path.with_name("PLAN-3.md").write_text(PLAN.format(status="DRAFT").replace("PLAN-1", "PLAN-3"))
    listed = kaiza("plan", "list")
    plans = json.loads(kaiza("plan", "list", "--json").out)["plans"]
    (check,) = [one for one in json.loads(kaiza("doctor", "--json").out)["checks"] if one["check"] == "plans"]

    assert listed.err == "3 plans: 1 approved here, 1 arrived approved, 1 draft.\n"
    assert check["message"] == listed.err.strip(".\n")
    assert [(plan["came_by"], plan["allows"]) for plan in plans] == [("unseen", False), (None, True), (None, False)]


def test_show_and_the_question_contain_what_differs_from_the_draft(path, kaiza, screen, arrive):
    shown = kaiza("plan", "show", "PLAN-1").out.splitlines()
    review = json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)
    at = screen("plan", "approve", "PLAN-1", columns=80, NO_COLOR="1")
    asked = at.answer("y").splitlines()

    for lines in (shown, asked):
        assert {'│ -scope: {modify: ["src/a.py"]}', '│ +scope: {modify: ["**"]}'} <= set(lines)
    assert "+status: APPROVED" in review["draft_difference"]["diff"]
    assert at.end() == 0
    assert json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)["draft_difference"] is None


def test_without_a_draft_no_difference_is_shown(path, kaiza):
    path.write_text(PLAN.format(status="APPROVED"))

    assert json.loads(kaiza("plan", "show", "PLAN-1", "--json").out)["draft_difference"] is None
    assert "Changed since the draft" not in kaiza("plan", "show", "PLAN-1").out


@pytest.mark.parametrize("answers", [["y", "y"], ["no", "y"], ["y", "no"]])
def test_several_plans_are_asked_about_one_after_the_other(path, kaiza, screen, answers):
    for plan_id in ("PLAN-1", "PLAN-2"):
        path.with_name(f"{plan_id}.md").write_text(PLAN.format(status="DRAFT").replace("PLAN-1", plan_id))
    at = screen("plan", "approve", "PLAN-1", "PLAN-2", "PLAN-1")
    for plan_id, answer in zip(("PLAN-1", "PLAN-2"), answers, strict=True):
        at.answer(answer, f"Approve {plan_id}?")
    status = at.end()
    allowed = [plan["allows"] for plan in json.loads(kaiza("plan", "list", "--json").out)["plans"]]

    assert allowed == [answer != "no" for answer in answers]
    assert status == ("no" in answers)


@pytest.mark.parametrize("word", ["approved", "Approved", '" APPROVED"'])
def test_each_list_says_how_the_word_is_written(path, kaiza, make_app, word):
    path.write_text(PLAN.format(status=word))
    listed = json.loads(kaiza("plan", "list", "--json").out)["plans"]
    shown = [" ".join(kaiza(*words).out.split()) for words in (["plan", "list"], ["status"], ["doctor"])]
    app = make_app(path.parent.parent)
    begun = app.call("begin_session", {"role": "WINDSURF"}).output["plans"]
    asked = app.call("list_plans", {}).output["items"]

    assert [(plan["plan_id"], plan["status"]) for plan in begun] == [("PLAN-1", "INVALID")]
    assert all("write APPROVED" in row["why"] for row in (*begun, *asked))
    assert "write APPROVED" in listed[0]["why_not"]
    assert all("APPROVED" in text and "status" in text for text in shown)


def test_the_list_says_why_an_approval_does_not_count_and_which_command_makes_it_count(path, kaiza, arrive):
    (listed,) = json.loads(kaiza("plan", "list", "--json").out)["plans"]

    assert "never seen here as a draft" in listed["why_not"]
    assert "`kaiza plan approve PLAN-1`" in listed["why_not"]
