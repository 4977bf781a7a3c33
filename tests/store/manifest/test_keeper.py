"""The manifest in time: the first pass is cut, the rest follows, processes die, and the file is damaged."""

import os
import shutil
import signal
import sqlite3
import sys
import threading
from itertools import count

import pytest
from doors import until
from scenes import make_ready, records

from kaiza.app import App
from kaiza.domain.caps import Caps
from kaiza.store import session_manifest
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.manifest import database, hashing, keeper, scan_writer, tree
from kaiza.store.workspace import Workspace

AGES_AGO = "2020-01-01T00:00:00.000Z"


@pytest.fixture
def project(workspace):
    for directory in "abc":
        (workspace / directory).mkdir()
        for number in range(3):
            (workspace / f"{directory}/{number}").write_text(f"{directory}{number}\n")
    return workspace


@pytest.fixture
def cut(make_app, project):
    """An application whose first pass sees nothing, and whose background thread does not go on until told."""
    app = make_app(project)
    (workspace,) = app.services.workspaces.values()
    workspace.manifest.first_pass_seconds = 0.0
    return app


def hold_background(monkeypatch):
    """Keep the background thread waiting; return the event that lets it go on."""
    go, write = threading.Event(), scan_writer.write_begin

    def wait_and_write(*arguments):
        go.wait(60)
        write(*arguments)

    monkeypatch.setattr(scan_writer, "write_begin", wait_and_write)
    return go


def begin(app):
    return app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]


def end(app, session_id):
    output = app.call("end_session", {"session_id": session_id}).output
    return {(each["path"], each["change"]) for each in output["ungoverned"]}, output["manifest"]


def manifest_of(app):
    (workspace,) = app.services.workspaces.values()
    return workspace.manifest


def database_path(root):
    return state_dir.path_of(str(root)) / database.NAME


def compare(root, session_id):
    """Compare as another process would; the begin is the one in the manifest."""
    workspace = Workspace(os.path.realpath(root), Caps())
    try:
        return session_manifest.compare_session(workspace, session_id, AGES_AGO, "", 30)
    finally:
        workspace.close(AGES_AGO)


def changes(report):
    return {(each.path, each.change) for each in report.ungoverned}


def test_a_first_pass_that_is_cut_is_completed_in_the_background(cut, project):
    session_id = begin(cut)
    manifest_of(cut).wait(session_id, 60)
    (project / "b/1").write_text("X\n")
    (project / "c/2").unlink()

    assert end(cut, session_id) == ({("b/1", "modified"), ("c/2", "deleted")}, "whole")


def test_what_changes_before_the_scan_comes_there_counts_as_changed_since_the_begin(cut, project, monkeypatch):
    go = hold_background(monkeypatch)
    session_id = begin(cut)
    (project / "b/1").write_text("X\n")
    (project / "b/new").write_text("new\n")
    go.set()
    manifest_of(cut).wait(session_id, 60)
    (session,) = [each for each in records(project) if each["session_id"] == session_id]
    report = compare(project, session_id)

    assert session["tool_name"] == "begin_session"
    assert [(each.path, each.change, each.is_before_known) for each in report.ungoverned] == [
        ("b/1", "modified", False),
        ("b/new", "modified", False),
    ]
    # Whether a file was deleted from `b` is not known.
    assert end(cut, session_id) == ({("b/1", "modified"), ("b/new", "modified")}, "partial")


def test_with_an_earlier_manifest_the_last_known_state_tells_what_was_changed(cut, make_app, project, monkeypatch):
    first = make_app(project)
    session_id = begin(first)
    manifest_of(first).wait(session_id, 60)
    end(first, session_id)
    (project / "a/0").write_text("earlier\n")
    time_passes(project)
    go = hold_background(monkeypatch)
    session_id = begin(cut)
    (project / "b/1").write_text("X\n")
    (project / "b/new").write_text("new\n")
    (project / "c/0").write_text("c0\n")
    (project / "c/1").unlink()
    shutil.rmtree(project / "a")
    go.set()
    manifest_of(cut).wait(session_id, 60)

    assert end(cut, session_id) == (
        {
            ("b/1", "modified"),
            ("b/new", "created"),
            ("c/1", "deleted"),
            *((f"a/{number}", "deleted") for number in range(3)),
        },
        "whole",
    )


