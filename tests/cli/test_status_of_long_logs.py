"""Commands on a long log without an index: `status` reads it once and saves what it read; a freeze does not wait."""

import json

import pytest
from logs import log_path
from unread_logs import another_reads, forget_index, make_long, read_whole, state_path

from kaiza.store.audit import projection_build, snapshot
from kaiza.store.disk.state_key import StateKey


@pytest.fixture
def long_log(workspace, story, monkeypatch):
    """A log of two sessions without an index."""
    forget_index(workspace)
    make_long(monkeypatch)
    return workspace


def load(root):
    return snapshot.load(state_path(root), log_path(root), StateKey(state_path(root)))


def test_status_saves_an_index_which_the_next_command_uses(kaiza, long_log, monkeypatch):
    shown = kaiza("status", "--json")
    state, head = load(long_log)
    readings = []
    monkeypatch.setattr(projection_build.ProjectionBuild, "start", readings.append)

    assert (shown.status, shown.err) == (0, "")
    status = json.loads(shown.out)
    assert [lock["role"] for lock in status["locks"]] == ["WINDSURF"]
    assert head.seq == status["record"]["records"] == 8
    assert state.locks == read_whole(long_log).locks
    assert json.loads(kaiza("status", "--json").out) == status
    assert readings == []


def test_status_of_a_workspace_from_elsewhere_writes_nothing(kaiza, long_log):
    for path in state_path(long_log).iterdir():
        path.unlink()
    state_path(long_log).rmdir()
    shown = kaiza("status", "--json")

    assert json.loads(shown.out)["standing"] == "foreign"
    assert not state_path(long_log).exists()


def test_a_freeze_does_not_wait_until_the_log_is_read(kaiza, long_log):
    with another_reads(long_log):
        assert kaiza("freeze", "wait").status == 0

    assert read_whole(long_log).frozen.reason == "wait"
    assert json.loads(kaiza("status", "--json").out)["frozen"]["reason"] == "wait"
    assert load(long_log)[0].frozen.reason == "wait"
