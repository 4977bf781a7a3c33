"""Crash tests: a transaction is killed or fails at every system call, and whole trees are compared after recovery.

`sys.setprofile` counts the system calls, before and after each. The change must be complete or undone, with no
temporary file and no journal left.
"""

import errno
import os
import signal
import sys
from contextlib import closing
from hashlib import sha256

import pytest
from announcing import intent_finder, recover_changes
from children import run_child
from transactions import open_transactions

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store.changes import recovery
from kaiza.store.disk import atomic_rename
from kaiza.store.files.confined_root import ConfinedRoot

LONG = bool(os.environ.get("KAIZA_LONG"))
STRIDE = 1 if LONG else 24
ROUNDS = 5 if LONG else 1
FIRST, LAST, COLD = 200, 700, 1100
SECOND = (1, 9, 23, 40, 61) if LONG else (17,)
MODULES = {"posix", "fcntl"}
# Functions of Kaiza around system calls that the profiler does not count: those through ctypes and in other threads.
CALLS = {"_call_renameat2", "fsync_all"}
FALLIBLE = {"open", "write", "pread", "fsync", "fdatasync", "mkdir", "rename", "unlink", "fchmod", "setxattr", "flock"}
PORTABLE = {"exchange": atomic_rename.exchange_portably, "rename_noreplace": atomic_rename.rename_portably}
RESULTS = {"before": ("not_applied", "taken_back"), "after": ("applied",)}


class Stepwise:
    """Counts system calls inside the `with`, and acts at one of them."""

    def __init__(self, at, act):
        self.left = at
        self.act = act

    def __enter__(self):
        sys.setprofile(self.count)

    def __exit__(self, *_):
        sys.setprofile(None)

    def count(self, frame, event, arg):
        is_ours = event in {"call", "return"} and frame.f_code.co_name in CALLS
        if is_ours or (event in {"c_call", "c_return"} and arg.__module__ in MODULES):
            self.left -= 1
            if self.left == 0:
                self.act(event, arg)


def kill(event, arg):
    os.kill(os.getpid(), signal.SIGKILL)


def digest(content):
    return sha256(content).hexdigest()


def lay_out(root):
    (root / "sub").mkdir(parents=True)
    for name in ("m", "d", "s", "sub/e"):
        (root / name).write_bytes(name.encode())
    (root / "m").chmod(0o751)
    os.setxattr(root / "m", "user.note", b"mine")


CHANGES = (
    Change(parse("a/b/n"), "create", None, digest(b"new"), content=b"new"),
    Change(parse("m"), "modify", digest(b"m"), digest(b"after"), content=b"after"),
    Change(parse("d"), "delete", digest(b"d")),
    Change(parse("to/t"), "move", digest(b"s"), digest(b"s"), source=parse("s")),
    Change(parse("sub/f"), "move", digest(b"sub/e"), digest(b"f"), source=parse("sub/e"), content=b"f"),
)


def manifest(root):
    found = {}
    for path in sorted(root.rglob("*")):
        if path.relative_to(root).parts[0] != ".kaiza":
            content = path.read_bytes() if path.is_file() else None
            attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
            found[str(path.relative_to(root))] = (path.stat().st_mode, content, attributes)
    return found


def change(root):
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        manager.apply(manager.prepare("t", CHANGES))
        manager.finalize("t")


def recover(root):
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        return recover_changes(manager, CHANGES)


def dies(act, root, at):
    """Whether a process that runs `act` is killed at that system call; False where it ends before."""
    child = os.fork()
    if child == 0:
        try:
            if at > 0:
                with Stepwise(at, kill):
                    act(root)
            else:
                act(root)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.fixture
def worlds(tmp_path):
    """The trees before and after the change."""
    lay_out(tmp_path / "before")
    lay_out(tmp_path / "after")
    change(tmp_path / "after")
    return {"before": manifest(tmp_path / "before"), "after": manifest(tmp_path / "after")}


def recovered_state(worlds, root, results):
    """`before` or `after`, where the recovery reported the same."""
    (world,) = [name for name, content in worlds.items() if content == manifest(root)] or ["neither"]
    reported = [each.result for each in results]
    if reported and reported[0] not in RESULTS.get(world, ()):
        return f"{world}, but reported {reported}"
    return world


def leftovers(root):
    """Journals, also those of finished transactions: an undo of these changes needs none."""
    return sorted(path for name in ("journal", "done") for path in (root / ".kaiza" / name).glob("*"))


