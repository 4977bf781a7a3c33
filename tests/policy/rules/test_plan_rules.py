from dataclasses import replace

import pytest

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Freeze, PlanSeal, RoleLock, Session
from kaiza.domain.finding import Finding
from kaiza.domain.paths.rel_path import parse
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.plans.scope import RequestedOperation
from kaiza.domain.tool_card import ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import APPROVAL_AND_PHASE, CHANGE_RULES, RESULT_RULES, SCOPE_RULES, judge

NOW = "2026-11-18T12:00:00.000Z"
HEAD = """\
kaiza_plan: 1
plan_id: PLAN-1
title: t
status: APPROVED
author: a
created: "2026-11-18T09:00:00Z"
expires: "2026-11-25T00:00:00Z"
scope: {modify: [src/*, AGENTS.md], unlock: [AGENTS.md]}
limits: {files: 2, operations: 3, lines: 10, bytes: 100, refusals: 2}
phases: [{phase_id: ONE, scope: {modify: [src/*, AGENTS.md]}}]
"""


def reading(old="", new=""):
    assert old in HEAD
    return parser.parse(f"---\n{HEAD.replace(old, new)}---\n".encode(), "PLAN-1")


CARD = ToolCard(
    "write_file", "Write", "", "files", "core", "change", ("WINDSURF",), needs_session=True, idempotent=True
)
GOOD = reading()


def case(read=GOOD, path="src/a", **more):
    arguments = {"plan_hash": read.plan_hash if read else "0" * 64, "phase_id": "ONE"} | more.pop("arguments", {})
    told = {
        "card": CARD,
        "arguments": arguments,
        "now": NOW,
        "audit_state": AuditState(),
        "session": Session("s", "WINDSURF", "/w", NOW, NOW),
        "paths": (parse(path),),
        "requested_operations": (RequestedOperation("modify", parse(path)),),
        "plan_id": "PLAN-1",
        "parsed": read,
    }
    return Case(**{**told, **more})


def refusal(one, rules=(*CHANGE_RULES, *APPROVAL_AND_PHASE, *SCOPE_RULES, *RESULT_RULES)):
    try:
        judge(rules, one)
    except errors.SystemError as refused:
        return refused
    return None


def code(one):
    refused = refusal(one)
    return refused and (refused.error_code, refused.invariant_id)


def sealed(plan_hash, *, by_command=False):
    facts = AuditState(seals={"PLAN-1": PlanSeal(plan_hash, "edited", None, 1)})
    return replace(facts, approvals={"PLAN-1": plan_hash}) if by_command else facts


def test_a_change_that_an_approved_plan_names_may_go_ahead():
    assert refusal(case()) is None
    assert refusal(case(audit_state=sealed(GOOD.plan_hash))) is None
    assert refusal(case(audit_state=sealed(GOOD.plan_hash, by_command=True), by_command=True)) is None
    assert refusal(case(path="AGENTS.md")) is None


def test_a_hash_that_is_no_plans_is_not_found():
    assert code(case(None, plan_id=None)) == ("PLAN_NOT_FOUND", None)
    assert code(case(None)) == ("PLAN_NOT_FOUND", None)


def test_a_plan_with_an_error_is_not_enforced():
    assert code(case(reading("title: t", "titel: t"))) == ("PLAN_ENFORCEMENT_FAILED", None)


@pytest.mark.parametrize("status", ["DRAFT", "REJECTED", "REVOKED", "DONE"])
def test_only_approved_authorises(status):
    assert code(case(reading("APPROVED", status))) == ("PLAN_NOT_APPROVED", None)


def test_an_expired_plan_is_not_approved():
    assert code(case(now="2026-11-24T23:59:59.999Z")) is None
    assert code(case(now="2026-11-25T00:00:00.000Z")) == ("PLAN_NOT_APPROVED", None)


@pytest.mark.parametrize("by_command", [False, True])
@pytest.mark.parametrize("status", ["APPROVED", "DRAFT", "REVOKED"])
def test_bytes_that_changed_after_approval_are_refused_under_either_hash(by_command, status):
    changed = reading("title: t\nstatus: APPROVED", f"title: u\nstatus: {status}")
    facts = sealed(GOOD.plan_hash, by_command=by_command)
    expected = ("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")

    assert code(case(changed, audit_state=facts)) == expected
    assert code(case(changed, audit_state=facts, arguments={"plan_hash": GOOD.plan_hash})) == expected
    told = refusal(case(changed, audit_state=facts)).cause
    assert (told["approved_hash"], told["plan_hash"]) == (GOOD.plan_hash, changed.plan_hash)


