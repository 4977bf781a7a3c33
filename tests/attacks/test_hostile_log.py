"""A log that came with a clone may contain malformed records: none of them prevents a session."""

import os
import subprocess
import sys

import pytest
from agents import plan
from logs import write_bodies
from scenes import bind, make_ready, records

from kaiza.app import App
from kaiza.domain.audit import record
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.audit.verification.verify import verify_log

MALFORMED_MEMBERS = [None, 7, "x", "../x", [], {}, [7], [{}], [{"path": 7}], {"live": []}, {"action": []}, True]
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
    """Records of each kind, each with one member malformed or missing."""
    for kind in record.KINDS:
        whole = {**record.new_body(kind, **MEMBERS), "changes": []}
        for name in whole:
            if name != "kind":
                yield {key: value for key, value in whole.items() if key != name}
                yield from ({**whole, name: odd} for odd in MALFORMED_MEMBERS)
    for action in ACTIONS:
        for standing in MALFORMED_MEMBERS:
            detail = {"action": action, "standing": standing, "reason": standing, "undone": standing}
            yield {**record.new_body("person", **{**MEMBERS, "detail": detail}), "changes": []}
    yield {}
    yield {"kind": ["call"]}


@pytest.fixture
def clone(tmp_path):
    root = make_ready(tmp_path / "clone")
    write_bodies(root, bodies())
    return root


def test_a_session_begins_whatever_members_the_records_have(clone):
    assert verify_log(os.path.realpath(clone)).verdict == "intact"
    for _ in range(3):
        app = App([os.path.realpath(clone)])
        begun = app.call("begin_session", {"role": "WINDSURF"})
        errors = [app.call(tool, {}).envelope for tool in ("session_status", "read_audit_log", "list_plans")]
        ended = app.call("end_session", {}).envelope
        app.close()

        assert begun.envelope is None
        assert errors == [None, None, None]
        assert ended is None
    assert len(records(clone)) > 500


LOCK = {"role": "WINDSURF", "error_code": "HASH_MISMATCH", "session_id": "s", "request_id": "r", "seq": 1, "at": "t"}
USAGE = {"files": [["a", 1]], "lines": 1}
SEAL = {"plan_hash": "0" * 64, "how": "edited", "approved_by": None, "seq": 1}
CHANGE = {"path": "a", "source": None, "operation": "create", "before_hash": None, "after_hash": "0" * 64}
CHANGE |= {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
INTENT = {"seq": 1, "session_id": "s", "tool_name": "t", "plan_id": None, "plan_hash": None, "detail": None}
INTENT |= {"changes": [CHANGE]}
STANDING_STATE = {
    "frozen": {"reason": "r", "person": "p", "at": "t"},
    "locks": LOCK,
    "released": {"role": "WINDSURF", "at": ["t"]},
    "reports": {"at": ["t"]},
    "seals": {"plan_id": "PLAN-1", "seal": SEAL},
    "approvals": {"plan_id": "PLAN-1", "plan_hash": "0" * 64},
    "withdrawn": {"plan_id": "PLAN-1", "action": "revoke"},
    "usage": {"plan_id": "PLAN-1", "use": USAGE},
    "intents": {"request_id": "r", "intent": INTENT, "at": 0},
}
MALFORMED = [
    *MALFORMED_MEMBERS,
    [[7, 1]],
    -1,
    1 << 63,
    {"files": [["a", "b"]]},
    {"files": [], "lines": -1},
    {**SEAL, "plan_hash": 7},
]
MALFORMED += [{"changes": []}, {**INTENT, "detail": 7}, {**INTENT, "changes": [{**CHANGE, "size": "x"}]}]


def standing_states():
    """Standing states that a new log carries over, each with one member malformed or missing."""
    for name, whole in STANDING_STATE.items():
        for member in whole:
            for odd in MALFORMED:
                piece = {**whole, member: odd}
                yield {name: piece if name == "frozen" else [piece]}
            piece = {key: value for key, value in whole.items() if key != member}
            yield {name: piece if name == "frozen" else [piece]}


TOOLS = [("session_status", {}), ("write_report", {"title": "t", "content": "c"})]
CONTROLS = "\x1b[2J\u202e\r\x9b"


def write_record(root, kind="person", **members):
    write_bodies(root, [record.new_body(kind, **{**MEMBERS, **members})])


def test_no_malformed_standing_state_prevents_a_session_or_an_acceptance(tmp_path):
    root = make_ready(tmp_path / "clone")
    details = [{"action": "accept", "standing": state} for state in standing_states()]
    write_bodies(root, (record.new_body("person", **{**MEMBERS, "detail": detail}) for detail in details))
    app = App([os.path.realpath(root)])
    errors = [app.call("begin_session", {"role": "WINDSURF"}).envelope]
    errors += [app.call(tool, arguments).envelope for tool, arguments in TOOLS]
    app.close()
    with (root / "audit/audit-log.jsonl").open("ab") as log:
        log.write(b"no record\n")

    assert len(details) > 400
    assert errors == [None, None, None]
    assert accept_damage(os.path.realpath(root), reason="r", person="p") is not None


@pytest.mark.parametrize("arguments", [["plan", "show", "PLAN-1"], ["session", "show", "s"], ["status"]])
def test_no_record_of_a_clone_sends_control_characters_to_a_terminal(tmp_path, arguments):
    root = make_ready(tmp_path / "clone")
    plan(root)
    kind = "plan" if arguments[0] == "plan" else "call"
    hostile = {name: text + CONTROLS for name, text in MEMBERS.items() if name in {"plan_hash", "session_id", "role"}}
    write_record(root, kind, **hostile, arguments={})
    ended = subprocess.run([sys.executable, "-m", "kaiza", *arguments], cwd=root, capture_output=True, check=False)
    shown = (ended.stdout + ended.stderr).decode()

    assert ended.returncode == 0
    assert not set(CONTROLS) & set("\x1b\u202e\r\x9b") & set(shown)


def test_a_freeze_with_a_malformed_reason_is_shown_and_enforced(tmp_path):
    root = bind(make_ready(tmp_path / "clone"))
    approved = plan(root)
    write_record(root, detail={"action": "freeze", "reason": ["x"], "person": {"a": 1}})
    status = subprocess.run([sys.executable, "-m", "kaiza", "status"], cwd=root, capture_output=True, check=False)
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    refused = app.call("write_file", {"path": "src/a", "content": "x", "plan_hash": approved}).envelope
    app.close()

    assert b"frozen" in status.stdout.lower()
    assert b"Traceback" not in status.stderr
    assert refused["error_code"] == "POLICY_VIOLATION"
