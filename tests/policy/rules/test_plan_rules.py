from dataclasses import replace

import pytest

from kaiza.domain import errors
from kaiza.domain.audit.projection import UNPROVEN, AuditState, Freeze, PlanSeal, RoleLock, Session
from kaiza.domain.finding import Finding
from kaiza.domain.paths.rel_path import parse
from kaiza.domain.plans import parser
from kaiza.domain.plans.approval import NO_EVIDENCE, ApprovalEvidence
from kaiza.domain.plans.plan import PlanUsage
from kaiza.domain.plans.scope import RequestedOperation
from kaiza.domain.tool_card import ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import CHANGE_RULES, PLAN_RULES, RESULT_RULES, SCOPE_RULES, judge
from kaiza.policy.rules.plan_approved import approval_basis, check_plan_approved

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


def parsed_plan(old="", new=""):
    assert old in HEAD
    return parser.parse(f"---\n{HEAD.replace(old, new)}---\n".encode(), "PLAN-1")


CARD = ToolCard("write_file", "Write", "", "files", "change", ("WINDSURF",), needs_session=True, idempotent=True)
GOOD = parsed_plan()


def case(read=GOOD, path="src/a", **more):
    arguments = {"plan_hash": read.plan_hash if read else "0" * 64, "phase_id": "ONE"} | more.pop("arguments", {})
    fields = {
        "card": CARD,
        "arguments": arguments,
        "now": NOW,
        "audit_state": AuditState(),
        "session": Session("s", "WINDSURF", "/w", NOW, NOW),
        "paths": (parse(path),),
        "requested_operations": (RequestedOperation("modify", parse(path)),),
        "plan_id": "PLAN-1",
        "parsed": read,
        "evidence": ApprovalEvidence(),
    }
    return Case(**{**fields, **more})


def refusal(judged, rules=(*CHANGE_RULES, *PLAN_RULES, *SCOPE_RULES, *RESULT_RULES)):
    try:
        judge(rules, judged)
    except errors.SystemError as refused:
        return refused
    return None


def code(judged):
    refused = refusal(judged)
    return refused and (refused.error_code, refused.invariant_id)


def sealed(plan_hash, *, by_command=False):
    state = AuditState(seals={"PLAN-1": PlanSeal(plan_hash, "edited", None, 1)})
    return replace(state, approvals={"PLAN-1": plan_hash}) if by_command else state


def test_a_change_within_an_approved_plan_is_allowed():
    assert refusal(case()) is None
    assert refusal(case(audit_state=sealed(GOOD.plan_hash))) is None
    assert refusal(case(audit_state=sealed(GOOD.plan_hash, by_command=True), required_approval="command")) is None
    assert refusal(case(path="AGENTS.md")) is None


def test_a_hash_that_no_plan_has_is_refused():
    assert code(case(None, plan_id=None)) == ("PLAN_NOT_FOUND", None)
    assert code(case(None)) == ("PLAN_NOT_FOUND", None)


def test_a_plan_with_errors_is_refused():
    assert code(case(parsed_plan("title: t", "titel: t"))) == ("PLAN_ENFORCEMENT_FAILED", None)


@pytest.mark.parametrize("status", ["DRAFT", "REJECTED", "REVOKED", "DONE"])
def test_a_plan_with_any_other_status_than_approved_is_refused(status):
    assert code(case(parsed_plan("APPROVED", status))) == ("PLAN_NOT_APPROVED", None)


def test_a_plan_is_refused_from_the_moment_it_expires():
    assert code(case(now="2026-11-24T23:59:59.999Z")) is None
    assert code(case(now="2026-11-25T00:00:00.000Z")) == ("PLAN_NOT_APPROVED", None)


@pytest.mark.parametrize("by_command", [False, True])
@pytest.mark.parametrize("status", ["APPROVED", "DRAFT", "REVOKED"])
def test_a_plan_edited_after_approval_is_refused_under_its_old_and_new_hash(by_command, status):
    changed = parsed_plan("title: t\nstatus: APPROVED", f"title: u\nstatus: {status}")
    state = sealed(GOOD.plan_hash, by_command=by_command)
    expected = ("PLAN_NOT_APPROVED", "PLAN_CHANGED_AFTER_APPROVAL")

    assert code(case(changed, audit_state=state)) == expected
    assert code(case(changed, audit_state=state, arguments={"plan_hash": GOOD.plan_hash})) == expected
    cause = refusal(case(changed, audit_state=state)).cause
    assert (cause["approved_hash"], cause["plan_hash"]) == (GOOD.plan_hash, changed.plan_hash)


def test_an_edit_after_approval_that_breaks_the_plan_is_reported_as_an_edit():
    faulty = parsed_plan("title: t", "titel: t")

    assert code(case(faulty, audit_state=sealed(GOOD.plan_hash)))[1] == "PLAN_CHANGED_AFTER_APPROVAL"


