"""What is remembered of the plans that were seen."""

import os
import stat

import pytest

from kaiza.domain.plans.approval import ApprovalEvidence
from kaiza.domain.plans.parser import StoredPlan, parse
from kaiza.store.trust import seen_plans as module
from kaiza.store.trust.git_origin import Origin
from kaiza.store.trust.plan_evidence import gather_evidence
from kaiza.store.trust.seen_plans import SeenPlans

PLAN = """---
kaiza_plan: 1
plan_id: {plan_id}
title: {title}
status: {status}
author: a
created: "2026-11-18T09:00:00Z"
scope: {{}}
---
"""


def stored(status="DRAFT", title="t", plan_id="PLAN-1"):
    content = PLAN.format(status=status, title=title, plan_id=plan_id).encode()
    return StoredPlan(plan_id, content, parse(content))


@pytest.fixture
def open_seen_plans(tmp_path):
    """Opens the sights as another process would."""
    (tmp_path / "project").mkdir()
    return lambda: SeenPlans(str(tmp_path / "project"), tmp_path / "state")


def see(sights, *plans):
    for plan in plans:
        sights.notice(plan)
    sights.flush()


def recall(sights, plan):
    evidence = sights.recall(plan, ApprovalEvidence(edited_here=False))
    return evidence.edited_here, evidence.came_by, evidence.withdrawn_here


def test_a_draft_seen_by_one_process_lets_the_edited_word_count_in_another(open_seen_plans):
    first, second = open_seen_plans(), open_seen_plans()
    see(first, stored())
    see(second, stored("APPROVED"))

    assert recall(second, stored("APPROVED")) == recall(first, stored("APPROVED")) == (True, None, None)
    assert recall(open_seen_plans(), stored("APPROVED")) == (True, None, None)


@pytest.mark.parametrize("other", [stored(title="u"), stored(plan_id="PLAN-2"), stored("REJECTED")])
def test_another_draft_does_not(open_seen_plans, other):
    sights = open_seen_plans()
    see(sights, other, stored("APPROVED"))

    assert recall(sights, stored("APPROVED"))[:2] == (False, "unseen")


def test_an_approved_content_that_was_not_looked_up_in_git_is_no_evidence(open_seen_plans):
    sights = open_seen_plans()
    see(sights, stored())

    assert recall(sights, stored("APPROVED")) == (False, "unseen", None)


def test_sights_of_one_look_are_taken_in_their_order(open_seen_plans):
    sights = open_seen_plans()
    see(sights, stored("APPROVED"), stored(), stored("APPROVED"))

    assert recall(sights, stored("APPROVED")) == (True, None, None)


def test_a_withdrawal_holds_until_it_is_lifted_and_can_be_made_again(open_seen_plans):
    sights, other = open_seen_plans(), open_seen_plans()
    see(sights, stored(), stored("APPROVED"), stored("REVOKED"), stored("APPROVED"))
    withdrawn = recall(other, stored("APPROVED"))
    other.lift_withdrawal("PLAN-1")
    lifted = recall(sights, stored("APPROVED"))
    see(sights, stored("REVOKED"), stored("APPROVED"))

    assert (withdrawn, lifted) == ((True, None, "REVOKED"), (True, None, None))
    assert recall(sights, stored("APPROVED")) == (True, None, "REVOKED")


@pytest.mark.parametrize(
    ("origin", "expected"),
    [(Origin.GIT, (False, "git", None)), (Origin.UNKNOWN, (False, "git", "DONE")), (Origin.HERE, (True, None, "DONE"))],
)
def test_an_unknown_origin_approves_nothing_and_withdraws(open_seen_plans, monkeypatch, origin, expected):
    monkeypatch.setattr(module, "find_origins", lambda _root, _directory, files: [origin for _ in files])
    sights = open_seen_plans()
    see(sights, stored(), stored("DONE"), stored("APPROVED"))

    assert recall(sights, stored("APPROVED")) == expected


def test_an_ended_plan_that_git_brought_is_not_withdrawn_by_looking_again(open_seen_plans, monkeypatch):
    for origin in (Origin.GIT, Origin.HERE):
        monkeypatch.setattr(module, "find_origins", lambda *words, known=origin: [known for _ in words[2]])
        see(open_seen_plans(), stored("DONE"), stored(plan_id="PLAN-2", title=str(origin)))

    assert recall(open_seen_plans(), stored("APPROVED"))[2] is None


