"""Undos of many changes: one record in memory at a time, and an early refusal of what one record cannot hold."""

import argparse
import hashlib
import tracemalloc
from collections import deque

import pytest
from agents import plan
from logs import chained, write_log
from scenes import records

from kaiza.cli.undo.command import select_records
from kaiza.domain.audit.inverse_changes import invert
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undo_batches import UndoneCalls
from kaiza.domain.caps import Caps
from kaiza.queries.undoable_changes import read_changes
from kaiza.store.workspace import Workspace
from kaiza.tools.changing import undo_plan

SCOPE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"]}'
NAME = "x" * 90
CALLS, FILES_PER_CALL = 6, 180
EMPTY = hashlib.sha256(b"").hexdigest()


def create_patch(paths):
    return "".join(f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n" for path in paths)


@pytest.fixture
def changed(begun, workspace):
    """A session that created more files than the record of an undo can list; the plan's hash."""
    (workspace / "src").mkdir()
    approved = plan(workspace, scope=SCOPE)
    for number in range(CALLS):
        paths = [f"src/{number}-{each}-{NAME}" for each in range(FILES_PER_CALL)]
        outcome = begun.call("apply_patch", {"patch": create_patch(paths), "plan_hash": approved})
        assert outcome.envelope is None, outcome.envelope
    return approved


def test_an_undo_that_one_record_cannot_hold_is_refused_before_any_file_is_read(begun, changed, monkeypatch):
    read, stats = [], []
    with monkeypatch.context() as watching:
        watching.setattr(undo_plan.target_file, "read_target", lambda path, *_, **__: read.append(path))
        may_change = undo_plan._may_change
        watching.setattr(undo_plan, "_may_change", lambda path, *rest: stats.append(path) or may_change(path, *rest))
        refused = begun.call("undo_changes", {"all_of_session": True, "plan_hash": changed, "dry_run": True}).envelope

    assert (refused["error_code"], refused["cause"]["cap"]) == ("CAP_EXCEEDED", "record_bytes")
    assert read == []
    assert len(stats) < CALLS * FILES_PER_CALL


def test_files_that_a_person_removed_or_changed_meanwhile_do_not_count_against_an_undo(begun, changed, workspace):
    files = sorted((workspace / "src").iterdir())
    for file in files[:400]:
        file.unlink()
    for file in files[400:700]:
        file.write_text("mine, and longer\n")
    outcome = begun.call("undo_changes", {"all_of_session": True, "plan_hash": changed})

    assert outcome.envelope is None
    assert len(records(workspace)[-1]["changes"]) == CALLS * FILES_PER_CALL - 700
    assert {file.read_text() for file in (workspace / "src").iterdir()} == {"mine, and longer\n"}
    assert len(list((workspace / "src").iterdir())) == 300


def test_the_early_refusal_never_refuses_what_the_record_could_hold(begun, changed, workspace):
    files = sorted((workspace / "src").iterdir())
    results = []
    for count in range(20):  # fewer and fewer files to undo, until it fits
        outcome = begun.call("undo_changes", {"all_of_session": True, "plan_hash": changed, "dry_run": True})
        results.append(outcome.envelope is None)
        with pytest.MonkeyPatch.context() as patch:  # only the record itself refuses
            patch.setattr(undo_plan, "_LEAST_CHANGE_BYTES", 0)
            late = begun.call("undo_changes", {"all_of_session": True, "plan_hash": changed, "dry_run": True})
        if outcome.envelope is not None and late.envelope is None:
            pytest.fail(f"refused early with {count * 30} files fewer")
        if results[-1]:
            break
        for file in files[count * 30 : count * 30 + 30]:
            file.unlink()

    assert results[0] is False
    assert results[-1] is True


def select(workspace, **wanted):
    names = {"request": None, "session": None, "plan": None, "last": False} | wanted
    calls = UndoneCalls()
    opened = Workspace(str(workspace), Caps())
    try:
        is_selected = select_records(argparse.Namespace(**names), opened)
        return invert(calls.note(read_changes(opened), is_selected), is_selected), calls
    finally:
        opened.close("2026-11-18T09:00:00.000Z")


@pytest.mark.parametrize(
    "wanted", [{"plan": "PLAN-1"}, {"session": "sess"}, {"request": ["r"]}], ids=["plan", "session", "request"]
)
def test_an_undo_of_thousands_of_changes_holds_one_record_at_a_time(workspace, wanted):
    change = {"path": "src/a", "source": None, "operation": "modify", "before_hash": EMPTY, "after_hash": EMPTY}
    change |= {"size": 0, "lines_added": 0, "lines_removed": 0, "mode": 0o644}
    members = {"plan_id": "PLAN-1", "session_id": "sess-1", "request_id": "r", "tool_name": "write_file"}
    detail = {"modes": {"src/a": 0o644}, "more": "x" * 8000}
    write_log(workspace, b"".join(chained(3000, changes=[change], detail=detail, **members)))
    select(workspace, **wanted)
    tracemalloc.start()
    inverses, _ = select(workspace, **wanted)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert list(inverses) == ["src/a"]
    assert peak < 6 << 20  # the log has 27 MB, and is read in blocks of one


def test_calls_before_and_after_moves_are_found_for_every_name_that_a_file_had():
    def row(number, path, source=None):
        return Record({"request_id": str(number), "changes": [{"path": path, "source": source}]})

    rows = [row(1, "a"), row(2, "b", "a"), row(3, "b"), row(4, "a"), row(5, "c", "b"), row(6, "x")]
    calls = UndoneCalls()
    deque(calls.note(reversed(rows), lambda _row: True), maxlen=0)
    found = {name: calls.ids(calls._numbers[name]) for name in "abcx"}

    assert found == {"a": ("4", "2", "1"), "b": ("5", "3", "2", "1"), "c": ("5", "3", "2", "1"), "x": ("6",)}