def time_passes(root):
    """Wait until a change made now has a later change time than one made before."""
    probe = root / "audit/probe"
    probe.write_text("")
    first = probe.stat().st_ctime_ns
    while probe.stat().st_ctime_ns == first:
        probe.chmod(0o600)
    probe.unlink()


def test_what_the_agent_changed_before_the_scan_came_there_is_explained(cut, project, monkeypatch):
    from agents import plan, sha

    approved = plan(project, scope='{modify: ["**"], create: ["**"], delete: ["**"]}')
    go = hold_background(monkeypatch)
    session_id = begin(cut)
    changed = {"path": "a/1", "content": "X\n", "expected_hash": sha(b"a1\n"), "plan_hash": approved}
    assert cut.call("write_file", changed).envelope is None
    assert cut.call("write_file", {"path": "a/n", "content": "X\n", "plan_hash": approved}).envelope is None
    assert cut.call("write_file", {"path": "n", "content": "X\n", "plan_hash": approved}).envelope is None
    (project / "n").write_text("Y\n")
    go.set()

    assert end(cut, session_id) == ({("n", "modified")}, "partial")


def swap(root, how):
    """Put a directory that was prepared before in the place of another; the times of its files stay."""
    if how == "removed":
        (root / "b/1").unlink()
    else:
        (root / "b").rename(root.parent / "old")
        (root.parent / "prepared").rename(root / ("b" if how == "swapped" else "a/b"))


@pytest.mark.parametrize("how", ["swapped", "moved", "removed"])
@pytest.mark.parametrize("has_earlier", [True, False])
def test_what_is_moved_with_old_times_before_the_scan_comes_there_is_never_taken_for_unchanged(
    cut, project, monkeypatch, has_earlier, how
):
    (project.parent / "prepared/deep").mkdir(parents=True)
    (project.parent / "prepared/1").write_text("X\n")
    (project.parent / "prepared/deep/1").write_text("X\n")
    if has_earlier:
        end(cut, begin_late(cut))
    time_passes(project)
    go = hold_background(monkeypatch)
    session_id = begin(cut)
    swap(project, how)
    go.set()
    manifest_of(cut).wait(session_id, 60)
    listed, state = end(cut, session_id)

    if not has_earlier:
        assert state == "partial"
    else:
        assert (listed, state) == (EXPECTED[how], "whole")


_GONE = {("b/0", "deleted"), ("b/2", "deleted")}
EXPECTED = {
    "removed": {("b/1", "deleted")},
    "swapped": {("b/1", "modified"), ("b/deep/1", "created"), *_GONE},
    "moved": {("a/b/1", "created"), ("a/b/deep/1", "created"), ("b/1", "deleted"), *_GONE},
}


def test_a_session_that_ends_before_its_begin_is_written_is_partial(cut, project, monkeypatch):
    go = hold_background(monkeypatch)
    monkeypatch.setattr(session_manifest, "_MAX_WAIT", 0.0)
    session_id = begin(cut)
    (project / "b/1").write_text("X\n")
    listed = end(cut, session_id)
    go.set()

    assert listed == ({("b/1", "modified")}, "partial")
    assert records(project)[-1]["detail"]["manifest"]["gaps"] == ["no_manifest"]


def begin_late(app):
    session_id = begin(app)
    manifest_of(app).wait(session_id, 60)
    return session_id


def test_a_server_that_ends_does_not_wait_for_the_scan(project, monkeypatch):
    reached, write_chunk = threading.Event(), scan_writer.ScanWriter.write_chunk
    earlier = App([os.path.realpath(project)])
    begin_late(earlier)
    earlier.close()
    (project / "c/1").unlink()  # before the session that is compared
    (project / "c/2").write_text("X\n")
    app = App([os.path.realpath(project)])
    manifest_of(app).first_pass_seconds = 0.0

    def write_and_stop(self, chunk):
        reached.set()
        manifest_of(app)._stopping.set()
        write_chunk(self, chunk)

    with monkeypatch.context() as patch:
        patch.setattr(tree, "CHUNK_ENTRIES", 1)
        patch.setattr(scan_writer.ScanWriter, "write_chunk", write_and_stop)
        session_id = begin(app)
        reached.wait(60)
        app.close()
    (project / "b/1").write_text("X\n")
    report = compare(project, session_id)

    assert "begin_unfinished" in report.coverage.gaps
    assert changes(report) == {("b/1", "modified")}


