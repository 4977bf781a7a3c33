"""A log that came with a clone may hold records of any members: none of them stops a session."""

import os

import pytest
from scenes import make_ready, records

from kaiza.app import App
from kaiza.domain import record
from kaiza.store import audit_log

ODD = [None, 7, "x", "../x", [], {}, [7], [{}], [{"path": 7}], {"live": []}, {"action": []}, True]
MEMBERS = {
    "timestamp": "2026-11-18T09:00:00.000Z",
    "request_id": "r",
    "session_id": "s",
    "role": "WINDSURF",
    "tool_name": "begin_session",
    "outcome": "ok",
    "plan_id": "PLAN-1",
    "plan_hash": "0" * 64,
    "detail": {"action": "freeze", "reason": "r", "person": "p", "result": "applied", "how": "edited"},
}
ACTIONS = ["freeze", "thaw", "unlock", "accept", "approve", "reject", "revoke", "undo"]


def bodies():
    """Records of each kind, each with one member that is not what ours have there, or without it."""
    for kind in record.KINDS:
        whole = {**record.compose(kind, **MEMBERS), "changes": []}
        for name in whole:
            if name != "kind":
                yield {key: value for key, value in whole.items() if key != name}
                yield from ({**whole, name: odd} for odd in ODD)
    for action in ACTIONS:
        for standing in ODD:
            detail = {"action": action, "standing": standing, "reason": standing, "undone": standing}
            yield {**record.compose("person", **{**MEMBERS, "detail": detail}), "changes": []}
    yield {}
    yield {"kind": ["call"]}


@pytest.fixture
def clone(tmp_path):
    root = make_ready(tmp_path / "clone")
    lines, link = [], record.GENESIS
    for seq, body in enumerate(bodies(), 1):
        line, whole = record.seal(body, seq, link)
        link = whole["entry_hash"]
        lines.append(line)
    (root / "audit/audit-log.jsonl").write_bytes(b"".join(lines))
    return root


def test_a_session_begins_over_records_of_any_members_again_and_again(clone):
    assert audit_log.verify(os.path.realpath(clone)).verdict == "intact"
    for _ in range(3):
        app = App([os.path.realpath(clone)])
        begun = app.call("begin_session", {"role": "WINDSURF"})
        told = [app.call(tool, {}).envelope for tool in ("session_status", "read_audit_log", "list_plans")]
        ended = app.call("end_session", {}).envelope
        app.close()

        assert begun.envelope is None
        assert told == [None, None, None]
        assert ended is None
    assert len(records(clone)) > 500
