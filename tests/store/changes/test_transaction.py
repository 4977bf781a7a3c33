"""Multi-file transactions: preflight, all-or-nothing application, durability, rollback and undo."""

import os
import signal
import stat
import subprocess
import sys
import threading
from contextlib import closing
from dataclasses import replace
from functools import partial
from hashlib import sha256

import pytest
from announcing import recover_changes
from transactions import open_transactions

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import parse
from kaiza.store.changes import directory_handles
from kaiza.store.changes.operation import ActiveOperation
from kaiza.store.disk import atomic_rename, file_metadata, fsync_batch, lock_timeouts
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, file_stamp
from kaiza.store.files.confined_root import ConfinedRoot

LONG = bool(os.environ.get("KAIZA_LONG"))
WRITERS = 50 if LONG else 20


def digest(content):
    return sha256(content).hexdigest()


def create(path, content=b"new", mode=None):
    return Change(parse(path), "create", None, digest(content), len(content), content=content, mode=mode)


def modify(path, before, after=b"after", mode=None):
    return Change(parse(path), "modify", digest(before), digest(after), len(after), content=after, mode=mode)


def delete(path, before):
    return Change(parse(path), "delete", digest(before))


def move(source, path, before, after=None, mode=None):
    content = before if after is None else after
    return Change(
        parse(path),
        "move",
        digest(before),
        digest(content),
        len(content),
        source=parse(source),
        content=after,
        mode=mode,
    )


def manifest(root):
    """Mode, owner, content and attributes of everything in a workspace but `.kaiza`."""
    found = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if path.relative_to(root).parts[0] == ".kaiza":
            continue
        content = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        names = os.listxattr(path, follow_symlinks=False)
        attributes = {name: os.getxattr(path, name, follow_symlinks=False) for name in names}
        found[str(path.relative_to(root))] = (status.st_mode, status.st_uid, status.st_gid, content, attributes)
    return found


@pytest.fixture
def root(tmp_path):
    (tmp_path / "ws/sub").mkdir(parents=True)
    for name in ("m", "d", "s", "sub/x"):
        (tmp_path / "ws" / name).write_bytes(name.encode())
    return tmp_path / "ws"


@pytest.fixture
def manager(root):
    with ConfinedRoot(str(root)) as workspace:
        opened = open_transactions(workspace)
        yield opened
        opened.close()


def commit(manager, txn, *changes, undoes=()):
    manager.apply(manager.prepare(txn, changes, undoes=undoes))
    manager.finalize(txn)


def code_of(act, *arguments):
    with pytest.raises(errors.SystemError) as caught:
        act(*arguments)
    return caught.value.error_code


def test_one_transaction_creates_modifies_deletes_and_moves(root, manager):
    changes = [create("a/b/n"), modify("m", b"m"), delete("d", b"d"), move("s", "to/t", b"s")]
    commit(manager, "t", *changes)

    assert {path: entry[3] for path, entry in manifest(root).items() if entry[3] is not None} == {
        "a/b/n": b"new",
        "m": b"after",
        "to/t": b"s",
        "sub/x": b"sub/x",
    }