class Stepwise:
    """Kills this process at the given call of the manifest's thread into the system or SQLite."""

    def __init__(self, at):
        self.left = at

    def count(self, frame, event, arg):
        module = getattr(arg, "__module__", None) or type(getattr(arg, "__self__", None)).__module__
        if event == "c_call" and module in {"posix", "sqlite3", "_sqlite3"}:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def kill_while_writing(project, at):
    """Begin a session in another process and kill it at its n-th step; False once it came to its end."""
    child = os.fork()
    if child == 0:
        try:
            write = keeper.ManifestKeeper._write

            def write_and_die(self, batch):
                until(lambda: records(project))  # the thread that writes does not wait for the session's record
                sys.setprofile(Stepwise(at).count)
                write(self, batch)
                sys.setprofile(None)

            keeper.ManifestKeeper._write = write_and_die
            app = App([os.path.realpath(project)])
            begin_late(app)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def test_after_a_kill_at_any_step_the_next_sessions_are_right(tmp_path):
    stride = 1 if os.environ.get("KAIZA_LONG") else 61
    for at in count(1, stride):
        root = make_ready(tmp_path / str(at))
        for directory in "ab":
            (root / directory).mkdir()
            (root / directory / "1").write_text("1\n")
            (root / directory / "2").write_text("2\n")
        was_killed = kill_while_writing(root, at)
        lost = records(root)[0]["session_id"]
        (root / "a/1").write_text("X\n")
        report = compare(root, lost)
        app = App([os.path.realpath(root)])
        session_id = begin_late(app)
        (root / "b/2").unlink()
        listed = end(app, session_id)
        app.close()

        assert ("a/1", "modified") in changes(report), at
        assert report.coverage.state == "partial" or changes(report) == {("a/1", "modified")}, at
        assert listed == ({("b/2", "deleted")}, "whole"), at
        if not was_killed:
            break


@pytest.mark.parametrize(
    "damage", ["empty", "garbage", "cut", "page", "schema", "identity", "link", "directory", "open"]
)
def test_a_manifest_that_cannot_be_used_is_replaced_and_said(make_app, project, damage):
    app = make_app(project)
    session_id = begin_late(app)
    path = database_path(project)
    spoil(path, damage)
    (project / "a/1").write_text("X\n")
    listed = end(app, session_id)
    again = begin_late(app)
    (project / "a/2").write_text("X\n")

    assert listed[1] == "partial"
    assert ("a/1", "modified") in listed[0]
    # A directory in its place is not deleted: no manifest is kept then.
    assert end(app, again) == ({("a/2", "modified")}, "partial" if damage == "directory" else "whole")


