"""A snapshot counts only with the code of this machine's key: what is in it otherwise is read from the log again."""

import os

import orjson
import pytest
from agents import person, plan
from logs import error_code_of

from kaiza.app import App
from kaiza.store.audit import snapshot
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_key import StateKey


def snapshot_of(root):
    return state_dir.path_of(os.path.realpath(root)) / "index.json"


@pytest.fixture
def frozen(workspace):
    """A workspace that a person froze, with a plan whose one operation is used up."""
    plan_hash = plan(workspace, more="limits: {operations: 1}\n")
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    assert error_code_of(app, "write_file", path="src/a.py", content="x\n", plan_hash=plan_hash) == "ok"
    app.close()
    assert person(workspace, "freeze", "wait") == 0
    assert snapshot_of(workspace).exists()
    return plan_hash


def lift(path, *, code_of=lambda body, code: code):
    """The freeze and the used limits taken out of a snapshot."""
    told, _, body = path.read_bytes().partition(b"\n")
    facts = orjson.loads(body)
    assert facts["facts"]["frozen"]
    facts["facts"] |= {"frozen": None, "usage": {}}
    changed = orjson.dumps(facts)
    path.write_bytes(code_of(changed, told) + b"\n" + changed)


def change(root, plan_hash):
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    told = app.call("write_file", {"path": "src/b.py", "content": "x\n", "plan_hash": plan_hash})
    app.close()
    return told.envelope["invariant_id"] if told.envelope else None


@pytest.mark.parametrize("forged", [b"0" * 64, b"", b"\xff" * 64, None])
def test_a_snapshot_without_the_right_code_lifts_no_freeze(workspace, frozen, forged):
    lift(snapshot_of(workspace), code_of=lambda _, code: code if forged is None else forged)

    assert change(workspace, frozen) == "WORKSPACE_FROZEN"


def test_a_snapshot_without_the_right_code_gives_no_used_up_limit_back(workspace, frozen, monkeypatch):
    lift(snapshot_of(workspace))
    facts, head = snapshot.load(
        snapshot_of(workspace).parent,
        workspace / "audit/audit-log.jsonl",
        StateKey(snapshot_of(workspace).parent),
    )

    assert (facts.frozen, head) == (None, None)
    assert facts.sessions == {}
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    (used,) = app.call("session_status", {}).output["plan_use"]
    app.close()
    assert used["operations"] == 1


def test_a_snapshot_of_the_version_before_is_built_anew(workspace, frozen):
    path = snapshot_of(workspace)
    told = orjson.loads(path.read_bytes().partition(b"\n")[2])
    told["format"] = 1
    told["facts"] |= {"frozen": None}
    path.write_bytes(orjson.dumps(told))

    assert change(workspace, frozen) == "WORKSPACE_FROZEN"
    assert path.read_bytes()[64:65] == b"\n"


def test_a_snapshot_of_our_own_spares_reading_the_log(workspace, frozen):
    place = snapshot_of(workspace).parent
    facts, head = snapshot.load(place, workspace / "audit/audit-log.jsonl", StateKey(place))

    assert head is not None
    assert facts.frozen is not None
    assert snapshot.load_unchecked(place, StateKey(place)) == (facts, head.seq, True)


def test_what_is_not_ours_is_known_as_such(workspace, frozen):
    place = snapshot_of(workspace).parent
    lift(snapshot_of(workspace))
    facts, _, is_ours = snapshot.load_unchecked(place, StateKey(place))

    assert is_ours is False
    assert facts.frozen is None


def test_a_process_that_ends_late_leaves_a_newer_snapshot_as_it_is(workspace, frozen):
    late = App([os.path.realpath(workspace)])
    late.call("begin_session", {"role": "WINDSURF"})
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    newer = snapshot_of(workspace).read_bytes()
    ground = late.services.workspaces[os.path.realpath(workspace)]
    ground.save_snapshot("2026-11-18T09:00:00.000Z")

    assert snapshot_of(workspace).read_bytes() == newer
    late.close()
