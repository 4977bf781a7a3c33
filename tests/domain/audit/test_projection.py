import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.audit import record
from kaiza.domain.audit.projection import AuditState, is_locking_refusal
from kaiza.domain.audit.record_folding import apply_record

AT = "2026-11-18T12:00:00.000Z"


def make_record(seq, kind="call", **members):
    members.setdefault("timestamp", AT)
    return record.Record({**record.new_body(kind, **members), "seq": seq})


def begin(seq=1, session_id="s1", role="WINDSURF", **more):
    return make_record(
        seq,
        tool_name="begin_session",
        request_id=f"r{seq}",
        session_id=session_id,
        role=role,
        workspace_root="/w",
        outcome="ok",
        **more,
    )


def call(seq, tool="read_file", outcome="ok", session_id="s1", role="WINDSURF", **more):
    return make_record(
        seq,
        tool_name=tool,
        request_id=more.pop("request_id", f"r{seq}"),
        session_id=session_id,
        role=role,
        workspace_root="/w",
        outcome=outcome,
        **more,
    )


def state_of(*records):
    audit_state = AuditState()
    for one in records:
        apply_record(audit_state, one)
    return audit_state


def refused(seq, code, tool="write_file", **more):
    return call(seq, tool, "error", error_code=code, **more)


def test_a_session_counts_its_calls_and_refusals():
    audit_state = state_of(begin(), call(2), call(3, outcome="error", error_code="FILE_NOT_FOUND"))
    session = audit_state.find_open_session("s1", AT, 12)

    assert (session.role, session.calls, session.refusals) == ("WINDSURF", 3, 1)


def test_a_session_keeps_the_principal_that_began_it_whatever_later_records_say():
    audit_state = state_of(begin(principal="ann#0a1b2c3d"), call(2, principal="bob#0a1b2c3d"), call(3))

    assert audit_state.sessions["s1"].principal == "ann#0a1b2c3d"


@pytest.mark.parametrize("detail", [{}, {"token": None}, {"token": 7}, {"token": "bob#0a1b2c3d"}])
def test_the_end_of_no_token_or_of_another_ends_no_session(detail):
    sessions = [begin(1, "s1"), begin(2, "s2", principal="ann#0a1b2c3d")]
    revoked = make_record(3, "person", detail={"action": "revoke_token", **detail})

    assert state_of(*sessions, revoked).sessions.keys() == {"s1", "s2"}


@pytest.mark.parametrize(
    ("code", "tool", "more"),
    [
        ("OUTSIDE_WORKSPACE", "read_file", {}),
        ("OUTSIDE_WORKSPACE", "write_file", {"arguments": {"dry_run": True}}),
        ("HASH_MISMATCH", "write_file", {}),
        ("PLAN_SCOPE_VIOLATION", "write_file", {"invariant_id": "PLAN_LIMIT_REACHED"}),
        ("POLICY_VIOLATION", "write_file", {}),
    ],
)
def test_reads_dry_runs_and_ordinary_errors_do_not_lock(code, tool, more):
    assert state_of(begin(), refused(2, code, tool, **more)).locks == {}


@pytest.mark.parametrize("invariant", ["CONTROL_PLANE_PROTECTED", "READ_PROTECTED"])
def test_a_refused_change_of_a_protected_path_locks(invariant):
    assert is_locking_refusal("POLICY_VIOLATION", invariant, asked_for_change=True)
    assert not is_locking_refusal("POLICY_VIOLATION", invariant, asked_for_change=False)


def test_the_last_decision_about_a_plan_replaces_earlier_ones():
    words = [
        make_record(number, "person", plan_id="P", plan_hash=str(number), detail={"action": action})
        for number, action in enumerate(["approve", "revoke"], 1)
    ]

    assert state_of(words[0]).approvals == {"P": "1"}
    assert state_of(*words).approvals == {"P": "2"}


def test_a_persons_undo_closes_its_intent():
    intent = make_record(1, "intent", request_id="x", changes=[CHANGE], detail={"unlimited": True})
    outcome = make_record(2, "person", request_id="x", changes=[CHANGE], detail={"action": "undo"})

    assert state_of(intent).intents
    assert not state_of(intent, outcome).intents


CHANGE = {
    "path": "a", "source": None, "operation": "create", "before_hash": None, "after_hash": "0" * 64, "size": 7,
    "lines_added": 2, "lines_removed": 1, "mode": 420,
}  # fmt: skip


def test_an_intent_is_charged_and_refunded_if_it_was_not_carried_out():
    intent = make_record(2, "intent", request_id="x", session_id="s1", plan_id="P", changes=[CHANGE], detail={})
    reserved = state_of(begin(), intent)
    completed = state_of(begin(), intent, call(3, "write_file", request_id="x", changes=[CHANGE]))
    failed = state_of(begin(), intent, call(3, "write_file", "error", request_id="x", error_code="FILE_WRITE_FAILED"))
    rolled_back = state_of(begin(), intent, make_record(3, "recovery", request_id="x", detail={"result": "taken_back"}))

    for audit_state in (reserved, completed):
        usage = audit_state.usage["P"]
        assert (len(usage.files), usage.lines, usage.bytes, usage.operations) == (1, 3, 7, 1)
    for audit_state in (failed, rolled_back):
        usage = audit_state.usage["P"]
        assert (len(usage.files), usage.lines, usage.bytes, usage.operations) == (0, 0, 0, 0)
    assert list(reserved.intents) == ["x"]
    assert completed.intents == failed.intents == rolled_back.intents == {}