def test_an_edited_approval_goes_on_counting_after_git_brought_another_one(open_seen_plans, monkeypatch):
    see(open_seen_plans(), stored(), stored("APPROVED"))
    monkeypatch.setattr(module, "find_origins", lambda *words: [Origin.GIT for _ in words[2]])
    see(open_seen_plans(), stored("APPROVED", "u"), stored("APPROVED"))

    assert recall(open_seen_plans(), stored("APPROVED", "u"))[:2] == (False, "git")
    assert recall(open_seen_plans(), stored("APPROVED"))[:2] == (True, None)


def test_forgotten_approvals_are_decided_again_from_what_git_says_then(open_seen_plans, monkeypatch, tmp_path):
    sights = open_seen_plans()
    see(sights, stored(), stored("APPROVED"))
    open_seen_plans().forget_edits()
    forgotten = recall(sights, stored("APPROVED"))
    monkeypatch.setattr(module, "find_origins", lambda *words: [Origin.GIT for _ in words[2]])
    evidence = gather_evidence(str(tmp_path / "project"), tmp_path / "state", stored("APPROVED"), sights)

    assert forgotten == (False, "unseen", None)
    assert (evidence.edited_here, evidence.came_by) == (False, "git")


def test_lifting_what_was_never_withdrawn_writes_nothing(open_seen_plans, tmp_path):
    open_seen_plans().lift_withdrawal("PLAN-1")

    assert not (tmp_path / "state/sights.json").exists()


def test_a_plan_with_errors_and_no_approval_is_no_sight(open_seen_plans, tmp_path):
    content = b"---\nstatus: DRAFT\n---\n"
    see(open_seen_plans(), StoredPlan("PLAN-1", content, parse(content)))

    assert not (tmp_path / "state/sights.json").exists()


def test_the_file_is_private_and_not_written_again_without_news(open_seen_plans, tmp_path):
    sights, path = open_seen_plans(), tmp_path / "state/sights.json"
    see(sights, stored(), stored("APPROVED"))
    before = path.stat()
    see(open_seen_plans(), stored("APPROVED"))
    sights.notice(stored("APPROVED"))
    sights.flush()

    assert stat.S_IMODE(before.st_mode) == 0o600
    assert path.stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b'{"format": 1, "plans": 1}', b'{"format": 1, "plans": {"PLAN-1": {"last": 1}}}']
)
def test_a_malformed_file_approves_nothing(open_seen_plans, tmp_path, content):
    see(open_seen_plans(), stored(), stored("APPROVED"))
    (tmp_path / "state/sights.json").write_bytes(content)

    assert recall(open_seen_plans(), stored("APPROVED")) == (False, "unseen", None)


def test_what_cannot_be_saved_counts_in_this_process_only(open_seen_plans, tmp_path):
    (tmp_path / "state").write_text("in the way")
    sights = open_seen_plans()
    see(sights, stored(), stored("APPROVED"))

    assert recall(sights, stored("APPROVED")) == (True, None, None)
    assert recall(open_seen_plans(), stored("APPROVED")) == (False, "unseen", None)


def test_only_the_latest_drafts_and_plans_are_kept_but_every_withdrawal(open_seen_plans, monkeypatch):
    monkeypatch.setattr(module, "_MAX_PLANS", 2)
    sights = open_seen_plans()
    see(sights, stored(plan_id="PLAN-0"), stored("REVOKED", plan_id="PLAN-0"))
    see(sights, *(stored(title=f"t{number}") for number in range(25)))
    see(sights, stored("APPROVED", "t4"), stored("APPROVED", "t5"))
    see(sights, stored(plan_id="PLAN-2"))

    assert recall(sights, stored("APPROVED", "t4", "PLAN-1"))[0] is False
    assert recall(sights, stored("APPROVED", plan_id="PLAN-0"))[2] == "REVOKED"
    see(sights, stored("APPROVED", plan_id="PLAN-2"))
    assert recall(sights, stored("APPROVED", plan_id="PLAN-2"))[0] is True


def test_recalling_starts_no_process_and_waits_for_none(open_seen_plans, monkeypatch):
    sights = open_seen_plans()
    see(sights, stored())
    monkeypatch.setattr(module, "find_origins", lambda *_words: pytest.fail("git was asked"))
    sights.notice(stored("APPROVED"))
    with sights._flush_lock:  # another thread is asking git
        assert recall(sights, stored("APPROVED")) == (False, "unseen", None)


def test_a_link_in_place_of_the_lock_is_not_followed(open_seen_plans, tmp_path):
    (tmp_path / "state").mkdir()
    os.symlink(tmp_path / "elsewhere", tmp_path / "state/sights.lock")
    see(open_seen_plans(), stored())

    assert not (tmp_path / "elsewhere").exists()
