import pytest

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Freeze, RoleLock, Session
from kaiza.domain.paths.rel_path import parse
from kaiza.domain.tool_card import ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import ADD_RULES, CHANGE_RULES, OPENING_RULES, READ_RULES, judge, rules_at_intent, rules_for

NOW = "2026-11-18T12:00:00.000Z"


def card(level="change", roles=("WINDSURF",), **more):
    return ToolCard("write_file", "Write", "", "files", level, roles, needs_session=True, idempotent=True, **more)


def session(role="WINDSURF"):
    return Session("s", role, "/w", NOW, NOW)


def lock(role="WINDSURF"):
    return RoleLock(role, "OUTSIDE_WORKSPACE", "s", "r", 3, NOW)


def refusal(rules, case):
    with pytest.raises(errors.SystemError) as refused:
        judge(rules, case)
    return refused.value


def test_an_empty_list_of_rules_refuses_every_call():
    refused = refusal((), Case(card=card(), arguments={}, now=NOW, audit_state=AuditState(), session=session()))

    assert (refused.error_code, refused.invariant_id) == ("INVARIANT_VIOLATION", "NO_RULES")


def test_rules_are_chosen_by_the_safety_level_of_the_tool():
    sessionless = ToolCard("server_info", "", "", "", "read", (), needs_session=False, idempotent=True)

    assert rules_for(card("change")) == CHANGE_RULES
    assert rules_for(card("keep")) == ADD_RULES
    assert rules_for(card("read")) == READ_RULES
    assert rules_for(sessionless) == OPENING_RULES


def test_the_first_refusal_in_order_is_raised():
    outside = errors.SystemError.tool_failure("OUTSIDE_WORKSPACE")
    faults = {
        "session": None,
        "damage": "broken",
        "audit_state": AuditState(
            frozen=Freeze("because", None, NOW),
            locks={"WINDSURF": lock(), "ANTIGRAVITY": lock()},
            is_partial=True,
        ),
        "unread": {"bytes": 1, "of": 2},
        "fault": outside,
        "paths": (parse("plans/x.md"),),
    }
    corrections = [
        ("AUDIT_LOG_FAILED", {"unread": None}),
        ("SESSION_NOT_INITIALIZED", {"session": session("ANTIGRAVITY")}),
        ("UNAUTHORIZED_ACTION", {"session": session("WINDSURF")}),
        ("SELF_AUDIT_FAILURE", {"damage": None}),
        (
            "AUDIT_LOG_FAILED",
            {"audit_state": AuditState(frozen=Freeze("because", None, NOW), locks={"WINDSURF": lock()})},
        ),
        ("POLICY_VIOLATION", {"audit_state": AuditState(locks={"WINDSURF": lock()})}),
        ("SESSION_LOCKED", {"audit_state": AuditState()}),
        ("OUTSIDE_WORKSPACE", {"fault": None}),
        ("POLICY_VIOLATION", {"paths": ()}),
    ]
    error_codes = []
    for _, correction in corrections:
        case = Case(card=card(), arguments={}, now=NOW, **faults)
        error_codes.append(refusal(CHANGE_RULES, case).error_code)
        faults |= correction

    assert error_codes == [code for code, _ in corrections]
    judge(CHANGE_RULES, Case(card=card(), arguments={}, now=NOW, **faults))


@pytest.mark.parametrize("exempt", [True, False])
@pytest.mark.parametrize(
    ("since", "code"),
    [
        ({"damage": "broken"}, "SELF_AUDIT_FAILURE"),
        ({"audit_state": AuditState(is_partial=True)}, "AUDIT_LOG_FAILED"),
        ({"audit_state": AuditState(frozen=Freeze("because", None, NOW))}, "POLICY_VIOLATION"),
        ({"audit_state": AuditState(locks={"WINDSURF": lock()})}, "SESSION_LOCKED"),
    ],
)
def test_damage_freeze_and_lock_are_judged_again_at_the_intent(since, code, exempt):
    known = {"card": card(), "arguments": {}, "now": NOW, "audit_state": AuditState(), "session": session()}
    case = Case(**{**known, **since}, exempt=exempt)

    assert refusal(rules_at_intent(case), case).error_code == code


def test_a_lock_on_one_role_does_not_affect_the_other():
    case = Case(
        card=card(), arguments={}, now=NOW, audit_state=AuditState(locks={"ANTIGRAVITY": lock()}), session=session()
    )

    judge(CHANGE_RULES, case)


@pytest.mark.parametrize(
    "path", ["plans/P.md", "audit/audit-log.jsonl", ".kaiza/x", "kaiza.toml", "a/.git/hooks/x", "PLANS/x"]
)
def test_changes_to_the_control_plane_are_refused(path):
    case = Case(card=card(), arguments={}, now=NOW, audit_state=AuditState(), session=session(), paths=(parse(path),))
    refused = refusal(CHANGE_RULES, case)

    assert (refused.error_code, refused.invariant_id) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")


def test_reading_is_allowed_despite_lock_freeze_and_a_damaged_log():
    state = AuditState(frozen=Freeze("because", None, NOW), locks={"WINDSURF": lock()})
    case = Case(card=card("read"), arguments={}, now=NOW, audit_state=state, session=session(), damage="broken")

    judge(READ_RULES, case)