@pytest.mark.long
@pytest.mark.parametrize("number", range(ROUNDS))
def test_a_transaction_killed_at_any_system_call_is_complete_or_undone_after_recovery(tmp_path, worlds, number):
    seen = {}
    at = 1 + number
    while True:
        root = tmp_path / f"k{at}"
        lay_out(root)
        if not dies(change, root, at):
            break
        results = recover(root)
        seen[at] = (recovered_state(worlds, root, results), leftovers(root), recover(root))
        at += STRIDE

    assert {each for each in seen.values() if each[0] not in worlds or each[1] or each[2]} == set()
    assert {each[0] for each in seen.values()} == {"before", "after"}
    assert at > 100


@pytest.mark.long
def test_a_recovery_that_is_killed_is_completed_by_the_next(tmp_path, worlds):
    seen = set()
    for again in SECOND:
        for at in range(FIRST, LAST, STRIDE):
            root = tmp_path / f"k{at}-{again}"
            lay_out(root)
            if not dies(change, root, at):
                break
            dies(recover, root, again)
            seen.add((recovered_state(worlds, root, recover(root)), tuple(leftovers(root))))

    assert seen == {("before", ()), ("after", ())}


@pytest.mark.long
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EACCES])
def test_a_failure_of_any_system_call_leaves_the_files_unchanged_and_is_reported(tmp_path, worlds, number):
    def fail(event, arg):
        if event == "call" or (event == "c_call" and arg.__name__ in FALLIBLE):
            raise OSError(number, os.strerror(number))

    seen = {}
    for at in range(1, LAST, STRIDE):
        root = tmp_path / f"f{at}"
        lay_out(root)
        with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
            prepared = manager.prepare("t", CHANGES)
            stepwise = Stepwise(at, fail)
            try:
                with stepwise:
                    manager.apply(prepared)
                    manager.finalize("t")
                code = "none"
            except errors.SystemError as error:
                code = error.error_code
            recover_changes(manager, CHANGES)
        seen[at] = (code, recovered_state(worlds, root, []), tuple(leftovers(root)))
        if stepwise.left > 0:
            break

    assert set(seen.values()) <= {("FILE_WRITE_FAILED", "before", ()), ("none", "after", ())}
    assert ("FILE_WRITE_FAILED", "before", ()) in seen.values()


def test_a_portable_move_killed_between_its_two_steps_is_rolled_back(tmp_path, worlds, monkeypatch):
    def rename_half(from_fd, old, to_fd, new):
        os.link(old, new, src_dir_fd=from_fd, dst_dir_fd=to_fd)
        if old == b"s":
            os._exit(0)
        os.unlink(old, dir_fd=from_fd)

    root = tmp_path / "ws"
    lay_out(root)
    with monkeypatch.context() as half:
        half.setattr(atomic_rename, "rename_noreplace", rename_half)

        assert run_child(lambda: change(root)) == 0
    assert (root / "s").stat().st_nlink == 2
    assert recovered_state(worlds, root, recover(root)) == "before"


@pytest.mark.long
@pytest.mark.parametrize("lacking", ["exchange", "rename_noreplace"])
def test_a_transaction_killed_in_a_portable_rename_is_complete_or_undone_after_recovery(
    tmp_path, worlds, monkeypatch, lacking
):
    monkeypatch.setattr(atomic_rename, lacking, PORTABLE[lacking])
    seen = set()
    for at in range(1 if LONG else 400, LAST, 1 if LONG else 11):
        root = tmp_path / f"p{at}"
        lay_out(root)
        if not dies(change, root, at):
            break
        seen.add((recovered_state(worlds, root, recover(root)), tuple(leftovers(root))))

    assert seen == {("before", ()), ("after", ())}


def apply_only(root):
    with ConfinedRoot(str(root)) as workspace:
        manager = open_transactions(workspace)
        prepared = manager.prepare("t", CHANGES)
        manager.apply(prepared)
        return manager, prepared


def dies_before_finalize(root):
    """A process applies the change and ends before it finalizes it."""
    assert run_child(lambda: (apply_only(root), os._exit(0))) == 0


