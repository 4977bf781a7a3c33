"""State carried into a new log: complete, in records of limited size, and never less strict."""

import json

import pytest

from kaiza.domain.audit import carry_over, record
from kaiza.domain.audit.projection import UNMATCHABLE_HASH, UNPROVEN, AuditState, Freeze, PlanSeal, RoleLock
from kaiza.domain.audit.record_folding import apply_record
from kaiza.domain.plans import plan
from kaiza.domain.plans.plan import Limits, PlanUsage

AT = "2026-11-18T12:00:00.000Z"
ONE, OTHER = "1" * 64, "2" * 64


def seal(plan_hash):
    return PlanSeal(plan_hash, "edited", "Ann", 7)


def carry(audit_state):
    """The state that the new log gives, and its lines."""
    carried, lines = AuditState(), []
    for part in carry_over.split(audit_state):
        detail = {"action": "accept", "reason": "r" * 1000, "person": "p" * 200, "standing": part}
        body = record.new_body("person", timestamp=AT, workspace_root="w" * 4096, outcome="ok", detail=detail)
        line, whole = record.serialize_and_hash(body, len(lines) + 1, record.GENESIS)
        lines.append(line)
        apply_record(carried, whole)
    return carried, lines


def test_the_whole_state_survives_splitting_and_applying():
    audit_state = AuditState(
        locks={"WINDSURF": RoleLock("WINDSURF", "OUTSIDE_WORKSPACE", "s", "r", 3, AT)},
        released={"WINDSURF": [AT]},
        reports=[AT, AT],
        frozen=Freeze("stop", "Ann", AT),
        seals={"PLAN-1": seal(ONE)},
        approvals={"PLAN-1": ONE},
        withdrawn={"PLAN-2": "revoke"},
        usage={"PLAN-1": PlanUsage({"src/ä": 2, "src/b": 1}, 3, 4, 5, 6, 7), "PLAN-2": PlanUsage(refusals=1)},
    )

    assert carry(audit_state)[0] == audit_state


def test_merging_keeps_the_stricter_of_two_accounts():
    known = AuditState(
        approvals={"SAME": ONE, "DIFFER": ONE, "KNOWN": ONE},
        seals={"SAME": seal(ONE), "DIFFER": seal(ONE), "KNOWN": seal(ONE)},
        withdrawn={"PLAN-1": "revoke"},
        usage={"PLAN-1": PlanUsage({"a": 1, "b": 2}, lines=1, bytes=9, operations=1, refusals=9)},
    )
    read = AuditState(
        approvals={"SAME": ONE, "DIFFER": OTHER, "READ": ONE},
        seals={"SAME": seal(ONE), "DIFFER": seal(OTHER), "READ": seal(ONE)},
        frozen=Freeze("wait", None, AT),
        withdrawn={"PLAN-2": "reject"},
        usage={"PLAN-1": PlanUsage({"b": 1, "c": 1}, lines=9, bytes=1, operations=9, refusals=1)},
    )
    merged = carry_over.merge(known, read, AT)

    assert merged.approvals == {"SAME": ONE, "DIFFER": UNMATCHABLE_HASH, "KNOWN": ONE}
    assert {name: one.plan_hash for name, one in merged.seals.items()} == {
        "SAME": ONE,
        "DIFFER": UNMATCHABLE_HASH,
        "KNOWN": ONE,
        "READ": ONE,
    }
    assert {name: one.how for name, one in merged.seals.items()} == {
        **dict.fromkeys(("SAME", "DIFFER", "KNOWN"), "edited"),
        "READ": UNPROVEN,
    }
    assert merged.frozen == carry_over.merge(read, known, AT).frozen == read.frozen
    assert merged.withdrawn == {"PLAN-1": "revoke", "PLAN-2": "reject"}
    assert merged.usage == {"PLAN-1": PlanUsage({"a": 1, "b": 2, "c": 1}, 9, 9, 9, 9)}


def test_merging_releases_drops_old_ones_and_duplicates():
    old, new = "2026-11-17T12:00:00.000Z", "2026-11-17T12:00:00.001Z"
    merged = carry_over.merge(
        AuditState(released={"WINDSURF": [old, new]}), AuditState(released={"WINDSURF": [new, AT]}), AT
    )

    assert merged.released == {"WINDSURF": [new, AT]}


def test_merging_reports_keeps_each_report_of_the_last_day_once():
    old, new = "2026-11-17T12:00:00.000Z", "2026-11-17T12:00:00.001Z"
    merged = carry_over.merge(AuditState(reports=[old, new, new]), AuditState(reports=[new, AT]), AT)
    for _ in range(2):
        for part in carry_over.split(merged):
            detail = {"action": "accept", "standing": part}
            apply_record(merged, record.Record({**record.new_body("person", detail=detail), "seq": 1}))

    assert merged.reports == [new, new, AT]


