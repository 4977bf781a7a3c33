"""A plan's limits are counted over sessions, processes and restarts, even in a race for the last change."""

import hashlib
import json
import multiprocessing
import os

import pytest
from agents import Agent, plan
from scenes import records

from kaiza.app import App

PROCESSES = 10
SCOPE = '{modify: ["src/**"], create: ["src/**"]}'


def write_files(arguments, start, results):
    """Create files in a session of its own, as fast as possible; runs in a process of its own."""
    root, number, plan_hash, files, content, state = arguments
    os.environ["XDG_STATE_HOME"] = state
    app = App([root])
    app.call("begin_session", {"role": "WINDSURF"})
    start.wait(30)
    codes = []
    for turn in range(files):
        change = {"path": f"src/{number}-{turn}", "content": content, "plan_hash": plan_hash}
        outcome = app.call("write_file", change)
        codes.append(outcome.envelope and (outcome.envelope["error_code"], outcome.envelope["invariant_id"]))
    app.close()
    results.put(codes)


def race(root, plan_hash, *, files=10, content="x\n"):
    """Error codes of ten processes that write at the same time, file by file."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kaiza.app", "kaiza.store.audit.log_file", "jsonschema", "ruamel.yaml"])
    start, results = context.Barrier(PROCESSES), context.Queue()
    state, root = os.environ["XDG_STATE_HOME"], os.path.realpath(root)
    calls = [(root, number, plan_hash, files, content, state) for number in range(PROCESSES)]
    workers = [context.Process(target=write_files, args=(call, start, results)) for call in calls]
    for worker in workers:
        worker.start()
    codes = [code for _ in workers for code in results.get(timeout=60)]
    for worker in workers:
        worker.join(60)
    return codes


@pytest.mark.parametrize(("limit", "left"), [("files: 3", 3), ("lines: 10", 5), ("bytes: 13", 6)])
def test_ten_processes_racing_for_a_limit_make_exactly_as_many_changes_as_it_allows(workspace, limit, left):
    (workspace / "src").mkdir()
    approved = plan(workspace, scope=SCOPE, more=f"limits: {{{limit}}}\n")
    codes = race(workspace, approved, content="x\n" if not limit.startswith("lines") else "a\nb\n")
    intents = [entry for entry in records(workspace) if entry["kind"] == "intent"]

    assert len(os.listdir(workspace / "src")) == left == len(intents)
    assert codes.count(None) == left
    assert {code for code in codes if code} == {("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED")}


def test_a_limit_is_counted_over_servers_started_one_after_another(workspace):
    (workspace / "src").mkdir()
    approved = plan(workspace, scope=SCOPE, more="limits: {files: 3}\n")
    codes = []
    for number in range(5):
        agent = Agent(workspace)
        codes.append(agent.write(f"src/{number}", approved))
        agent.close()

    assert codes == ["ok"] * 3 + ["PLAN_SCOPE_VIOLATION"] * 2
    assert sorted(os.listdir(workspace / "src")) == ["0", "1", "2"]


def test_dry_runs_and_unchanged_writes_are_free_and_a_file_counts_once(workspace):
    (workspace / "src").mkdir()
    approved = plan(workspace, scope=SCOPE, more="limits: {files: 1, operations: 3}\n")
    agent = Agent(workspace)
    codes = [agent.write(f"src/{number}", approved, dry_run=True) for number in range(5)]
    codes += [agent.write("src/a", approved) for _ in range(5)]
    digest = hashlib.sha256(b"x\n").hexdigest()
    codes += [agent.write("src/a", approved, "y\n", expected_hash=digest), agent.write("src/b", approved)]
    usage = agent.call("session_status")["plan_use"]
    agent.close()

    assert codes == ["ok"] * 11 + ["PLAN_SCOPE_VIOLATION"]
    assert json.dumps([(row["files"], row["operations"]) for row in usage]) == "[[1, 2]]"


def test_the_limit_of_refusals_is_counted_over_sessions_and_unlocks(workspace):
    (workspace / "src").mkdir()
    approved = plan(workspace, scope=SCOPE, more="limits: {refusals: 2}\n")
    agents = [Agent(workspace), Agent(workspace)]
    for agent in agents:
        assert agent.write("elsewhere", approved) == "PLAN_SCOPE_VIOLATION"
        assert agent.call("write_report", title="t", content="c")["state"] == "active"
    envelopes = [agent.call("write_file", path="src/a", content="x", plan_hash=approved) for agent in agents]
    for agent in agents:
        agent.close()

    assert [
        (envelope["error_code"], envelope["invariant_id"], envelope["cause"]["limit"]) for envelope in envelopes
    ] == [("PLAN_SCOPE_VIOLATION", "PLAN_LIMIT_REACHED", "refusals")] * 2