def test_a_change_that_also_breaks_the_plan_is_told_as_a_change():
    broken = reading("title: t", "titel: t")

    assert code(case(broken, audit_state=sealed(GOOD.plan_hash)))[1] == "PLAN_CHANGED_AFTER_APPROVAL"


def test_a_new_word_by_command_replaces_the_old_seal():
    changed = reading("title: t", "title: u")
    facts = replace(sealed(GOOD.plan_hash), approvals={"PLAN-1": changed.plan_hash})

    assert code(case(changed, audit_state=facts)) is None
    assert code(case(GOOD, audit_state=facts))[1] == "PLAN_CHANGED_AFTER_APPROVAL"
    assert code(case(changed, audit_state=facts, arguments={"plan_hash": GOOD.plan_hash}))[1] == "PLAN_CHANGED_AFTER_APPROVAL"


def test_what_a_person_took_back_by_command_is_refused_whatever_brought_its_word_back():
    facts = AuditState(withdrawn={"PLAN-1": "revoke"})
    told = refusal(case(audit_state=facts))

    assert (told.error_code, told.invariant_id, told.cause["action"]) == (
        "PLAN_NOT_APPROVED",
        "PLAN_WITHDRAWN",
        "revoke",
    )
    assert code(case(audit_state=replace(sealed("0" * 64), withdrawn=facts.withdrawn)))[1] == "PLAN_WITHDRAWN"
    assert code(case(reading("APPROVED", "REVOKED"), audit_state=facts)) == ("PLAN_NOT_APPROVED", None)
    assert code(case(audit_state=AuditState(withdrawn={"PLAN-2": "revoke"}))) is None


def test_where_only_a_command_approves_an_edited_word_does_not():
    assert code(case(by_command=True)) == ("PLAN_NOT_APPROVED", None)
    assert code(case(by_command=True, audit_state=sealed(GOOD.plan_hash))) == ("PLAN_NOT_APPROVED", None)


@pytest.mark.parametrize("path", ["CLAUDE.md", ".claude/x", "src/AGENTS.md", "agents.MD", ".github/workflows/x"])
def test_what_steers_agents_is_reached_only_by_its_name(path):
    assert code(case(path=path)) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")


def test_the_end_of_a_move_is_protected_too():
    move = RequestedOperation("move", parse("CLAUDE.md"), parse("src/a"))

    assert code(case(requested_operations=(move,), paths=(parse("src/a"),)))[1] == "CONTROL_PLANE_PROTECTED"


def test_a_plan_with_phases_asks_for_one_that_it_has():
    without = reading("phases: [{phase_id: ONE, scope: {modify: [src/*, AGENTS.md]}}]\n", "")

    assert code(case(arguments={"phase_id": None})) == ("MISSING_REQUIRED_FIELD", None)
    assert code(case(arguments={"phase_id": "TWO"})) == ("PLAN_SCOPE_VIOLATION", None)
    assert code(case(without, arguments={"phase_id": None})) is None
    assert code(case(without)) == ("PLAN_SCOPE_VIOLATION", None)


def test_what_is_out_of_scope_is_told_with_what_comes_nearest():
    told = refusal(case(path="lib/a"))

    assert told.error_code == "PLAN_SCOPE_VIOLATION"
    assert told.cause["nearest"] == ["src/*", "AGENTS.md"]
    assert (told.cause["operation"], told.cause["path"]) == ("modify", "lib/a")


@pytest.mark.parametrize(
    ("usage", "more"),
    [
        (PlanUsage(refusals=2), {}),
        (PlanUsage(operations=3), {}),
        (PlanUsage(files={"x": 1, "y": 1}), {}),
        (PlanUsage(lines=9), {"lines": 2}),
        (PlanUsage(bytes=99), {"bytes": 2}),
    ],
)
def test_a_limit_that_is_reached_is_told_and_does_not_lock(usage, more):
    assert code(case(audit_state=AuditState(usage={"PLAN-1": usage}), **more)) == (
        "PLAN_SCOPE_VIOLATION",
        "PLAN_LIMIT_REACHED",
    )


def found(rule):
    return (parse("src/a"), Finding(3, 1, "error", rule, "A secret", "Remove it"))


