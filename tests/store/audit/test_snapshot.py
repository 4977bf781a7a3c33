"""A snapshot is used only with a valid code of the state directory's key; otherwise the log is read again."""

import os

import orjson
import pytest
from agents import person, plan
from logs import chained, error_code_of

from kaiza.app import App
from kaiza.store.audit import snapshot
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_key import StateKey


def snapshot_path(root):
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
    assert snapshot_path(workspace).exists()
    return plan_hash


def lift_restrictions(path, *, code_of=lambda body, code: code):
    """Remove the freeze and the used limits from a snapshot."""
    code, _, body = path.read_bytes().partition(b"\n")
    content = orjson.loads(body)
    assert content["facts"]["frozen"]
    content["facts"] |= {"frozen": None, "usage": {}}
    changed = orjson.dumps(content)
    path.write_bytes(code_of(changed, code) + b"\n" + changed)


def try_change(root, plan_hash):
    app = App([os.path.realpath(root)])
    app.call("begin_session", {"role": "WINDSURF"})
    answer = app.call("write_file", {"path": "src/b.py", "content": "x\n", "plan_hash": plan_hash})
    app.close()
    return answer.envelope["invariant_id"] if answer.envelope else None


@pytest.mark.parametrize("forged", [b"0" * 64, b"", b"\xff" * 64, None])
def test_a_snapshot_without_a_valid_code_cannot_lift_a_freeze(workspace, frozen, forged):
    lift_restrictions(snapshot_path(workspace), code_of=lambda _, code: code if forged is None else forged)

    assert try_change(workspace, frozen) == "WORKSPACE_FROZEN"


def test_a_snapshot_without_a_valid_code_cannot_reset_a_used_limit(workspace, frozen, monkeypatch):
    lift_restrictions(snapshot_path(workspace))
    state, head = snapshot.load(
        snapshot_path(workspace).parent,
        workspace / "audit/audit-log.jsonl",
        StateKey(snapshot_path(workspace).parent),
    )

    assert (state.frozen, head) == (None, None)
    assert state.sessions == {}
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    (used,) = app.call("session_status", {}).output["plan_use"]
    app.close()
    assert used["operations"] == 1


def test_a_snapshot_of_another_format_is_rebuilt(workspace, frozen):
    path = snapshot_path(workspace)
    content = orjson.loads(path.read_bytes().partition(b"\n")[2])
    content["format"] -= 1
    content["facts"] |= {"frozen": None}
    snapshot.save(path.parent, orjson.dumps(content), StateKey(path.parent))

    assert try_change(workspace, frozen) == "WORKSPACE_FROZEN"


@pytest.mark.parametrize(
    ("edit", "is_used"),
    [
        (lambda log, head: log, True),
        (lambda log, head: log + b"more", True),
        (lambda log, head: log[: head.size - 1], False),
        (lambda log, head: log[head.size // 2 :], False),
        (lambda log, head: b"".join(chained(50)), False),
        (lambda log, head: b"", False),
    ],
    ids=["the same", "longer", "cut", "without its beginning", "another", "empty"],
)
def test_a_snapshot_is_used_only_for_a_log_that_contains_its_last_record(workspace, frozen, edit, is_used):
    directory, log = snapshot_path(workspace).parent, workspace / "audit/audit-log.jsonl"
    _, head = snapshot.load(directory, log, StateKey(directory))
    log.write_bytes(edit(log.read_bytes(), head))
    state, loaded = snapshot.load(directory, log, StateKey(directory))

    assert (state.frozen is not None, loaded) == ((True, head) if is_used else (False, None))


def test_a_process_that_ends_late_does_not_overwrite_a_newer_snapshot(workspace, frozen):
    late = App([os.path.realpath(workspace)])
    late.call("begin_session", {"role": "WINDSURF"})
    assert person(workspace, "plan", "revoke", "PLAN-1") == 0
    newer = snapshot_path(workspace).read_bytes()
    late_workspace = late.services.workspaces[os.path.realpath(workspace)]
    late_workspace.save_snapshot("2026-11-18T09:00:00.000Z")

    assert snapshot_path(workspace).read_bytes() == newer
    late.close()