@pytest.mark.parametrize("path", ["n", "m"])
def test_a_content_that_differs_from_the_intent_is_not_put_in_place(root, manager, path):
    before = manifest(root)
    change = create(path) if path == "n" else modify(path, b"m")
    prepared = manager.prepare("t", [replace(change, content=b"other")])

    assert code_of(manager.apply, prepared) == "HASH_MISMATCH"
    assert manifest(root) == before


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (create("m"), "FILE_ALREADY_EXISTS"),
        (create("sub"), "FILE_ALREADY_EXISTS"),
        (create("dangling"), "FILE_ALREADY_EXISTS"),
        (create("m/below"), "FILE_WRITE_FAILED"),
        (create("in/new"), "INVALID_PATH"),
        (create("out/new"), "OUTSIDE_WORKSPACE"),
        (create("absolute/new"), "OUTSIDE_WORKSPACE"),
        (modify("none", b""), "FILE_NOT_FOUND"),
        (modify("sub/none/x", b""), "FILE_NOT_FOUND"),
        (modify("m/x", b""), "FILE_NOT_FOUND"),
        (modify("m", b"other"), "HASH_MISMATCH"),
        (modify("in/x", b"sub/x"), "INVALID_PATH"),
        (modify("alias", b"m"), "INVALID_PATH"),
        (modify("out/secret", b"secret"), "OUTSIDE_WORKSPACE"),
        (modify("sub", b""), "FILE_WRITE_FAILED"),
        (modify("fifo", b""), "FILE_WRITE_FAILED"),
        (modify("twin", b"twin"), "FILE_WRITE_FAILED"),
        (modify("fixed", b"fixed"), "FILE_WRITE_FAILED"),
        (delete("fixed", b"fixed"), "FILE_WRITE_FAILED"),
        (delete("none", b""), "FILE_NOT_FOUND"),
        (delete("m", b"other"), "HASH_MISMATCH"),
        (delete("alias", b"m"), "INVALID_PATH"),
        (move("m", "d", b"m"), "FILE_ALREADY_EXISTS"),
        (move("none", "n", b""), "FILE_NOT_FOUND"),
        (move("m", "in/n", b"m"), "INVALID_PATH"),
        (Change(parse("n"), "create", None, digest(b"unknown")), "FILE_WRITE_FAILED"),
    ],
    ids=lambda value: f"{value.operation} {value.path}" if isinstance(value, Change) else None,
)
@pytest.mark.parametrize("resolver", ["openat2", "walk"])
def test_an_impossible_change_is_refused_before_anything_is_written(root, tmp_path, resolver, change, code):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (root / "dangling").symlink_to("nowhere")
    (root / "in").symlink_to("sub")
    (root / "alias").symlink_to("m")
    (root / "out").symlink_to("../outside")
    (root / "absolute").symlink_to(root / "sub")
    os.mkfifo(root / "fifo")
    (root / "twin").write_text("twin")
    (root / "twin2").hardlink_to(root / "twin")
    (root / "fixed").write_text("fixed")
    (root / "fixed").chmod(0o444)
    names = sorted(tmp_path.rglob("*"))
    with ConfinedRoot(str(root), resolver=resolver) as workspace:
        assert code_of(open_transactions(workspace).prepare, "t", [create("first"), change]) == code

    assert sorted(tmp_path.rglob("*")) == names


def test_two_changes_of_one_path_are_refused(manager):
    assert code_of(manager.prepare, "t", [modify("m", b"m"), move("s", "m", b"s")]) == "INVALID_INPUT_VALUE"


@pytest.mark.parametrize(
    "late",
    [
        lambda root: (root / "m").write_bytes(b"edited"),
        lambda root: (root / "m").chmod(0o600),
        lambda root: (root / "m").unlink(),
        lambda root: ((root / "m").unlink(), (root / "m").symlink_to("d")),
        lambda root: ((root / "m").unlink(), (root / "m").mkdir()),
        lambda root: (root / "n").write_bytes(b"there first"),
    ],
)
def test_a_file_that_changed_after_prepare_fails_the_whole_transaction(root, manager, late):
    prepared = manager.prepare("t", [delete("d", b"d"), create("a/n"), create("n"), modify("m", b"m")])
    late(root)
    before = manifest(root)

    assert code_of(manager.apply, prepared) in {"HASH_MISMATCH", "FILE_ALREADY_EXISTS"}
    assert manifest(root) == before
    commit(manager, "next", delete("d", b"d"))


@pytest.mark.parametrize(
    "change", [modify("m", b"m"), delete("m", b"m"), move("m", "n", b"m")], ids=lambda change: change.operation
)
def test_a_file_that_was_hard_linked_after_prepare_is_left_unchanged(root, manager, change):
    prepared = manager.prepare("t", [create("a/n"), change])
    (root / "second").hardlink_to(root / "m")
    before = manifest(root)

    assert code_of(manager.apply, prepared) == "HASH_MISMATCH"
    assert manifest(root) == before
    assert (root / "m").samefile(root / "second")


