"""A log that came with a clone may hold records of any members: none of them stops a session."""

import os
import subprocess
import sys

import pytest
from agents import plan
from scenes import make_ready, records

from kaiza.app import App
from kaiza.domain.audit import record
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.audit.verification.verify import verify_log

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
        whole = {**record.new_body(kind, **MEMBERS), "changes": []}
        for name in whole:
            if name != "kind":
                yield {key: value for key, value in whole.items() if key != name}
                yield from ({**whole, name: odd} for odd in ODD)
    for action in ACTIONS:
        for standing in ODD:
            detail = {"action": action, "standing": standing, "reason": standing, "undone": standing}
            yield {**record.new_body("person", **{**MEMBERS, "detail": detail}), "changes": []}
    yield {}
    yield {"kind": ["call"]}


@pytest.fixture
def clone(tmp_path):
    root = make_ready(tmp_path / "clone")
    lines, link = [], record.GENESIS
    for seq, body in enumerate(bodies(), 1):
        line, whole = record.serialize_and_hash(body, seq, link)
        link = whole["entry_hash"]
        lines.append(line)
    (root / "audit/audit-log.jsonl").write_bytes(b"".join(lines))
    return root


def test_a_session_begins_over_records_of_any_members_again_and_again(clone):
    assert verify_log(os.path.realpath(clone)).verdict == "intact"
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


LOCK = {"role": "WINDSURF", "error_code": "HASH_MISMATCH", "session_id": "s", "request_id": "r", "seq": 1, "at": "t"}
USE = {"files": [["a", 1]], "lines": 1}
SEAL = {"plan_hash": "0" * 64, "how": "edited", "approved_by": None, "seq": 1}
CHANGE = {"path": "a", "source": None, "operation": "create", "before_hash": None, "after_hash": "0" * 64}
CHANGE |= {"size": 1, "lines_added": 1, "lines_removed": 0, "mode": None}
INTENT = {"seq": 1, "session_id": "s", "tool_name": "t", "plan_id": None, "plan_hash": None, "detail": None}
INTENT |= {"changes": [CHANGE]}
PARTS = {
    "frozen": {"reason": "r", "person": "p", "at": "t"},
    "locks": LOCK,
    "released": {"role": "WINDSURF", "at": ["t"]},
    "reports": {"at": ["t"]},
    "seals": {"plan_id": "PLAN-1", "seal": SEAL},
    "approvals": {"plan_id": "PLAN-1", "plan_hash": "0" * 64},
    "withdrawn": {"plan_id": "PLAN-1", "action": "revoke"},
    "usage": {"plan_id": "PLAN-1", "use": USE},
    "intents": {"request_id": "r", "intent": INTENT, "at": 0},
}
STRANGE = [*ODD, [[7, 1]], -1, 1 << 63, {"files": [["a", "b"]]}, {"files": [], "lines": -1}, {**SEAL, "plan_hash": 7}]
STRANGE += [{"changes": []}, {**INTENT, "detail": 7}, {**INTENT, "changes": [{**CHANGE, "size": "x"}]}]


def standings():
    """What a new log takes over, each with one member that is not what ours have there, or without it."""
    for name, whole in PARTS.items():
        for member in whole:
            for odd in STRANGE:
                piece = {**whole, member: odd}
                yield {name: piece if name == "frozen" else [piece]}
            piece = {key: value for key, value in whole.items() if key != member}
            yield {name: piece if name == "frozen" else [piece]}


TOOLS = [("session_status", {}), ("write_report", {"title": "t", "content": "c"})]
CONTROLS = "\x1b[2J\u202e\r\x9b"


def first_line(kind="person", **members):
    """A log of one record."""
    return record.serialize_and_hash(record.new_body(kind, **{**MEMBERS, **members}), 1, record.GENESIS)[0]


def test_what_a_new_log_took_over_stops_no_session_and_no_person_whatever_it_is(tmp_path):
    for number, one in enumerate(standings()):
        root = make_ready(tmp_path / str(number))
        log = root / "audit/audit-log.jsonl"
        log.write_bytes(first_line(detail={"action": "accept", "standing": one}))
        app = App([os.path.realpath(root)])
        told = [app.call("begin_session", {"role": "WINDSURF"}).envelope]
        told += [app.call(tool, arguments).envelope for tool, arguments in TOOLS]
        app.close()
        log.write_bytes(log.read_bytes() + b"no record\n")
        accepted = accept_damage(os.path.realpath(root), reason="r", person="p")

        assert told == [None, None, None], one
        assert accepted is not None, one


@pytest.mark.parametrize("words", [["plan", "show", "PLAN-1"], ["session", "show", "s"], ["status"]])
def test_no_record_of_a_clone_sends_control_characters_to_a_terminal(tmp_path, words):
    root = make_ready(tmp_path / "clone")
    plan(root)
    log = root / "audit/audit-log.jsonl"
    kind = "plan" if words[0] == "plan" else "call"
    odd = {name: text + CONTROLS for name, text in MEMBERS.items() if name in {"plan_hash", "session_id", "role"}}
    log.write_bytes(first_line(kind, **odd, arguments={}))
    told = subprocess.run([sys.executable, "-m", "kaiza", *words], cwd=root, capture_output=True, check=False)
    shown = (told.stdout + told.stderr).decode()

    assert told.returncode == 0
    assert not set(CONTROLS) & set("\x1b\u202e\r\x9b") & set(shown)


def test_a_freeze_binds_and_is_told_whatever_its_reason_is(tmp_path):
    root = make_ready(tmp_path / "clone")
    approved = plan(root)
    log = root / "audit/audit-log.jsonl"
    log.write_bytes(first_line(detail={"action": "freeze", "reason": ["x"], "person": {"a": 1}}))
    told = subprocess.run([sys.executable, "-m", "kaiza", "status"], cwd=root, capture_output=True, check=False)
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    refused = app.call("write_file", {"path": "src/a", "content": "x", "plan_hash": approved}).envelope
    app.close()

    assert b"frozen" in told.stdout.lower()
    assert b"Traceback" not in told.stderr
    assert refused["error_code"] == "POLICY_VIOLATION"