def spoil(path, damage):
    content = path.read_bytes()
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    if damage in ("schema", "identity"):
        with sqlite3.connect(path) as connection:
            statement = "CREATE TABLE more (x)" if damage == "schema" else "UPDATE meta SET value = 'x'"
            connection.execute(statement)
        connection.close()
        return
    path.unlink()
    if damage == "link":
        elsewhere = path.with_name("elsewhere")
        elsewhere.write_bytes(content)
        path.symlink_to(elsewhere)
    elif damage == "directory":
        path.mkdir()
    elif damage == "open":
        path.write_bytes(content)
        path.chmod(0o666)
    else:
        parts = {
            "empty": b"",
            "garbage": b"garbage" * 1000,
            "cut": content[: len(content) // 2],
            "page": content[:4096] + b"\xff" * (len(content) - 4096),
        }
        path.write_bytes(parts[damage])
        path.chmod(0o600)


def test_sessions_of_several_servers_at_once_each_have_their_own_begin(make_app, project):
    apps, sessions, expected = [make_app(project) for _ in range(4)], [], []
    for number, app in enumerate(apps):
        sessions.append(begin(app))
        if number % 2:
            manifest_of(app).wait(sessions[-1], 60)
        (project / f"during-{number}").write_text("x\n")
        expected.append({f"during-{later}" for later in range(number, len(apps))})
    for app, session_id in zip(apps, sessions, strict=True):
        manifest_of(app).wait(session_id, 60)
    listed = [end(app, session_id) for app, session_id in zip(apps, sessions, strict=True)]

    assert [{path for path, _ in paths} for paths, _ in listed] == expected
    assert {state for _, state in listed} == {"whole"}


def test_a_scan_waits_for_another_process_and_stops_waiting_with_the_server(make_app, project):
    state_path = state_dir.path_of(str(project), create=True)
    lock = FileLock(os.open(state_path / keeper.LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o600))
    lock.acquire(5)
    app = App([os.path.realpath(project)])
    session_id = begin(app)
    try:
        app.close()  # would wait for ever
        report = compare(project, session_id)
    finally:
        lock.close()

    assert "no_manifest" in report.coverage.gaps


def test_a_full_disk_leaves_no_wrong_answer(make_app, project, monkeypatch):
    def fail(*_):
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(scan_writer.ScanWriter, "finish", fail)
    app = make_app(project)
    session_id = begin_late(app)
    (project / "a/1").write_text("X\n")

    assert end(app, session_id) == ({("a/1", "modified")}, "partial")


def test_only_what_changed_is_read_again(make_app, project, monkeypatch):
    read, seen = hashing.ContentReader.read, []
    monkeypatch.setattr(scan_writer, "_FINE_TICK_NS", 0)  # files made moments before would be read again
    first = make_app(project)
    begin_late(first)
    (project / "b/1").write_text("X\n")
    monkeypatch.setattr(
        hashing.ContentReader, "read", lambda self, *path: (seen.append(b"/".join(path)), read(self, *path))[1]
    )
    begin_late(make_app(project))

    assert set(seen) == {b"b/1"}


def test_a_file_seen_right_after_its_change_is_read_again(make_app, project):
    """A kernel with coarse times gives the same ones to a second change within a tick, which is imitated here."""
    app = make_app(project)
    session_id = begin_late(app)
    (project / "a/1").write_text("X1\n")
    status = tree.Stat.from_result(os.lstat(project / "a/1"))
    with sqlite3.connect(database_path(project)) as connection:
        values = (*status[1:], database.UNSETTLED)
        columns = "size = ?, mtime = ?, ctime = ?, inode = ?, flags = ?"
        connection.execute(f"UPDATE entries SET {columns}, first = 0 WHERE directory = x'61' AND name = x'31'", values)
    connection.close()

    assert end(app, session_id) == ({("a/1", "modified")}, "whole")


def test_old_sessions_and_their_rows_are_removed(make_app, project, monkeypatch):
    monkeypatch.setattr(scan_writer, "KEPT_SESSIONS", 2)
    app = make_app(project)
    for number in range(6):
        (project / "a/1").write_text(f"{number}\n")
        begin_late(app)
    with sqlite3.connect(database_path(project)) as connection:
        (sessions,) = connection.execute("SELECT count(*) FROM sessions").fetchone()
        (versions,) = connection.execute(
            "SELECT count(*) FROM entries WHERE name = x'31' AND directory = x'61'"
        ).fetchone()
    connection.close()

    assert sessions == 2
    assert versions <= 4


def test_nothing_is_kept_of_a_foreign_workspace(make_app, project):
    (project / ".kaiza").mkdir()
    (project / ".kaiza/id").write_text("0" * 32 + "\n")
    app = make_app(project)
    session_id = begin(app)
    (project / "a/1").write_text("X\n")
    output = app.call("end_session", {"session_id": session_id}).output

    assert (output["ungoverned"], output["manifest"]) == ([], "partial")
    assert "adopt" in output["summary"]
    assert not database_path(project).exists()