@pytest.mark.parametrize("resolver", ["openat2", "walk"])
def test_nothing_is_written_outside_where_a_new_directory_is_replaced_by_a_link(root, tmp_path, monkeypatch, resolver):
    outside, real_mkdir = tmp_path / "outside", os.mkdir
    outside.mkdir()

    def mkdir_and_swap(name, *arguments, **options):
        real_mkdir(name, *arguments, **options)
        if name == b"made":
            (root / "made").rename(root / "aside")
            (root / "made").symlink_to("../outside")

    monkeypatch.setattr(os, "mkdir", mkdir_and_swap)
    with (
        ConfinedRoot(str(root), resolver=resolver) as workspace,
        closing(open_transactions(workspace)) as manager,
    ):
        code = code_of(manager.apply, manager.prepare("t", [modify("m", b"m"), create("made/n")]))

    assert code == "HASH_MISMATCH"
    assert list(outside.iterdir()) == []
    assert (root / "m").read_bytes() == b"m"
    assert list((root / "aside").iterdir()) == []


@pytest.fixture
def synced(root, monkeypatch):
    """The names of the files of each fsync batch, in order."""
    batches, names, real_fsync_all = [], {}, fsync_batch.fsync_all

    def recording_fsync_all(fds):
        for path in (root, *root.rglob("*")):
            names.setdefault(path.stat().st_ino, path.relative_to(root).as_posix())
        batches.append({names[os.fstat(fd).st_ino] for fd in fds})
        real_fsync_all(fds)

    monkeypatch.setattr(fsync_batch, "fsync_all", recording_fsync_all)
    monkeypatch.setattr(directory_handles, "fsync_all", recording_fsync_all)
    return batches


def test_journal_pre_image_and_new_file_are_synced_before_the_exchange_and_the_directory_after(root, manager, synced):
    """After a power cut at any point, recovery finds what it needs to complete the change or roll it back."""
    (root / "f").write_bytes(b"before")
    commit(manager, "t", modify("f", b"before"))

    packed = f".kaiza/objects/{digest(b'before')}.z"
    assert synced == [{packed, ".kaiza/objects", ".kaiza/journal", ".kaiza/journal/t", ".kaiza-t-0"}, {"."}]


def test_the_parent_of_every_new_directory_is_synced(manager, synced):
    commit(manager, "t", create("sub/one/two/n"))

    assert synced[-1] == {"sub", "sub/one", "sub/one/two"}


def test_a_move_syncs_the_directories_of_its_source_and_its_target(manager, synced):
    commit(manager, "t", move("sub/x", "to/t", b"sub/x"))

    assert synced[-1] == {"sub", "to", "."}


def test_deleting_a_large_file_syncs_the_blob_directory(root, manager, monkeypatch):
    big, synced, real_fsync = b"x" * (2 * MAX_PACKED_BYTES), [], os.fsync
    objects = root / ".kaiza/objects"

    def recording_fsync(fd):
        real_fsync(fd)
        if objects.exists() and os.path.samestat(os.fstat(fd), objects.stat()):
            synced.append(os.listdir(objects))

    (root / "big").write_bytes(big)
    monkeypatch.setattr(os, "fsync", recording_fsync)
    commit(manager, "t", delete("big", big))

    assert synced[-1:] == [[digest(big)]]


def test_modify_preserves_mode_owner_and_attributes(root, manager):
    (root / "m").chmod(0o2751)
    os.setxattr(root / "m", "user.note", b"mine")
    if os.geteuid() == 0:
        os.chown(root / "m", 1234, 1235)
        (root / "m").chmod(0o6751)
    before = manifest(root)["m"]
    commit(manager, "t", modify("m", b"m"))

    assert manifest(root)["m"] == (*before[:3], b"after", before[4])


def test_the_new_content_of_a_private_file_is_never_readable_by_others(root, manager, monkeypatch):
    (root / "m").chmod(0o600)
    modes, apply_to = [], file_metadata.FileMetadata.apply_to

    def recording_apply_to(metadata, fd, mode=None):
        modes.append((stat.S_IMODE(os.fstat(fd).st_mode), os.fstat(fd).st_size))
        apply_to(metadata, fd, mode)

    monkeypatch.setattr(file_metadata.FileMetadata, "apply_to", recording_apply_to)
    before = os.umask(0)
    try:
        commit(manager, "t", modify("m", b"m"))
    finally:
        os.umask(before)

    assert modes == [(0o600, len(b"after"))]
    assert stat.S_IMODE((root / "m").stat().st_mode) == 0o600


