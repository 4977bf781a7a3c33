"""Parallel fsync: every error reaches the caller, and nothing hangs or leaks."""

import errno
import os
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from kaiza.store.disk import fsync_batch
from kaiza.store.disk.fsync_batch import MAX_SINGLE_FSYNCS, FsyncBatch, fsync_all


@pytest.fixture
def opened(tmp_path):
    """Opens files with content."""
    fds = []

    def open_some(count):
        for number in range(count):
            fds.append(os.open(tmp_path / f"{number}", os.O_CREAT | os.O_RDWR))
            os.write(fds[-1], b"content")
        return fds[-count:] if count else []

    yield open_some
    for fd in fds:
        os.close(fd)


@pytest.fixture
def root_fd(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


@pytest.fixture
def synced(monkeypatch):
    """The inodes of the files that were fsynced."""
    inode_numbers, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (inode_numbers.append(os.fstat(fd).st_ino), fsync(fd)))
    return inode_numbers


def inodes(fds):
    return sorted(os.fstat(fd).st_ino for fd in fds)


@pytest.mark.parametrize("count", [0, 1, 2, 5, 40])
def test_every_file_is_fsynced_once(opened, synced, count):
    fds = opened(count)
    fsync_all(fds)

    assert sorted(synced) == inodes(fds)


def test_files_are_fsynced_in_parallel(opened, monkeypatch):
    barrier = threading.Barrier(3)
    monkeypatch.setattr(os, "fsync", lambda _: barrier.wait(10))
    fsync_all(opened(3))

    assert not barrier.broken


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_an_error_of_any_fsync_is_raised_after_all_have_ended(opened, monkeypatch, count):
    fds = opened(count)
    for failing in fds:
        ended = []

        def fsync(fd, failing=failing, ended=ended):
            ended.append(fd)
            if fd == failing:
                raise OSError(errno.EIO, "no")

        monkeypatch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match="no") as caught:
            fsync_all(fds)
        assert caught.value.errno == errno.EIO
        assert sorted(ended) == sorted(fds)


@pytest.mark.parametrize("started", [0, 1, 2])
def test_files_are_fsynced_by_the_caller_where_no_more_threads_can_be_started(opened, synced, monkeypatch, started):
    start, left = threading.Thread.start, [started]

    def start_few(thread):
        if not left[0]:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    fsync_batch._executor.cache_clear()
    monkeypatch.setattr(threading.Thread, "start", start_few)
    fds = opened(5)
    fsync_all(fds)

    assert set(synced) == set(inodes(fds))
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("kaiza-fsync")]


@pytest.mark.parametrize("started", [0, 1])
def test_an_error_is_raised_where_no_more_threads_can_be_started(opened, monkeypatch, started):
    """The kernel reports a lost write to a descriptor once."""
    reported = set()

    def fsync(fd):
        if fd not in reported:
            reported.add(fd)
            raise OSError(errno.EIO, "no")

    fsync_batch._executor.cache_clear()
    start, left = threading.Thread.start, [started]
    monkeypatch.setattr(
        threading.Thread, "start", lambda thread: start(thread) if left and left.pop() else refuse_thread()
    )
    monkeypatch.setattr(os, "fsync", fsync)

    with pytest.raises(OSError, match="no"):
        fsync_all(opened(3))


def refuse_thread():
    raise RuntimeError("can't start new thread")


def test_a_forked_child_fsyncs_and_exits(opened, capfd):
    fsync_all(opened(5))
    script = """
import os, sys
from kaiza.store.disk.fsync_batch import fsync_all
fds = [os.open(f"{sys.argv[1]}/{name}", os.O_CREAT | os.O_RDWR) for name in "abc"]
fsync_all(fds)
child = os.fork()
fsync_all(fds)
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    directory = os.path.dirname(os.readlink(f"/proc/self/fd/{opened(1)[0]}"))
    ended = subprocess.run([sys.executable, "-W", "ignore", "-c", script, directory], timeout=20, check=False)

    assert ended.returncode == 0


def test_files_are_fsynced_while_the_interpreter_exits(tmp_path):
    script = """
import atexit, os, sys
from kaiza.store.disk.fsync_batch import fsync_all
fds = [os.open(f"{sys.argv[1]}/{name}", os.O_CREAT | os.O_RDWR) for name in "abc"]
atexit.register(lambda: (fsync_all(fds), print("synced")))
fsync_all(fds)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, tmp_path], timeout=20, capture_output=True, text=True, check=True
    )

    assert ended.stdout == "synced\n"


@pytest.mark.parametrize(
    ("files", "has_syncfs"), [(MAX_SINGLE_FSYNCS, True), (MAX_SINGLE_FSYNCS + 1, True), (99, False)]
)
def test_few_files_are_fsynced_each_and_many_by_one_syncfs(tmp_path, root_fd, monkeypatch, synced, files, has_syncfs):
    syncfs_calls, before = [], len(os.listdir("/proc/self/fd"))
    monkeypatch.setattr(fsync_batch, "_sync_file_system", syncfs_calls.append)
    if not has_syncfs:
        monkeypatch.setattr(fsync_batch, "_SYNCFS", None)
    added = []
    with closing(FsyncBatch(files, root_fd)) as batch:
        for number in range(50):
            batch.add(os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY))
            added.append((tmp_path / f"{number}").stat().st_ino)
        batch.sync()

    by_file = files <= MAX_SINGLE_FSYNCS or not has_syncfs
    assert (sorted(synced), syncfs_calls) == ((sorted(added), []) if by_file else ([], [root_fd]))
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_borrowed_descriptor_is_fsynced_once_after_the_full_batches_and_stays_open(tmp_path, root_fd, synced):
    added = []
    with closing(FsyncBatch()) as batch:
        for number in range(40):
            batch.add(os.open(tmp_path / f"{number}", os.O_CREAT | os.O_WRONLY))
            batch.add_borrowed(root_fd)
            added.append((tmp_path / f"{number}").stat().st_ino)
        batch.sync()

    borrowed = os.fstat(root_fd).st_ino
    assert sorted(synced) == sorted([*added, borrowed])
    assert borrowed in synced[32:]


def test_a_batch_whose_fsync_fails_leaves_nothing_open(tmp_path, monkeypatch):
    def fail(_fd):
        raise OSError(errno.EIO, "no")

    monkeypatch.setattr(os, "fsync", fail)
    fd = os.open(tmp_path / "f", os.O_CREAT | os.O_WRONLY)
    with closing(FsyncBatch()) as batch:
        batch.add(fd)
        with pytest.raises(OSError, match="no"):
            batch.sync()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)
