"""Cleanup of stored contents: what recent changes, open intents, journals and approvals need stays."""

import hashlib
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest
from agents import plan
from doors import until
from scenes import bind, records

from kaiza.domain.audit import record
from kaiza.domain.caps import Caps
from kaiza.domain.refusal import UndeterminedError
from kaiza.store import human_decisions
from kaiza.store.object_cleanup import ObjectCleanup
from kaiza.store.workspace import Workspace

WIDE = '{modify: ["src/**"], create: ["src/**"], delete: ["src/**"]}'


def sha(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def project(workspace):
    (workspace / "src").mkdir()
    bind(workspace)
    return workspace


@pytest.fixture
def approved(project):
    return plan(project, scope=WIDE)


@pytest.fixture
def opened(project):
    workspaces = []

    def open_workspace():
        workspaces.append(Workspace(str(project), Caps()))
        workspaces[-1].log.catch_up()
        return workspaces[-1]

    yield open_workspace
    for each in workspaces:
        each.close("2026-11-18T09:00:00.000Z")


def change(app, path, old, new, approved, **more):
    """Write a file that had this content."""
    outcome = app.call(
        "write_file",
        {"path": path, "content": new, "expected_hash": sha(old.encode()), "plan_hash": approved, **more},
    )
    assert outcome.envelope is None, outcome.envelope
    return outcome.output["request_id"]


def objects(project):
    return {name.removesuffix(".z") for name in os.listdir(project / ".kaiza/objects")}


def now():
    return datetime.now(UTC)


def clear(workspace, cutoff):
    cleanup = ObjectCleanup(workspace, cutoff)
    return {each.digest for each in cleanup.remove(cleanup.plan()).removable}


def past(project, time):
    """Wait until what is written has a later time: the clock of files has ticks of up to 10 ms."""
    probe = project.parent / "probe"

    def is_later():
        probe.write_text("")
        return probe.stat().st_mtime > time.timestamp()

    until(is_later)


def later():
    """A time that no file and no record has reached."""
    return now() + timedelta(days=1)


def test_what_no_recent_change_names_is_cleared_and_the_rest_stays(project, make_app, opened, approved):
    for name in ("old", "new"):
        (project / "src" / name).write_text(f"{name} 1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/old", "old 1\n", "old 2\n", approved)
    app.call("end_session", {})
    between = now()
    past(project, between)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/new", "new 1\n", "new 2\n", approved)

    cleared = clear(opened(), between)

    assert sha(b"old 1\n") in cleared
    assert sha(b"old 1\n") not in objects(project)
    assert not cleared & {sha(b"new 1\n"), sha(b"new 2\n")}
    assert sha(b"new 1\n") in objects(project)


def test_the_earlier_changes_of_a_session_that_went_on_stay(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    between = now()
    past(project, between)
    app.call("read_file", {"path": "src/a"})

    assert clear(opened(), between) == set()
    assert sha(b"1\n") in clear(opened(), later())


def test_a_content_that_a_recent_change_wrote_again_stays(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    app.call("end_session", {})
    between = now()
    past(project, between)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "2\n", "1\n", approved)

    assert sha(b"1\n") not in clear(opened(), between)


def test_the_text_of_approved_plans_stays_at_any_age(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)

    assert approved in objects(project)
    assert approved not in clear(opened(), later())


def test_what_an_open_intent_names_stays_at_any_age(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    workspace = opened()
    (made,) = next(each["changes"] for each in records(project) if each["kind"] == "intent")
    body = record.new_body("intent", timestamp="2020-01-01T00:00:00.000Z", request_id="open", changes=[made], detail={})
    workspace.log.append(lambda: body, durable=False)

    assert clear(workspace, later()) == set()


def test_what_a_journal_names_stays_whoever_wrote_it_and_one_that_cannot_be_read_stops_the_cleanup(
    project, make_app, opened, approved
):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    journal = project / ".kaiza/journal/from-elsewhere"
    journal.write_text(f'{{"before": "{sha(b"1" + bytes([10]))}"}}')
    kept = clear(opened(), later())
    journal.unlink()
    os.mkfifo(journal)

    assert kept == {sha(b"2\n")}  # what the change wrote is kept for reviews only
    with pytest.raises(UndeterminedError):
        clear(opened(), later())
    assert sha(b"1\n") in objects(project)


def test_what_a_server_announces_after_the_plan_is_not_removed(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    change(app, "src/a", "2\n", "3\n", approved)
    app.call("end_session", {})
    cleanup = ObjectCleanup(opened(), later())
    planned = cleanup.plan()
    # Its record is older than the time, but it is open: nobody knows yet how it ends.
    writer = opened()
    writer.log.append(
        lambda: record.new_body(
            "intent",
            timestamp="2020-01-01T00:00:00.000Z",
            request_id="open",
            changes=[next(each["changes"] for each in records(project) if each["kind"] == "intent")[0]],
            detail={},
        ),
        durable=False,
    )
    removed = {each.digest for each in cleanup.remove(planned).removable}

    assert {each.digest for each in planned.removable} >= {sha(b"1\n"), sha(b"2\n")}
    assert not removed & {sha(b"1\n"), sha(b"2\n")}  # the intent names both: before and after
    assert objects(project) >= {sha(b"1\n"), sha(b"2\n")}


def test_an_object_that_is_used_again_after_the_plan_is_not_removed(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    app.call("end_session", {})
    cutoff = now()
    cleanup = ObjectCleanup(opened(), cutoff)
    planned = cleanup.plan()
    past(project, cutoff)
    (project / "src/b").write_text("1\n")
    app.call("begin_session", {"role": "WINDSURF"})
    made = change(app, "src/b", "1\n", "9\n", approved)
    removed = cleanup.remove(planned).removable

    assert sha(b"1\n") in {each.digest for each in planned.removable}
    assert sha(b"1\n") not in {each.digest for each in removed}
    assert app.call("undo_changes", {"request_ids": [made], "plan_hash": approved}).envelope is None
    assert (project / "src/b").read_text() == "1\n"


def test_an_object_that_was_stored_again_without_a_record_yet_is_not_removed(project, make_app, opened, approved):
    (project / "src/a").write_text("1\n")
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    change(app, "src/a", "1\n", "2\n", approved)
    app.call("end_session", {})
    workspace, cutoff = opened(), now()
    cleanup = ObjectCleanup(workspace, cutoff)
    planned = cleanup.plan()
    past(project, cutoff)
    human_decisions.store_plan_bytes(workspace, sha(b"1\n"), b"1\n")
    cleanup.remove(planned)

    assert sha(b"1\n") in {each.digest for each in planned.removable}
    assert sha(b"1\n") in objects(project)


def test_names_that_are_no_objects_are_left_alone_and_leftovers_are_cleared(project, opened):
    directory = project / ".kaiza/objects"
    workspace = opened()
    workspace.begin_recording()
    workspace.log.append(lambda: record.new_body("person", timestamp="2026-11-18T09:00:00.000Z"), durable=False)
    workspace.blobs.kaiza_dir.open_directory("objects")
    digest = "a" * 64
    (directory / "README").write_text("mine")
    (directory / f".{digest}.0123456789ab").write_text("half")
    (directory / ("b" * 64)).mkdir()
    (directory / ("c" * 64)).symlink_to("/etc/hostname")

    assert clear(workspace, later()) == {digest}
    assert sorted(os.listdir(directory)) == ["README", "b" * 64, "c" * 64]


KILLED = """
import os, signal, sys
from datetime import UTC, datetime, timedelta
from kaiza.domain.caps import Caps
from kaiza.store import object_cleanup
from kaiza.store.workspace import Workspace
real, left = os.unlink, [int(sys.argv[2])]
def unlink(*words, **options):
    if left[0] == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left[0] -= 1
    real(*words, **options)
workspace = Workspace(sys.argv[1], Caps())
workspace.log.catch_up()
os.unlink = unlink
cleanup = object_cleanup.ObjectCleanup(workspace, datetime.now(UTC) + timedelta(days=1))
cleanup.remove(cleanup.plan())
"""


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_a_cleanup_that_is_killed_half_way_leaves_a_sound_workspace(project, make_app, opened, approved, removed):
    app = make_app(project)
    app.call("begin_session", {"role": "WINDSURF"})
    (project / "src/a").write_text("0\n")
    for number in range(4):
        change(app, "src/a", f"{number}\n", f"{number + 1}\n", approved)
    before = objects(project)
    ended = subprocess.run([sys.executable, "-c", KILLED, str(project), str(removed)], check=False, timeout=60)
    left = objects(project)
    made = change(app, "src/a", "4\n", "5\n", approved)
    undone = app.call("undo_changes", {"request_ids": [made], "plan_hash": approved})

    assert ended.returncode == -signal.SIGKILL
    assert (len(left), undone.envelope) == (len(before) - removed, None)
    assert (project / "src/a").read_text() == "4\n"
    clear(opened(), later())
    assert objects(project) == {approved}