def test_files_beyond_the_name_limit_are_only_counted(monkeypatch):
    monkeypatch.setattr(carry_over, "MAX_NAME_BYTES", 500_000)
    use = PlanUsage({f"src/{number}/{'x' * 400}": 1 for number in range(2000)}, operations=2000)
    carried, lines = carry(AuditState(usage={"PLAN-1": use, "PLAN-2": PlanUsage({"a": 1})}))
    after = carried.usage["PLAN-1"]

    assert (after.file_count, after.operations, carried.usage["PLAN-2"].file_count) == (2000, 2000, 1)
    assert 0 < after.unnamed < 2000
    assert len(lines) > 1
    assert plan.overrun_before(Limits(files=2000), after, ["src/new"], 1).limit == "files"
    assert plan.overrun_before(Limits(files=2000), after, [next(iter(after.files))], 1) is None


def test_a_long_freeze_reason_does_not_displace_other_state():
    files = {f"src/{number}/{'x' * 400}": 1 for number in range(400)}
    audit_state = AuditState(frozen=Freeze("x" * 120_000, "Ann", AT), usage={"P": PlanUsage(files)})

    assert carry(audit_state)[0] == audit_state


def test_an_open_intent_is_carried_over_whole_and_never_refunded():
    change = {"path": "p" * 400, "source": None, "operation": "create", "size": 9, "lines_added": 1, "lines_removed": 0}
    change |= {"before_hash": None, "after_hash": ONE}
    changes = [{**change, "path": f"{number}{'p' * 400}"} for number in range(500)]
    intent = {"seq": 9, "session_id": "s", "tool_name": "apply_patch", "plan_id": "P", "plan_hash": ONE}
    audit_state = AuditState(
        intents={"r": record.Record({**intent, "detail": {"live": "l"}, "changes": changes})},
        usage={"P": PlanUsage(lines=500)},
    )
    carried, lines = carry(audit_state)
    for line in lines:
        assert len(line) <= record.MAX_RECORD_BYTES
    body = record.new_body("recovery", request_id="r", detail={"result": "not_applied"})
    changes_before = carried.intents["r"].changes
    apply_record(carried, record.Record({**body, "seq": 3}))

    assert changes_before == changes
    assert carried.intents == {}
    assert carried.usage["P"].lines == 500


@pytest.mark.parametrize("standing", [{"frozen": None, "locks": []}, {}, None])
def test_carried_state_that_lacks_members_is_applied(standing):
    lock = {"role": "WINDSURF", "error_code": "X", "session_id": None, "request_id": "r", "seq": 1, "at": AT}
    frozen = {"reason": "stop", "person": "Ann", "at": AT}
    carried = AuditState()
    for one in (standing, {"frozen": frozen, "locks": [lock]}):
        detail = {"action": "accept", "reason": "r", "person": "p", "standing": one}
        apply_record(carried, record.Record({**record.new_body("person", detail=detail), "seq": 1}))

    assert (carried.frozen, carried.locks) == (Freeze(**frozen), {"WINDSURF": RoleLock(**lock)})


def test_carried_usage_never_lowers_what_a_process_knows():
    running = AuditState(usage={"P": PlanUsage({"a": 1, "b": 1}, operations=5)}, intents={})
    for part in carry_over.split(AuditState(usage={"P": PlanUsage({"a": 1}, lines=3, operations=2)})):
        detail = {"action": "accept", "standing": part}
        apply_record(running, record.Record({**record.new_body("person", detail=detail), "seq": 1}))

    assert running.usage == {"P": PlanUsage({"a": 1, "b": 1}, lines=3, operations=5)}


def test_every_reason_of_a_freeze_survives_an_acceptance_and_is_not_doubled():
    more = tuple(Freeze(f"{number}" * 1000, "Ann", AT) for number in range(9))
    audit_state = AuditState(frozen=Freeze("stop", "Ann", AT, more))
    carried, lines = carry(audit_state)
    for line in lines:
        apply_record(carried, record.Record(json.loads(line)))

    assert carried == audit_state


def test_merging_two_accounts_of_a_freeze_keeps_the_reasons_of_both():
    one, both = Freeze("a", "Ann", AT), Freeze("a", "Ann", AT, (Freeze("b", "Bob", AT),))
    merged = carry_over.merge(AuditState(frozen=one), AuditState(frozen=both), AT)

    assert merged.frozen == both
    assert carry_over.merge(AuditState(), AuditState(frozen=both), AT).frozen == both


@pytest.mark.parametrize("more", [5, "x", {"a": 1}, [5, None], [{"reason": 5, "at": []}]])
def test_a_carried_freeze_is_in_force_whatever_its_reasons_are(more):
    detail = {"action": "accept", "standing": {"frozen": {"reason": "stop", "person": "Ann", "at": AT, "more": more}}}
    body = record.new_body("person", timestamp=AT, workspace_root="w", outcome="ok", detail=detail)
    carried = AuditState()
    apply_record(carried, record.serialize_and_hash(body, 1, record.GENESIS)[1])

    assert carried.frozen.reason == "stop"
