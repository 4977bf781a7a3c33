"""Journals of finished changes: kept only where an undo needs them."""

import fcntl
import os
import stat
from contextlib import closing
from dataclasses import replace
from hashlib import sha256

import pytest
from agents import plan
from announcing import recover_changes
from transactions import open_transactions

from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store import workspace as workspaces
from kaiza.store.changes.journal import TransactionJournal
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.trust.binding import Standing


def digest(content):
    return sha256(content).hexdigest()


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "ws"
    root.mkdir()
    for name in "mdst":
        (root / name).write_bytes(name.encode())
    return root


@pytest.fixture
def manager(root):
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as opened:
        yield opened


def commit(manager, txn, *changes, undoes=()):
    manager.apply(manager.prepare(txn, changes, undoes=undoes))
    manager.finalize(txn)


def create(path):
    return Change(parse(path), "create", None, digest(b"x"), content=b"x")


def finished(root):
    return sorted(path.name for path in (root / ".kaiza/done").glob("*"))


def test_a_finished_change_whose_undo_needs_no_journal_leaves_none(root, manager):
    (root / "m").chmod(0o751)
    os.setxattr(root / "m", "user.note", b"mine")
    commit(
        manager,
        "t",
        create("a/b/n"),
        Change(parse("m"), "modify", digest(b"m"), digest(b"x"), content=b"x"),
        Change(parse("d"), "delete", digest(b"d")),
        Change(parse("to"), "move", digest(b"s"), digest(b"s"), source=parse("s")),
        Change(parse("too"), "move", digest(b"t"), digest(b"x"), source=parse("t"), content=b"x"),
    )

    assert finished(root) == []
    assert list((root / ".kaiza/journal").iterdir()) == []


def test_the_journal_of_a_deleted_file_with_attributes_is_kept_for_its_undo(root, manager):
    os.setxattr(root / "d", "user.note", b"mine")
    commit(manager, "one", Change(parse("d"), "delete", digest(b"d")))
    kept = finished(root)
    commit(manager, "undo", Change(parse("d"), "create", None, digest(b"d")), undoes=("one",))

    assert kept == finished(root) == ["one"]
    assert os.getxattr(root / "d", "user.note") == b"mine"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_journal_of_a_deleted_file_of_another_owner_is_kept_for_its_undo(root, manager):
    os.chown(root / "d", 4711, 4712)
    commit(manager, "one", Change(parse("d"), "delete", digest(b"d")))
    commit(manager, "undo", Change(parse("d"), "create", None, digest(b"d")), undoes=("one",))
    status = (root / "d").stat()

    assert (status.st_uid, status.st_gid) == (4711, 4712)


@pytest.mark.parametrize("is_foreign", [False, True])
def test_a_server_removes_the_files_of_ended_processes_in_bounded_steps(make_app, workspace, is_foreign, monkeypatch):
    monkeypatch.setattr(workspaces, "DEAD_FILES_PER_STEP", 10)
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})
    (opened,) = app.services.workspaces.values()
    for number in range(30):
        (workspace / f".kaiza/live/{number}-dead").touch()
    if is_foreign:
        opened.binding = replace(opened.binding, standing=Standing.FOREIGN)
    left = []
    for _ in range(5):
        opened.plan_watch._tidy()
        left.append(len(list((workspace / ".kaiza/live").glob("*-dead"))))

    assert left == [30] * 5 if is_foreign else 20 <= left[0] < 30 and left[-1] == 0


def test_a_journal_that_its_writer_deletes_while_a_recovery_opens_it_is_not_recovered(root, manager, monkeypatch):
    lock = fcntl.flock

    def delete_and_lock(fd, operation):
        if operation & fcntl.LOCK_NB:
            (root / ".kaiza/journal/t").unlink(missing_ok=True)
        lock(fd, operation)

    with monkeypatch.context() as crashing:
        crashing.setattr(TransactionJournal, "retire", lambda journal, *_, **__: journal.close())
        commit(manager, "t", create("n"))
    monkeypatch.setattr(fcntl, "flock", delete_and_lock)

    assert manager._journals.claim("t") is None
    assert list(manager._journals.find_abandoned()) == []


@pytest.mark.parametrize(("mode", "kept"), [(0o644, []), (0o600, ["t"]), (0o755, ["t"])])
def test_a_recovered_deletion_keeps_its_journal_unless_the_mode_was_ordinary(root, manager, monkeypatch, mode, kept):
    (root / "d").chmod(mode)
    deletion = Change(parse("d"), "delete", digest(b"d"))
    with monkeypatch.context() as crashing:
        crashing.setattr(TransactionJournal, "retire", lambda journal, *_, **__: journal.close())
        commit(manager, "t", deletion)
    (found,) = recover_changes(manager, [deletion], is_open=False, is_applied=True)

    assert found.result == "applied"
    assert finished(root) == kept

    (root / "d").unlink(missing_ok=True)
    commit(manager, "undo", Change(parse("d"), "create", None, digest(b"d")), undoes=("t",))
    assert stat.S_IMODE((root / "d").stat().st_mode) == mode


def test_the_mode_of_a_deleted_file_comes_back_from_the_log(begun, workspace):
    script = workspace / "script"
    script.write_bytes(b"x")
    script.chmod(0o750)
    approved = plan(workspace, scope='{delete: ["script"]}')
    deletion = {"path": "script", "expected_hash": digest(b"x"), "plan_hash": approved}
    request_id = begun.call("delete_file", deletion).output["request_id"]
    kept = finished(workspace)
    begun.call("undo_changes", {"request_ids": [request_id], "plan_hash": approved})

    assert kept == []
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
