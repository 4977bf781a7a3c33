"""Reading a long log in the background: killed, raced, or fed another log, it never leaves a wrong answer."""

import os
import sys

import pytest
from agents import person, plan
from logs import LONG, log_path, start_python, write_log
from scenes import make_ready, records
from unread_logs import another_reads, forget_index, make_long, read_whole, state_path

from kaiza.app import App
from kaiza.domain.audit.record import Record
from kaiza.domain.caps import Caps
from kaiza.store.audit import projection_build, snapshot
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.disk.state_key import StateKey
from kaiza.store.workspace import Workspace

NOW = "2026-11-18T09:00:00.000Z"
STRIDE = 1 if LONG else 5

# Reads the log of argv[1], saving at each record; ends at step argv[2] of those that argv[3] names, as by `kill -9`.
_READER = """
import os, sys
from kaiza.domain.audit.hash_chain import Chain
from kaiza.domain.caps import Caps
from kaiza.store.audit import continuity, projection_build, snapshot
from kaiza.store.disk import small_files
from kaiza.store.workspace import Workspace

continuity.MAX_FOLLOWED_BYTES, continuity._FAR_BEHIND_BYTES = 0, 100
projection_build.RECORDS_PER_SAVE = projection_build._LINES_PER_STEP = 1
left = int(sys.argv[2])

def killing(step):
    def run(*args, **kwargs):
        global left
        left -= 1
        if left == 0:
            os._exit(9)
        result = step(*args, **kwargs)
        left -= 1
        if left == 0:
            os._exit(9)
        return result
    return run

if sys.argv[3] == "save":
    snapshot.save = killing(snapshot.save)
elif sys.argv[3] == "write":
    small_files.write_all = killing(small_files.write_all)
    os.rename = killing(os.rename)
else:
    Chain.extend = killing(Chain.extend)
workspace = Workspace(sys.argv[1], Caps())
workspace.log.catch_up()
while workspace.projection.wait(60) is not None:
    pass
workspace.close("2026-11-18T09:00:00.000Z")
"""