@pytest.mark.long
def test_a_rollback_that_is_killed_is_completed_by_recovery(tmp_path, worlds):
    def apply_and_roll_back(root):
        with ConfinedRoot(str(root)) as workspace:
            manager = open_transactions(workspace)
            prepared = manager.prepare("t", CHANGES)
            manager.apply(prepared)
            with Stepwise(at, kill):
                manager.roll_back(prepared)

    seen = []
    for at in range(1, LAST, 1 if LONG else 9):
        root = tmp_path / f"b{at}"
        lay_out(root)
        if not dies(apply_and_roll_back, root, 0):
            break
        found = recover(root)
        seen.append((recovered_state(worlds, root, found if at > 6 else []), tuple(leftovers(root))))

    assert set(seen) <= {("before", ()), ("after", ())}
    assert set(seen[2:]) == {("before", ())}


def test_a_committed_rename_that_a_power_cut_undid_is_repeated(tmp_path, worlds):
    root = tmp_path / "ws"
    lay_out(root)
    dies_before_finalize(root)
    root_fd = os.open(root, os.O_RDONLY)
    atomic_rename.exchange(root_fd, b".kaiza-t-1", b"m")
    (root / "to/t").rename(root / "s")
    os.close(root_fd)
    (found,) = recover(root)

    assert found.result == "applied"
    assert manifest(root) == worlds["after"]


def test_a_lost_rename_is_not_repeated_where_the_staged_content_was_changed(tmp_path):
    root = tmp_path / "ws"
    lay_out(root)
    dies_before_finalize(root)
    root_fd = os.open(root, os.O_RDONLY)
    atomic_rename.exchange(root_fd, b".kaiza-t-1", b"m")
    os.close(root_fd)
    (root / ".kaiza-t-1").write_bytes(b"evil")
    (found,) = recover(root)

    assert (root / "m").read_bytes() == b"m"
    assert found.unresolved == ({"path": "m", "reason": "changed_since"},)
    assert list(root.rglob(".kaiza-t-*")) == []


def test_temporary_files_without_a_journal_are_removed_beside_the_paths_of_the_intent(tmp_path):
    lay_out(tmp_path / "ws")
    for name in (".kaiza-t-0", "sub/.kaiza-t-1", "sub/.kaiza-other-1"):
        (tmp_path / "ws" / name).touch()
    with ConfinedRoot(str(tmp_path / "ws")) as workspace:
        manager = open_transactions(workspace)

        assert manager.remove_leftovers("t", [parse("m"), parse("sub/e"), parse("none/x")]) == 2
    assert [path.name for path in (tmp_path / "ws").rglob(".kaiza-*")] == [".kaiza-other-1"]


def test_a_transaction_of_a_living_process_is_not_recovered(tmp_path):
    lay_out(tmp_path / "ws")
    with ConfinedRoot(str(tmp_path / "ws")) as ours, ConfinedRoot(str(tmp_path / "ws")) as theirs:
        manager = open_transactions(ours)
        manager.apply(manager.prepare("t", CHANGES))
        before = manifest(tmp_path / "ws")

        assert recover_changes(open_transactions(theirs), CHANGES) == []
        assert manifest(tmp_path / "ws") == before
        manager.finalize("t")


def has_journal(root):
    return any((root / ".kaiza/journal").glob("*"))


def test_a_journal_is_not_recovered_unless_its_writer_is_known_to_be_dead(tmp_path):
    for root in (tmp_path / "first", tmp_path / "ws"):
        lay_out(root)
    # How many calls come before the journal depends on what this process has loaded.
    at = next(
        at for at in range(200, COLD, 5) if dies(change, tmp_path / "first", at) and has_journal(tmp_path / "first")
    )
    assert dies(change, tmp_path / "ws", at + 50)

    with ConfinedRoot(str(tmp_path / "ws")) as workspace:
        alive = open_transactions(workspace).liveness_id
        assert recover_changes(open_transactions(workspace), CHANGES, live=alive) == []
        assert [found.txn for found in recover_changes(open_transactions(workspace), CHANGES)] == ["t"]


def test_a_file_changed_after_the_crash_is_left_and_reported(tmp_path):
    root = tmp_path / "ws"
    lay_out(root)
    for at in range(370, COLD):
        assert dies(change, root, at)
        if (root / "m").read_bytes() == b"after":
            break
        recover(root)
    (root / "m").write_bytes(b"theirs")
    (found,) = recover(root)

    assert found.result == "unknown"
    assert found.unresolved == ({"path": "m", "reason": "changed_since"},)
    assert (root / "m").read_bytes() == b"theirs"
    assert (root / "d").read_bytes() == b"d"
    assert [path.name for path in root.iterdir() if path.name.startswith(".kaiza-")] == []


