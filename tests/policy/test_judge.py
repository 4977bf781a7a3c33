import pytest

from kaiza.domain import errors
from kaiza.domain.audit.projection import AuditState, Freeze, RoleLock, Session
from kaiza.domain.paths.rel_path import parse
from kaiza.domain.tool_card import ToolCard
from kaiza.policy.case import Case
from kaiza.policy.judge import ADD_RULES, CHANGE_RULES, OPENING_RULES, READ_RULES, judge, rules_for

NOW = "2026-11-18T12:00:00.000Z"


def card(level="change", roles=("WINDSURF",), **more):
    return ToolCard(
        "write_file", "Write", "", "files", "core", level, roles, needs_session=True, idempotent=True, **more
    )


def session(role="WINDSURF"):
    return Session("s", role, "/w", NOW, NOW)


def lock(role="WINDSURF"):
    return RoleLock(role, "OUTSIDE_WORKSPACE", "s", "r", 3, NOW)


def refusal(rules, case):
    with pytest.raises(errors.SystemError) as refused:
        judge(rules, case)
    return refused.value


def test_no_rules_at_all_means_no():
    refused = refusal((), Case(card=card(), arguments={}, now=NOW, audit_state=AuditState(), session=session()))

    assert (refused.error_code, refused.invariant_id) == ("INVARIANT_VIOLATION", "NO_RULES")


def test_each_kind_of_tool_has_its_rules():
    free = ToolCard("server_info", "", "", "", "", "read", (), needs_session=False, idempotent=True)

    assert rules_for(card("change")) == CHANGE_RULES
    assert rules_for(card("keep")) == ADD_RULES
    assert rules_for(card("read")) == READ_RULES
    assert rules_for(free) == OPENING_RULES


def test_the_first_refusal_is_the_answer_and_mending_one_shows_the_next():
    outside = errors.SystemError.tool_failure("OUTSIDE_WORKSPACE")
    wrong = {
        "session": None,
        "damage": "broken",
        "audit_state": AuditState(
            frozen=Freeze("because", None, NOW), locks={"WINDSURF": lock(), "ANTIGRAVITY": lock()}
        ),
        "fault": outside,
        "paths": (parse("plans/x.md"),),
    }
    mends = [
        ("SESSION_NOT_INITIALIZED", {"session": session("ANTIGRAVITY")}),
        ("UNAUTHORIZED_ACTION", {"session": session("WINDSURF")}),
        ("SELF_AUDIT_FAILURE", {"damage": None}),
        ("POLICY_VIOLATION", {"audit_state": AuditState(locks={"WINDSURF": lock()})}),
        ("SESSION_LOCKED", {"audit_state": AuditState()}),
        ("OUTSIDE_WORKSPACE", {"fault": None}),
        ("POLICY_VIOLATION", {"paths": ()}),
    ]
    seen = []
    for _, mend in mends:
        case = Case(card=card(), arguments={}, now=NOW, **wrong)
        seen.append(refusal(CHANGE_RULES[:7], case).error_code)
        wrong |= mend

    assert seen == [code for code, _ in mends]
    judge(CHANGE_RULES[:7], Case(card=card(), arguments={}, now=NOW, **wrong))


def test_a_lock_of_one_role_does_not_bind_the_other():
    case = Case(
        card=card(), arguments={}, now=NOW, audit_state=AuditState(locks={"ANTIGRAVITY": lock()}), session=session()
    )

    judge(CHANGE_RULES[:7], case)


@pytest.mark.parametrize(
    "path", ["plans/P.md", "audit/audit-log.jsonl", ".kaiza/x", "kaiza.toml", "a/.git/hooks/x", "PLANS/x"]
)
def test_what_governs_the_agent_is_never_changed(path):
    case = Case(card=card(), arguments={}, now=NOW, audit_state=AuditState(), session=session(), paths=(parse(path),))
    refused = refusal(CHANGE_RULES[:7], case)

    assert (refused.error_code, refused.invariant_id) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")


def test_a_read_is_refused_by_neither_lock_freeze_nor_damage():
    facts = AuditState(frozen=Freeze("because", None, NOW), locks={"WINDSURF": lock()})
    case = Case(card=card("read"), arguments={}, now=NOW, audit_state=facts, session=session(), damage="broken")

    judge(READ_RULES, case)
