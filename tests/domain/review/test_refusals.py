"""Refusals in words: every error code and rule has some, and gravity decides the order."""

import re
from pathlib import Path

import pytest

import kaiza
from kaiza.domain import error_codes
from kaiza.domain.audit import record
from kaiza.domain.review.refusals import is_control_attempt, review_refusals

# Answered before a call is a call, or only by other commands: no record of a call has them.
NEVER_RECORDED = {
    "PARSE_ERROR",
    "INVALID_ENVELOPE",
    "METHOD_NOT_FOUND",
    "INVALID_PARAMS",
    "HEADER_MISMATCH",
    "MISSING_CAPABILITY",
    "UNSUPPORTED_PROTOCOL_VERSION",
    "BOOTSTRAP_FAILURE",
}
FAILURES = {"INTERNAL_ERROR", "UNKNOWN_TOOL_FAILURE", "FILE_WRITE_FAILED", "CONTEXT_CACHE_INVALID", "CONTEXT_IO_ERROR"}


def refused(code, seq=1, **members):
    given = {"tool_name": "write_file", "role": "WINDSURF", "arguments": {"path": "a"}, "request_id": f"r{seq}"}
    body = record.new_body(
        "call", timestamp="2026-11-18T09:00:00.000Z", outcome="error", error_code=code, **(given | members)
    )
    return record.Record({**body, "seq": seq})


def words_of(*records):
    return [(row.tone, row.words, row.is_ordinary) for row in review_refusals(records, [])]


def test_the_path_that_was_refused_is_named_first_also_where_no_argument_names_it():
    refusal = refused("SCOPE_VIOLATION", arguments={"patch": "diff"}, cause={"path": "b"}, changes=[{"path": "a"}])
    with_argument = refused("SCOPE_VIOLATION", arguments={"path": "a"}, cause={"path": "b"})

    assert [row.paths for row in review_refusals([refusal, with_argument], ())] == [("b", "a"), ("b", "a")]


@pytest.mark.parametrize("code", sorted(set(error_codes.SYSTEM_ERROR_CODES) - NEVER_RECORDED))
def test_every_code_has_words(code):
    ((_, words, _),) = words_of(refused(code))

    assert (words == "Failed") == (code in FAILURES)


def test_every_invariant_that_a_rule_names_has_words():
    sources = Path(kaiza.__file__).parent.joinpath("policy/rules").glob("*.py")
    named = {
        name
        for source in sources
        for name in re.findall(r'invariant_violation\(\s*"([A-Z_]+)"', source.read_text())
        if name != "PLAN_EXPECTED"  # a bug in Kaiza, not a refusal
    }
    ours = Path(kaiza.__file__).parent.joinpath("domain/review/refusals.py").read_text()

    assert len(named) > 8
    assert [name for name in named if f'"{name}"' not in ours] == []


def test_the_gravest_comes_first_and_ordinary_mistakes_last():
    rows = review_refusals(
        [
            refused("HASH_MISMATCH", 1),
            refused("SESSION_LOCKED", 2),
            refused("PATH_TRAVERSAL_BLOCKED", 3, tool_name="read_file"),
            refused("PLAN_SCOPE_VIOLATION", 4, tool_name="edit_file", arguments={"dry_run": True}),
            refused("PLAN_SCOPE_VIOLATION", 5),
        ],
        (),
    )

    assert [row.seq for row in rows] == [5, 4, 3, 2, 1]
    assert [row.is_locking for row in rows] == [True, False, False, False, False]
    assert [row.tone for row in rows] == ["bad", "bad", "warn", "note", "note"]


def test_a_limit_that_was_reached_is_no_attempt_to_leave_the_plan():
    ((tone, _, _),) = words_of(refused("PLAN_SCOPE_VIOLATION", invariant_id="PLAN_LIMIT_REACHED"))

    assert tone == "warn"


def test_the_content_rule_that_refused_is_named():
    secret = refused("POLICY_VIOLATION", cause={"rule": "secret-private-key"})
    stub = refused("POLICY_VIOLATION", 2, cause={"rule": "stub-todo"})

    assert [words for _, words, _ in words_of(secret, stub)] == [
        "A secret may not be added",
        "Unfinished code may not be added",
    ]


def test_an_attempt_to_approve_is_told_from_a_mistake_in_a_draft():
    claim = refused("PLAN_ENFORCEMENT_FAILED", tool_name="save_plan", cause={"findings": [{"rule": "draft"}]})
    mistake = refused("PLAN_ENFORCEMENT_FAILED", tool_name="save_plan", cause={"findings": [{"rule": "title"}]})
    plans = refused("POLICY_VIOLATION", invariant_id="CONTROL_PLANE_PROTECTED", cause={"path": "plans/x.md"})

    assert [is_control_attempt(each) for each in (claim, mistake, plans)] == [True, False, True]


@pytest.mark.parametrize(
    "cause", [None, "text", [1], {"findings": 5}, {"findings": [None, 3]}, {"rule": ["x"]}, {"path": 7}]
)
def test_a_cause_of_any_form_is_read(cause):
    assert len(words_of(refused("POLICY_VIOLATION", tool_name="save_plan", cause=cause))) == 1