def test_an_applied_transaction_can_be_rolled_back_until_it_is_finalized(root, manager):
    os.setxattr(root / "m", "user.note", b"mine")
    before = manifest(root)
    changes = [
        create("a/b/n"),
        modify("m", b"m"),
        delete("d", b"d"),
        move("s", "to/t", b"s"),
        move("sub/x", "y", b"sub/x", b"z"),
    ]
    prepared = manager.prepare("t", changes)
    manager.apply(prepared)

    assert manager.roll_back(prepared) == []
    assert manifest(root) == before
    manager.finalize("t")
    assert recover_changes(manager, []) == []


def test_a_file_changed_since_is_not_rolled_back(root, manager):
    prepared = manager.prepare("t", [modify("m", b"m"), delete("d", b"d"), create("n")])
    manager.apply(prepared)
    (root / "m").write_bytes(b"theirs")
    (root / "d").write_bytes(b"theirs too")
    (root / "n").write_bytes(b"and this")
    left = manager.roll_back(prepared)

    assert {each["path"]: each["reason"] for each in left} == dict.fromkeys("mdn", "changed_since")
    assert [(root / name).read_bytes() for name in "mdn"] == [b"theirs", b"theirs too", b"and this"]
    assert {path.name for path in root.iterdir()} == {".kaiza", "m", "d", "n", "s", "sub"}


def test_another_file_with_the_same_bytes_is_not_rolled_back(root, manager):
    prepared = manager.prepare("t", [move("s", "to/s", b"s"), modify("m", b"m"), create("n")])
    manager.apply(prepared)
    theirs = {}
    for name, content in {"to/s": b"s", "m": b"after", "n": b"new"}.items():
        (root / "theirs").write_bytes(content)
        theirs[name] = (root / "theirs").stat().st_ino
        (root / "theirs").rename(root / name)
    left = manager.roll_back(prepared)

    assert {each["path"]: each["reason"] for each in left} == dict.fromkeys(theirs, "changed_since")
    assert {name: (root / name).stat().st_ino for name in theirs} == theirs
    assert not (root / "s").exists()


def test_a_roll_back_is_marked_durably_before_the_first_file_is_restored(root, manager, monkeypatch):
    prepared, synced, real_fdatasync = manager.prepare("t", [modify("m", b"m")]), [], os.fdatasync

    def recording_fdatasync(fd):
        real_fdatasync(fd)
        synced.append((os.readlink(f"/proc/self/fd/{fd}"), (root / "m").read_bytes()))

    manager.apply(prepared)
    monkeypatch.setattr(os, "fdatasync", recording_fdatasync)
    manager.roll_back(prepared)

    assert synced == [(str(root / ".kaiza/journal/t"), b"after")]
    assert (root / "m").read_bytes() == b"m"


def test_the_content_of_a_move_always_has_a_name_while_it_is_rolled_back(root, manager, monkeypatch):
    prepared, seen = manager.prepare("t", [move("s", "t", b"s", b"edited")]), []
    real_rename = atomic_rename.rename_noreplace

    def recording_rename(*names):
        real_rename(*names)
        seen.append([name for name in "st" if (root / name).exists()])

    manager.apply(prepared)
    monkeypatch.setattr(atomic_rename, "rename_noreplace", recording_rename)

    assert manager.roll_back(prepared) == []
    assert seen == [["s", "t"], ["s"]]
    assert (root / "s").read_bytes() == b"s"


def test_a_file_written_to_since_is_not_replaced_even_for_a_moment(root, manager, monkeypatch):
    prepared, seen = manager.prepare("t", [modify("m", b"m"), create("n")]), []

    def recording(rename, *names):
        rename(*names)
        seen.append([(root / name).exists() and (root / name).read_bytes() for name in "mn"])

    manager.apply(prepared)
    for name in "mn":
        (root / name).write_bytes(b"theirs")
    for name in ("exchange", "rename_noreplace"):
        monkeypatch.setattr(atomic_rename, name, partial(recording, getattr(atomic_rename, name)))
    left = manager.roll_back(prepared)

    assert {each["path"]: each["reason"] for each in left} == dict.fromkeys("mn", "changed_since")
    assert all(contents == [b"theirs", b"theirs"] for contents in seen)