@pytest.mark.parametrize("recorded", [True, False])
def test_a_journal_that_reappears_after_a_power_cut_does_not_affect_later_changes(tmp_path, recorded):
    root = tmp_path / "ws"
    lay_out(root)
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        manager.apply(manager.prepare("t", CHANGES))
        (journal,) = leftovers(root)
        content = journal.read_bytes()
        manager.finalize("t")
    (root / "m").write_bytes(b"another's")
    (root / "a/b/n").unlink()
    if recorded:
        (root / "to/t").rename(root / "s")
    before = manifest(root)
    journal.write_bytes(content)
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        recover_changes(manager, CHANGES, is_open=not recorded, is_applied=recorded)

    assert manifest(root) == before
    assert leftovers(root) == []


@pytest.mark.parametrize("tail", [b"", b"{", b"\0" * 20, b'{"committed": tr\0\0\0\0', b'{"committed": true}'])
def test_a_torn_commit_line_is_ignored_and_the_change_rolled_back(tmp_path, worlds, tail):
    root = tmp_path / "ws"
    lay_out(root)
    dies_before_finalize(root)
    (journal,) = leftovers(root)
    *lines, last = journal.read_bytes().splitlines(keepends=True)
    assert b'{"committed": true}' in last
    journal.write_bytes(b"".join(lines) + tail)

    assert recovered_state(worlds, root, recover(root)) == "before"
    change(root)
    assert manifest(root) == worlds["after"]


def test_a_rollback_that_had_begun_overrules_the_recorded_outcome(tmp_path, worlds, monkeypatch):
    def die_half_way(operations, directories):
        operations[-1].roll_back()
        os._exit(0)

    root = tmp_path / "ws"
    lay_out(root)

    def roll_back_and_die():
        monkeypatch.setattr(recovery, "roll_back", die_half_way)
        with ConfinedRoot(str(root)) as workspace:
            manager = open_transactions(workspace)
            prepared = manager.prepare("t", CHANGES)
            manager.apply(prepared)
            manager.roll_back(prepared)

    assert run_child(roll_back_and_die) == 0
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        found = recover_changes(manager, CHANGES, is_open=False, is_applied=True)
    assert recovered_state(worlds, root, found) == "before"


def test_finalize_raises_nothing_where_the_cleanup_fails(tmp_path, worlds, monkeypatch):
    def fail(*_, **__):
        raise OSError(errno.EROFS, "no")

    root = tmp_path / "ws"
    lay_out(root)
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        manager.apply(manager.prepare("t", CHANGES))
        with monkeypatch.context() as failing:
            for name in ("unlink", "rename", "ftruncate", "write"):
                failing.setattr(os, name, fail)
            manager.finalize("t")

    assert recovered_state(worlds, root, recover(root)) == "after"


def create_file(number, turn):
    return Change(parse(f"w{number}/{turn}"), "create", None, digest(b"x"), content=b"x")


def test_four_writers_continue_while_a_fifth_is_killed(tmp_path):
    root = tmp_path / "ws"
    lay_out(root)
    children = []
    for number in range(5):
        child = os.fork()
        if child == 0:
            try:
                with ConfinedRoot(str(root)) as workspace, Stepwise(500 if number == 2 else -1, kill):
                    manager = open_transactions(workspace)
                    for turn in range(10):
                        manager.apply(manager.prepare(f"w{number}-{turn}", [create_file(number, turn)]))
                        manager.finalize(f"w{number}-{turn}")
            finally:
                os._exit(0)
        children.append(child)
    was_killed = [os.WIFSIGNALED(os.waitpid(child, 0)[1]) for child in children]
    with ConfinedRoot(str(root)) as workspace, closing(open_transactions(workspace)) as manager:
        manager.recover(lambda txn: intent_finder([create_file(*txn[1:].split("-"))])(txn))

    assert was_killed == [False, False, True, False, False]
    assert {number: len(list((root / f"w{number}").iterdir())) for number in (0, 1, 3, 4)} == dict.fromkeys(
        (0, 1, 3, 4), 10
    )
    assert leftovers(root) == []
    assert list(root.rglob(".kaiza-*")) == []