def test_a_new_approval_by_command_replaces_the_earlier_one():
    changed = parsed_plan("title: t", "title: u")
    state = replace(sealed(GOOD.plan_hash), approvals={"PLAN-1": changed.plan_hash})

    assert code(case(changed, audit_state=state)) is None
    assert code(case(GOOD, audit_state=state))[1] == "PLAN_CHANGED_AFTER_APPROVAL"
    assert (
        code(case(changed, audit_state=state, arguments={"plan_hash": GOOD.plan_hash}))[1]
        == "PLAN_CHANGED_AFTER_APPROVAL"
    )


def test_a_plan_revoked_by_command_is_refused_even_if_its_file_says_approved():
    state = AuditState(withdrawn={"PLAN-1": "revoke"})
    refused = refusal(case(audit_state=state))

    assert (refused.error_code, refused.invariant_id, refused.cause["action"]) == (
        "PLAN_NOT_APPROVED",
        "PLAN_WITHDRAWN",
        "revoke",
    )
    assert code(case(audit_state=replace(sealed("0" * 64), withdrawn=state.withdrawn)))[1] == "PLAN_WITHDRAWN"
    assert code(case(parsed_plan("APPROVED", "REVOKED"), audit_state=state)) == ("PLAN_NOT_APPROVED", None)
    assert code(case(audit_state=AuditState(withdrawn={"PLAN-2": "revoke"}))) is None


def test_approval_by_editing_is_refused_if_the_workspace_requires_a_command():
    assert code(case(required_approval="command")) == ("PLAN_NOT_APPROVED", None)
    assert code(case(required_approval="command", audit_state=sealed(GOOD.plan_hash))) == ("PLAN_NOT_APPROVED", None)


@pytest.mark.parametrize("path", ["CLAUDE.md", ".claude/x", "src/AGENTS.md", "agents.MD", ".github/workflows/x"])
def test_a_steering_file_is_refused_unless_the_plan_unlocks_it(path):
    assert code(case(path=path)) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")


def test_moving_a_steering_file_is_refused_unless_the_plan_unlocks_it():
    move = RequestedOperation("move", parse("CLAUDE.md"), parse("src/a"))

    assert code(case(requested_operations=(move,), paths=(parse("src/a"),)))[1] == "CONTROL_PLANE_PROTECTED"


def test_a_plan_with_phases_requires_one_of_them():
    without = parsed_plan("phases: [{phase_id: ONE, scope: {modify: [src/*, AGENTS.md]}}]\n", "")

    assert code(case(arguments={"phase_id": None})) == ("MISSING_REQUIRED_FIELD", None)
    assert code(case(arguments={"phase_id": "TWO"})) == ("PLAN_SCOPE_VIOLATION", None)
    assert code(case(without, arguments={"phase_id": None})) is None
    assert code(case(without)) == ("PLAN_SCOPE_VIOLATION", None)


def test_an_operation_out_of_scope_is_refused_with_the_nearest_patterns():
    refused = refusal(case(path="lib/a"))

    assert refused.error_code == "PLAN_SCOPE_VIOLATION"
    assert refused.cause["nearest"] == ["src/*", "AGENTS.md"]
    assert (refused.cause["operation"], refused.cause["path"]) == ("modify", "lib/a")


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
def test_exceeding_any_limit_of_the_plan_is_refused(usage, more):
    assert code(case(audit_state=AuditState(usage={"PLAN-1": usage}), **more)) == (
        "PLAN_SCOPE_VIOLATION",
        "PLAN_LIMIT_REACHED",
    )


def finding(rule):
    return (parse("src/a"), Finding(3, 1, "error", rule, "A secret", "Remove it"))


@pytest.mark.rows("S1-47")
def test_content_findings_are_refused_with_their_position_and_rust_with_its_own_code():
    refused = refusal(case(content=(finding("secret-aws"), finding("rust-unwrap"))))

    assert (refused.error_code, refused.cause["line"], refused.cause["count"]) == ("POLICY_VIOLATION", 3, 2)
    assert code(case(content=(finding("rust-unwrap"),))) == ("RUST_POLICY_VIOLATION", None)