def test_an_undo_restores_bytes_modes_owners_attributes_and_directories(root, manager):
    (root / "d").chmod(0o640)
    (root / "m").chmod(0o755)
    os.setxattr(root / "d", "user.note", b"mine")
    before = manifest(root)
    commit(manager, "one", create("a/b/n"), modify("m", b"m", mode=0o644), delete("d", b"d"))
    commit(manager, "two", create("a/b/o"))
    restored = Change(parse("m"), "modify", digest(b"after"), digest(b"m"))
    recreated = Change(parse("d"), "create", None, digest(b"d"))
    commit(
        manager, "undo", delete("a/b/o", b"new"), delete("a/b/n", b"new"), restored, recreated, undoes=("two", "one")
    )

    assert manifest(root) == before


def test_an_undo_removes_only_directories_that_kaiza_created(root, manager):
    commit(manager, "one", create("sub/a/n"), delete("sub/x", b"sub/x"))
    commit(manager, "undo", delete("sub/a/n", b"new"), undoes=("one",))

    assert (root / "sub").is_dir()
    assert not (root / "sub/a").exists()


@pytest.mark.parametrize("line", ['"sub"', '["sub", "' + "0" * 64 + '"]', '["sub", null]', "[]", '["sub"]'])
def test_an_undo_ignores_directories_that_a_clone_lists_as_created(root, manager, line):
    (root / ".kaiza/made").mkdir(parents=True)
    (root / ".kaiza/made/list").write_text(f"{line}\n")
    commit(manager, "one", create("sub/n"), delete("sub/x", b"sub/x"))
    commit(manager, "undo", delete("sub/n", b"new"), undoes=("one",))

    assert (root / "sub").is_dir()


@pytest.fixture
def large(root, monkeypatch):
    """A file too large to be packed: its hash, its stamp, and a list of the descriptors that were read whole since."""
    (root / "big").write_bytes(b"x" * (MAX_PACKED_BYTES + 1))
    read = []
    real_read_all = file_metadata.read_all
    monkeypatch.setattr(file_metadata, "read_all", lambda fd: (read.append(fd), real_read_all(fd))[1])
    return digest(b"x" * (MAX_PACKED_BYTES + 1)), file_stamp((root / "big").stat()), read


def test_a_large_file_open_for_writing_is_read_again_before_it_is_stored(root, manager, large):
    before, stamp, read = large
    with (root / "big").open("r+b"):
        commit(manager, "t", Change(parse("big"), "delete", before, stat_signature=stamp))

    assert len(read) == 2
    assert (root / ".kaiza/objects" / before).stat().st_size == MAX_PACKED_BYTES + 1


def test_a_forged_stamp_is_detected_after_the_rename(root, manager, large):
    (root / "big").write_bytes(b"y" * (MAX_PACKED_BYTES + 1))
    before, stamp = large[0], file_stamp((root / "big").stat())
    prepared = manager.prepare("t", [Change(parse("big"), "delete", before, stat_signature=stamp)])

    assert code_of(manager.apply, prepared) == "HASH_MISMATCH"
    assert (root / "big").read_bytes() == b"y" * (MAX_PACKED_BYTES + 1)


def count_descriptors():
    with os.scandir("/proc/self/fd") as entries:
        return len(list(entries))


def test_no_transaction_leaks_descriptors(root, manager):
    commit(manager, "warm", create("warm/up"), modify("s", b"s"))
    before = count_descriptors()
    for number in range(20):
        commit(manager, f"ok{number}", create(f"n{number}/a"), modify("m", b"m"))
        commit(manager, f"back{number}", modify("m", b"after", b"m"))
        rolled_back = manager.prepare(f"rolled-back{number}", [delete("d", b"d")])
        manager.apply(rolled_back)
        manager.roll_back(rolled_back)
        late = manager.prepare(f"late{number}", [delete("d", b"d"), create(f"l{number}")])
        (root / f"l{number}").touch()
        assert code_of(manager.apply, late) == "FILE_ALREADY_EXISTS"
        assert code_of(manager.prepare, "no", [modify("none", b"")]) == "FILE_NOT_FOUND"
        recover_changes(manager, [])

    assert count_descriptors() <= before