@pytest.mark.rows("S1-47")
def test_content_is_refused_with_its_place_and_rust_by_its_own_code():
    told = refusal(case(content=(found("secret-aws"), found("rust-unwrap"))))

    assert (told.error_code, told.cause["line"], told.cause["count"]) == ("POLICY_VIOLATION", 3, 2)
    assert code(case(content=(found("rust-unwrap"),))) == ("RUST_POLICY_VIOLATION", None)


def test_every_rule_broken_at_once_is_told_in_the_fixed_order():
    locks = {role: RoleLock(role, "OUTSIDE_WORKSPACE", "s", "r", 3, NOW) for role in ("WINDSURF", "ANTIGRAVITY")}
    usage = {"PLAN-1": PlanUsage(refusals=9, operations=9, lines=99, bytes=999)}
    broken = reading("title: t", "titel: t")
    draft = reading("APPROVED", "DRAFT")
    wrong = {
        "session": None,
        "damage": "broken",
        "audit_state": AuditState(
            frozen=Freeze("because", None, NOW), locks=locks, usage=usage, seals=sealed("0" * 64).seals
        ),
        "fault": errors.SystemError.tool_failure("PATH_TRAVERSAL_BLOCKED"),
        "paths": (parse("plans/x.md"),),
        "hidden": (parse(".env"),),
        "parsed": None,
        "requested_operations": (RequestedOperation("modify", parse("CLAUDE.md")),),
        "arguments": {"phase_id": None},
        "lines": 1,
        "bytes": 1,
        "content": (found("secret-aws"),),
    }
    told = wrong["audit_state"]
    mends = [
        ("SESSION_NOT_INITIALIZED", {"session": Session("s", "ANTIGRAVITY", "/w", NOW, NOW)}),
        ("UNAUTHORIZED_ACTION", {"session": Session("s", "WINDSURF", "/w", NOW, NOW)}),
        ("SELF_AUDIT_FAILURE", {"damage": None}),
        ("WORKSPACE_FROZEN", {"audit_state": (told := replace(told, frozen=None))}),
        ("SESSION_LOCKED", {"audit_state": (told := replace(told, locks={}))}),
        ("PATH_TRAVERSAL_BLOCKED", {"fault": None}),
        ("CONTROL_PLANE_PROTECTED", {"paths": ()}),
        ("READ_PROTECTED", {"hidden": ()}),
        ("PLAN_NOT_FOUND", {"parsed": broken}),
        ("PLAN_CHANGED_AFTER_APPROVAL", {"audit_state": (told := replace(told, seals={}))}),
        ("PLAN_ENFORCEMENT_FAILED", {"parsed": draft}),
        ("PLAN_NOT_APPROVED", {"parsed": GOOD}),
        ("CONTROL_PLANE_PROTECTED", {"requested_operations": (RequestedOperation("delete", parse("lib/a")),)}),
        ("MISSING_REQUIRED_FIELD", {"arguments": {"phase_id": "ONE"}}),
        ("PLAN_SCOPE_VIOLATION", {"requested_operations": (RequestedOperation("modify", parse("src/a")),)}),
        (
            "refusals",
            {"audit_state": (told := replace(told, usage={"PLAN-1": PlanUsage(operations=9, lines=99, bytes=999)}))},
        ),
        ("operations", {"audit_state": (told := replace(told, usage={"PLAN-1": PlanUsage(lines=99, bytes=999)}))}),
        ("lines", {"audit_state": (told := replace(told, usage={"PLAN-1": PlanUsage(bytes=999)}))}),
        ("bytes", {"audit_state": replace(told, usage={})}),
        ("POLICY_VIOLATION", {"content": ()}),
    ]

    for expected, mend in mends:
        refused = refusal(case(**{"read": wrong["parsed"], **{k: v for k, v in wrong.items() if k != "parsed"}}))
        limit = refused.cause.get("limit") if isinstance(refused.cause, dict) else None
        assert (limit or refused.invariant_id or refused.error_code) == expected
        wrong |= mend
    assert refusal(case(**{"read": wrong["parsed"], **{k: v for k, v in wrong.items() if k != "parsed"}})) is None


def test_no_refusal_shows_content_or_more_than_it_should():
    for one in (
        case(path="lib/" + "x" * 200),
        case(reading("APPROVED", "DRAFT")),
        case(content=(found("secret-aws"),)),
    ):
        assert len(refusal(one).human_message) < 300
        assert len(str(refusal(one).cause)) < 4096
