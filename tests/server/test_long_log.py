"""A real server on a log of many records without an index."""

import pytest
from agents import Agent, plan
from doors import until
from logs import LONG, body, log_path
from scenes import records
from unread_logs import forget_index, read_whole, state_path

from kaiza.domain.audit import record
from kaiza.store.audit import snapshot
from kaiza.store.disk.state_key import StateKey

COUNT = 1_000_000 if LONG else 50_000


@pytest.fixture
def long_log(workspace):
    """A workspace that was set up here, whose log then grew, and whose index is gone; the hash of a plan."""
    (workspace / "a.txt").write_text("text\n")
    Agent(workspace).close()
    last = records(workspace)[-1]
    seq, link = last["seq"], last["entry_hash"]
    with log_path(workspace).open("ab") as log:
        for _ in range(COUNT):
            seq += 1
            line, written = record.serialize_and_hash(body(session_id="earlier", role="WINDSURF"), seq, link)
            link = written.entry_hash
            log.write(line)
    forget_index(workspace)
    return plan(workspace)


@pytest.mark.long
def test_a_session_begins_at_once_and_changes_go_ahead_when_the_log_is_read(workspace, long_log):
    agent = Agent(workspace)
    try:
        begun, read = agent.begun, agent.call("read_file", path="a.txt")
        until(lambda: agent.call("session_status")["state"] is not None)
        changed = until_not(lambda: agent.write("src/new.py", long_log), "AUDIT_LOG_FAILED")
    finally:
        agent.close()

    assert (begun["audit"]["checked"], begun["audit"]["verdict"]) == ("tail", "intact")
    assert (begun["state"], begun["recovered"]) == (None, None)
    assert begun["audit"]["seq"] > COUNT
    assert read["content"] == "text\n"
    assert changed == "ok"
    state, head = snapshot.load(state_path(workspace), log_path(workspace), StateKey(state_path(workspace)))
    whole = read_whole(workspace)
    assert head.size == log_path(workspace).stat().st_size
    assert (state.seals, state.usage, state.locks) == (whole.seals, whole.usage, whole.locks)


def until_not(act, code):
    """The first result other than this code."""
    results = []
    until(lambda: results.append(act()) or results[-1] != code)
    return results[-1]