class PausedProcess:
    """Another process that makes a change and waits after staging it, before the first rename."""

    def __init__(self, root, change, monkeypatch):
        staged, self._resume = os.pipe(), os.pipe()
        self._child = os.fork()
        if self._child == 0:
            self._change(root, change, monkeypatch, staged[1])
        os.close(staged[1])
        assert os.read(staged[0], 1) == b"."
        os.close(staged[0])

    def _change(self, root, change, monkeypatch, staged):
        def wait_then_perform(active):
            os.write(staged, b".")
            os.close(self._resume[1])
            os.read(self._resume[0], 1)
            monkeypatch.undo()
            active.perform()

        status = 1
        try:
            monkeypatch.setattr(ActiveOperation, "perform", wait_then_perform)
            with ConfinedRoot(str(root)) as workspace:
                commit(open_transactions(workspace), "first", change)
            status = 0
        finally:
            os._exit(status)

    def resume(self):
        """Let it make the change, and return its exit status."""
        os.close(self._resume[1])
        os.close(self._resume[0])
        child, self._child = self._child, None
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def end(self):
        if self._child is not None:
            os.kill(self._child, signal.SIGKILL)
            self.resume()


@pytest.fixture
def pause_process(root, monkeypatch):
    """Starts a process that pauses in the middle of a change."""
    started = []

    def start(change):
        started.append(PausedProcess(root, change, monkeypatch))
        return started[-1]

    yield start
    for process in started:
        process.end()


@pytest.mark.parametrize("second", [modify("m", b"m", b"second"), move("m", "n", b"m"), delete("m", b"m")])
def test_a_change_to_a_file_that_another_process_is_changing_times_out(
    root, manager, pause_process, monkeypatch, second
):
    first = pause_process(modify("m", b"m", b"first"))
    monkeypatch.setattr(lock_timeouts, "PATHS", 0.1)
    before = manifest(root)

    assert code_of(commit, manager, "second", second) == "FILE_WRITE_FAILED"
    assert manifest(root) == before
    assert first.resume() == 0
    assert (root / "m").read_bytes() == b"first"


@pytest.mark.long
def test_concurrent_writers_of_one_file_lose_no_update(root, manager):
    (root / "m").write_bytes(b"")
    applied, refused = [], []

    def add(number):
        for attempt in range(40):
            before = (root / "m").read_bytes()
            txn = f"w{number}-{attempt}"
            try:
                commit(manager, txn, modify("m", before, before + b"%d " % number))
            except errors.SystemError as error:
                refused.append(error.error_code)
            else:
                applied.append(number)
                return

    threads = [threading.Thread(target=add, args=(number,)) for number in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(int(number) for number in (root / "m").read_bytes().split()) == sorted(applied)
    assert set(refused) <= {"HASH_MISMATCH"}


REPLACER = """
import ctypes, sys
swap = ctypes.CDLL(None).renameat2
print("ready", flush=True)
number = 0
with open("../taken", "w", buffering=1) as taken:
    while True:
        number += 1
        with open("rival", "w") as draft:
            draft.write(f"rival {number}")
        while swap(-100, b"rival", -100, b"m", 2):
            pass
        with open("rival") as out:
            taken.write(out.read() + chr(10))
"""


@pytest.mark.long
def test_no_content_is_lost_while_another_process_keeps_replacing_the_file(root, manager):
    codes, replaced = set(), set()
    with subprocess.Popen([sys.executable, "-c", REPLACER], cwd=root, stdout=subprocess.PIPE) as replacer:
        replacer.stdout.readline()
        for number in range(30_000 if LONG else 100):
            before = (root / "m").read_bytes()
            try:
                commit(manager, f"c{number}", modify("m", before, b"ours %d" % number))
                replaced.add(before)
            except errors.SystemError as error:
                codes.add(error.error_code)
        replacer.kill()
    stored = {path.name.removesuffix(".z") for path in (root / ".kaiza/objects").rglob("*") if path.is_file()}
    taken = {line.encode() for line in (root.parent / "taken").read_text().splitlines()}
    last = {(root / name).read_bytes() for name in ("m", "rival") if (root / name).exists()}
    known = {digest(content) for content in taken | replaced | last} | stored
    placed = {b"rival %d" % number for number in range(1, len(taken))}

    assert codes <= {"HASH_MISMATCH"}
    assert {content for content in placed if digest(content) not in known} == set()
    assert not [path for path in root.iterdir() if path.name.startswith(".kaiza-")]