@pytest.fixture
def root(workspace):
    """A workspace with a used limit, a lock, a withdrawn plan and a freeze in its log."""
    used = plan(workspace, more="limits: {operations: 3}\n")
    app = App([os.path.realpath(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    for number in range(2):
        app.call("write_file", {"path": f"src/{number}.py", "content": "x\n", "plan_hash": used})
    app.call("write_file", {"path": "outside.py", "content": "x\n", "plan_hash": used})
    app.close()
    plan(workspace, "PLAN-2")
    assert person(workspace, "plan", "revoke", "PLAN-2") == 0
    assert person(workspace, "freeze", "wait") == 0
    return os.path.realpath(workspace)


def load(root):
    return snapshot.load(state_path(root), log_path(root), StateKey(state_path(root)))


def fold(root, count):
    """The state after the first records."""
    from kaiza.domain.audit.projection import AuditState
    from kaiza.domain.audit.record_folding import apply_record

    state = AuditState()
    for each in records(root)[:count]:
        apply_record(state, Record(each))
    return state


def read_in_background(root):
    """The state that a new process has once it has read the log."""
    workspace = Workspace(root, Caps())
    try:
        workspace.log.catch_up()
        assert workspace.projection.wait(60) is None
        return workspace.audit_state
    finally:
        workspace.close(NOW)


@pytest.mark.long
@pytest.mark.parametrize("step", ["save", "write", "extend"])
def test_a_reader_killed_at_any_step_leaves_the_state_of_the_first_records_or_none(root, step, monkeypatch):
    make_long(monkeypatch)
    whole, saved = read_whole(root), set()
    for at in range(1, 10_000, STRIDE):
        forget_index(root)
        with start_python(_READER, root, at, step, stderr=sys.stderr) as reader:
            status = reader.wait(60)
        state, head = load(root)
        if head is not None:
            saved.add(head.seq)
            assert state == fold(root, head.seq)
        assert read_in_background(root) == whole
        if status == 0:
            break
        assert status == 9

    assert len(saved) > 2


def test_a_reader_goes_on_from_what_another_has_saved(root, monkeypatch):
    make_long(monkeypatch)
    forget_index(root)
    with start_python(_READER, root, 8, "save") as reader:
        reader.wait(60)
    _, head = load(root)
    begins = []
    original = projection_build._Reading.__init__

    def note(self, descriptor, state, apply, start):
        begins.append(start)
        original(self, descriptor, state, apply, start)

    monkeypatch.setattr(projection_build._Reading, "__init__", note)

    assert read_in_background(root) == read_whole(root)
    assert 1 < head.seq < len(records(root))
    assert begins == [head]


def test_an_approval_in_an_unfinished_snapshot_is_not_carried_over(root, monkeypatch):
    state, head = fold(root, 5), load(root)[1]
    state.approvals["PLAN-9"] = "1" * 64
    snapshot.save(state_path(root), snapshot.encode(state, head, is_unfinished=True), StateKey(state_path(root)))
    assert snapshot.load_unchecked(state_path(root), StateKey(state_path(root)))[2] is False
    log = log_path(root)
    log.write_bytes(log.read_bytes().replace(b'"kind":"intent"', b'"kind":"intant"', 1))
    accepted = accept_damage(root, reason="because", person="Ann")

    standing = [each["detail"]["standing"] for each in records(root)]
    assert accepted is not None
    assert not any("approvals" in part for part in standing)
    assert standing[0]["frozen"]["reason"] == "wait"


def unread(root, act):
    """Let `act` happen to the log while another process reads it; the workspace once it is read."""
    forget_index(root)
    workspace = Workspace(root, Caps())
    with another_reads(root):
        workspace.log.catch_up()
        assert workspace.audit_state.is_partial
        act()
    return workspace


def settle(workspace):
    """Follow the log as calls do, until the state is complete."""
    for _ in range(3):
        workspace.log.catch_up()
        assert workspace.projection.wait(60) is None
    return workspace.audit_state


def cut(root):
    lines = log_path(root).read_bytes().splitlines(keepends=True)
    log_path(root).write_bytes(b"".join(lines[:-2]))


def edit(root):
    log = log_path(root)
    log.write_bytes(log.read_bytes().replace(b'"tool_name":"write_file"', b'"tool_name":"writ__file"', 1))


def replace(root, tmp_path):
    """Put the sound log of another workspace, without freeze or lock, in place of this one."""
    other = make_ready(tmp_path / "other")
    app = App([os.path.realpath(other)])
    app.call("begin_session", {"role": "WINDSURF"})
    for _ in range(30):
        app.call("list_directory", {"path": "."})
    app.close()
    new = log_path(root).with_name("new")
    new.write_bytes(log_path(other).read_bytes())
    new.replace(log_path(root))


@pytest.mark.parametrize("damage", [cut, edit], ids=["cut", "edited"])
def test_a_log_damaged_while_it_is_unread_stops_changes_and_keeps_its_restrictions(root, damage, monkeypatch):
    make_long(monkeypatch)
    workspace = unread(root, lambda: damage(root))
    state = settle(workspace)

    assert workspace.damage() in ("cut_off", "broken")
    assert state.is_partial
    assert workspace.projection.progress is None
    assert state.locks.keys() == {"WINDSURF"}
    workspace.close(NOW)
    assert load(root)[1] is None


def test_a_repaired_log_is_read_again_as_a_whole(root, monkeypatch):
    make_long(monkeypatch)
    sound = log_path(root).read_bytes()
    freeze = sound.index(b'"action":"freeze"')
    log_path(root).write_bytes(sound[:freeze] + b'"action":"fraaze"' + sound[freeze + 17 :])
    monkeypatch.setattr(projection_build, "RECORDS_PER_SAVE", 1)
    workspace = unread(root, lambda: None)
    assert settle(workspace).frozen is None
    assert workspace.damage() == "broken"
    log_path(root).write_bytes(sound)
    assert verify_log(root).verdict == "intact"
    before = workspace.audit_state
    state = settle(workspace)

    assert before.is_partial
    assert state == read_whole(root)
    assert state.frozen is not None
    workspace.close(NOW)


@pytest.mark.parametrize("early", [True, False], ids=["before", "meanwhile"])
def test_of_a_log_that_was_replaced_nothing_is_saved(root, tmp_path, early, monkeypatch):
    make_long(monkeypatch)
    monkeypatch.setattr(projection_build, "RECORDS_PER_SAVE", 1)
    before = snapshot.load_unchecked(state_path(root), StateKey(state_path(root)))[0]
    kept = (state_path(root) / "index.json").read_bytes()
    if early:
        replace(root, tmp_path)
        workspace = Workspace(root, Caps())
        workspace.log.catch_up()
    else:
        workspace = unread(root, lambda: replace(root, tmp_path))
        (state_path(root) / "index.json").write_bytes(kept)
    settle(workspace)

    assert workspace.damage() == "replaced"
    workspace.close(NOW)
    assert (state_path(root) / "index.json").read_bytes() == kept
    assert before.frozen is not None


def test_an_acceptance_while_the_old_log_is_unread_leads_to_the_state_of_the_new_log(root, monkeypatch):
    make_long(monkeypatch)

    def accept():
        edit(root)
        assert accept_damage(root, reason="because", person="Ann") is not None

    workspace = unread(root, accept)
    state = settle(workspace)

    assert workspace.damage() is None
    assert state.frozen == read_whole(root).frozen
    assert state.frozen is not None
    assert state.locks.keys() == read_whole(root).locks.keys() == {"WINDSURF"}
    assert verify_log(root).verdict == "intact"
    workspace.close(NOW)


def test_records_that_others_append_while_the_log_is_read_are_applied_once(root, monkeypatch):
    make_long(monkeypatch)

    def append():
        other = App([root])
        other.call("begin_session", {"role": "ANTIGRAVITY"})
        for _ in range(5):
            other.call("list_directory", {"path": "."})
        other.services.workspaces[root].log.sync()

    workspace = unread(root, append)

    assert settle(workspace) == read_whole(root)
    append()
    workspace.follow()
    assert workspace.audit_state == read_whole(root)
    workspace.close(NOW)


def test_in_a_foreign_workspace_only_restrictions_count_before_and_after_the_log_is_read(root, tmp_path, monkeypatch):
    clone = make_ready(tmp_path / "clone")
    write_log(clone, log_path(root).read_bytes())
    make_long(monkeypatch)
    workspace = Workspace(os.path.realpath(clone), Caps())
    workspace.log.catch_up()
    assert workspace.audit_state.seals == {}
    assert workspace.projection.wait(60) is None
    state = workspace.audit_state

    assert workspace.binding.is_foreign
    assert (state.seals, state.approvals, state.sessions) == ({}, {}, {})
    assert state.frozen is not None
    assert state.withdrawn.keys() == {"PLAN-2"}
    workspace.close(NOW)
    assert not (state_path(clone) / "index.json").exists()


def test_an_adoption_reads_a_long_log_anew_with_its_records_restricted(root, tmp_path, monkeypatch):
    clone = make_ready(tmp_path / "clone")
    write_log(clone, log_path(root).read_bytes())
    real = os.path.realpath(clone)
    make_long(monkeypatch)
    workspace = Workspace(real, Caps())
    workspace.log.catch_up()
    workspace.begin_recording()
    assert workspace.projection.wait(60) is None
    last = len(records(clone))
    with another_reads(clone):
        workspace.adopt(last)
        assert workspace.audit_state.is_partial
        assert not workspace.binding.is_foreign
    assert workspace.projection.wait(60) is None

    assert workspace.audit_state.seals == {}
    assert workspace.audit_state.frozen is not None
    workspace.close(NOW)