def test_rules_refuse_in_a_fixed_order_when_all_are_broken():
    locks = {role: RoleLock(role, "OUTSIDE_WORKSPACE", "s", "r", 3, NOW) for role in ("WINDSURF", "ANTIGRAVITY")}
    usage = {"PLAN-1": PlanUsage(refusals=9, operations=9, lines=99, bytes=999)}
    faulty = parsed_plan("title: t", "titel: t")
    draft = parsed_plan("APPROVED", "DRAFT")
    faults = {
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
        "content": (finding("secret-aws"),),
    }
    state = faults["audit_state"]
    corrections = [
        ("SESSION_NOT_INITIALIZED", {"session": Session("s", "ANTIGRAVITY", "/w", NOW, NOW)}),
        ("UNAUTHORIZED_ACTION", {"session": Session("s", "WINDSURF", "/w", NOW, NOW)}),
        ("SELF_AUDIT_FAILURE", {"damage": None}),
        ("WORKSPACE_FROZEN", {"audit_state": (state := replace(state, frozen=None))}),
        ("SESSION_LOCKED", {"audit_state": (state := replace(state, locks={}))}),
        ("PATH_TRAVERSAL_BLOCKED", {"fault": None}),
        ("CONTROL_PLANE_PROTECTED", {"paths": ()}),
        ("READ_PROTECTED", {"hidden": ()}),
        ("PLAN_NOT_FOUND", {"parsed": faulty}),
        ("PLAN_CHANGED_AFTER_APPROVAL", {"audit_state": (state := replace(state, seals={}))}),
        ("PLAN_ENFORCEMENT_FAILED", {"parsed": draft}),
        ("PLAN_NOT_APPROVED", {"parsed": GOOD}),
        ("CONTROL_PLANE_PROTECTED", {"requested_operations": (RequestedOperation("delete", parse("lib/a")),)}),
        ("MISSING_REQUIRED_FIELD", {"arguments": {"phase_id": "ONE"}}),
        ("PLAN_SCOPE_VIOLATION", {"requested_operations": (RequestedOperation("modify", parse("src/a")),)}),
        (
            "refusals",
            {"audit_state": (state := replace(state, usage={"PLAN-1": PlanUsage(operations=9, lines=99, bytes=999)}))},
        ),
        ("operations", {"audit_state": (state := replace(state, usage={"PLAN-1": PlanUsage(lines=99, bytes=999)}))}),
        ("lines", {"audit_state": (state := replace(state, usage={"PLAN-1": PlanUsage(bytes=999)}))}),
        ("bytes", {"audit_state": replace(state, usage={})}),
        ("POLICY_VIOLATION", {"content": ()}),
    ]

    for expected, correction in corrections:
        refused = refusal(case(**{"read": faults["parsed"], **{k: v for k, v in faults.items() if k != "parsed"}}))
        limit = refused.cause.get("limit") if isinstance(refused.cause, dict) else None
        assert (limit or refused.invariant_id or refused.error_code) == expected
        faults |= correction
    assert refusal(case(**{"read": faults["parsed"], **{k: v for k, v in faults.items() if k != "parsed"}})) is None


def test_refusals_are_bounded_in_length():
    for refused in (
        case(path="lib/" + "x" * 200),
        case(parsed_plan("APPROVED", "DRAFT")),
        case(content=(finding("secret-aws"),)),
    ):
        assert len(refusal(refused).human_message) < 300
        assert len(str(refusal(refused).cause)) < 4096


SEALED = {"PLAN-1": PlanSeal(GOOD.plan_hash, "edited", None, 1)}
BASES = {
    "edited here": (ApprovalEvidence(), {}, ("edited", None, None)),
    "sealed": (NO_EVIDENCE, {"seals": SEALED}, ("edited", None, None)),
    "sealed by a damaged log": (
        NO_EVIDENCE,
        {"seals": {"PLAN-1": replace(SEALED["PLAN-1"], how=UNPROVEN)}},
        (None, None, None),
    ),
    "by command": (NO_EVIDENCE, {"approvals": {"PLAN-1": GOOD.plan_hash}}, ("command", "command", None)),
    "merged": (replace(NO_EVIDENCE, merged_ref="refs/heads/main"), {}, ("merged", None, None)),
    "signed": (replace(NO_EVIDENCE, signer="ann"), {}, ("signed", "signed", "signed")),
    "nothing": (NO_EVIDENCE, {}, (None, None, None)),
    "of another content": (NO_EVIDENCE, {"approvals": {"PLAN-1": "0" * 64}}, (None, None, None)),
}


@pytest.mark.parametrize(("evidence", "state", "expected"), BASES.values(), ids=BASES)
def test_what_an_approval_rests_on_depends_on_what_the_workspace_requires(evidence, state, expected):
    judged = [
        case(evidence=evidence, audit_state=AuditState(**state), required_approval=required)
        for required in ("edit", "command", "signature")
    ]

    assert tuple(map(approval_basis, judged)) == expected
    assert [check_plan_approved(each) is None for each in judged] == [basis is not None for basis in expected]


@pytest.mark.parametrize("came_by", ["git", "unseen"])
def test_a_plan_that_arrived_approved_is_refused_with_how_it_came(came_by):
    error = check_plan_approved(case(evidence=replace(NO_EVIDENCE, came_by=came_by, merge_problem="not merged")))

    assert (error.error_code, error.invariant_id) == ("PLAN_NOT_APPROVED", "PLAN_ARRIVED_APPROVED")
    assert (error.cause["came_by"], error.cause["problems"]) == (came_by, ["not merged"])


@pytest.mark.parametrize("evidence", [each for each, _, _ in BASES.values()], ids=BASES)
def test_a_withdrawal_by_editing_is_stronger_than_any_evidence(evidence):
    judged = case(evidence=replace(evidence, withdrawn_here="DONE"))

    assert refusal(judged).invariant_id == "PLAN_WITHDRAWN"