APPLIED = {"result": "applied"}
MAKERS = (
    [
        lambda n: begin(n, f"s{n % 3}"),
        lambda n: call(n, session_id=f"s{n % 3}"),
        lambda n: call(n, "end_session", session_id=f"s{n % 3}"),
        lambda n: refused(n, "PLAN_SCOPE_VIOLATION", session_id=f"s{n % 3}", plan_id="P"),
        lambda n: make_record(n, "intent", request_id=f"r{n}", plan_id="P", changes=[CHANGE], detail={}),
        lambda n: make_record(n, "person", detail={"action": "freeze", "reason": "x"}),
        lambda n: make_record(n, "person", detail={"action": "unlock"}),
        lambda n: make_record(n, "person", plan_id="P", plan_hash="b" * 64, detail={"action": "revoke"}),
        lambda n: make_record(n, "person", plan_id="P", plan_hash="c" * 64, detail={"action": "approve"}),
        lambda n: call(n, "write_report", detail={"unlocked": bool(n % 2)}),
        lambda n: make_record(n, "recovery", request_id=f"r{n - 1}", session_id="s1", changes=[CHANGE], detail=APPLIED),
        lambda n: make_record(n, "plan", plan_id="P", plan_hash="a" * 64, detail={"how": "edited"}),
    ]
)  # fmt: skip
KINDS = st.sampled_from(MAKERS)
HISTORY = (begin(1), make_record(2, "intent", request_id="r3", plan_id="P", changes=[CHANGE], detail={}))
STANDING = {
    "locks": [{"role": "WINDSURF", "error_code": "E", "session_id": None, "request_id": None, "seq": 1, "at": AT}],
    "approvals": [{"plan_id": "P", "plan_hash": "a" * 64}],
    "seals": [{"plan_id": "P", "seal": {"plan_hash": "a" * 64, "how": "edited", "approved_by": None, "seq": 1}}],
}


def is_freeze(one):
    return one.detail.get("action") == "freeze"


ODD_MEMBERS = ["timestamp", "request_id", "session_id", "role", "tool_name", "outcome", "error_code", "plan_id"]
ODD_MEMBERS += ["plan_hash", "changes", "detail", "cause", "seq", "principal"]


@pytest.mark.parametrize("name", ODD_MEMBERS)
def test_a_record_with_a_member_of_a_wrong_type_is_applied_whole_or_not_at_all(name):
    sound = [make(3) for make in MAKERS]
    for one in [each for each in sound if not is_freeze(each)]:
        odd = record.Record({**one.members, name: "x" if name in {"seq", "changes", "detail", "cause"} else 7})
        after = state_of(*HISTORY, odd)

        assert after in (state_of(*HISTORY), state_of(*HISTORY, one)), odd


@pytest.mark.parametrize("name", STANDING)
def test_carried_state_with_an_unknown_member_is_applied_whole_or_not_at_all(name):
    odd = {**STANDING, name: [{**STANDING[name][0], "seal": {"more": 1}, "more": 1}]}
    after = state_of(make_record(1, "person", detail={"action": "accept", "standing": odd}))

    assert after in (
        AuditState(),
        state_of(make_record(1, "person", detail={"action": "accept", "standing": STANDING})),
    )


def test_a_freeze_counts_whatever_its_other_members_are():
    odd = {"plan_id": 7, "request_id": [7], "role": {}, "timestamp": None}
    frozen = state_of(make_record(1, "person", detail={"action": "freeze", "reason": 7}, **odd))

    assert frozen.frozen is not None


@given(st.lists(KINDS, max_size=30), st.integers(0, 30))
def test_a_snapshot_and_the_records_after_it_give_the_state_of_the_whole_log(makers, cut):
    history = [make(number) for number, make in enumerate(makers, 1)]
    whole = state_of(*history)
    resumed = AuditState.from_json(orjson.loads(orjson.dumps(state_of(*history[:cut]))))
    for one in history[cut:]:
        apply_record(resumed, one)

    assert resumed == whole


def test_a_count_that_comes_late_leaves_the_seal_of_other_bytes_as_it_is():
    first = {"how": "edited", "approved_by": None}
    audit_state = state_of(
        make_record(1, "plan", plan_id="P", plan_hash="a" * 64, detail={**first, "files": None, "counted": False}),
        make_record(2, "plan", plan_id="P", plan_hash="b" * 64, detail={"how": "command", "approved_by": "Ann"}),
        make_record(3, "plan", plan_id="P", plan_hash="a" * 64, detail={**first, "files": 9, "seal_seq": 1}),
    )
    seal = audit_state.seals["P"]

    assert (seal.plan_hash, seal.how, seal.seq) == ("b" * 64, "command", 2)
