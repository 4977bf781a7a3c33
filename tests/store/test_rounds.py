import ctypes
import errno
import fcntl
import os
import shutil
import subprocess
import threading

import pytest
from logs import body, log_path, open_log

from kaiza.domain import errors
from kaiza.store import log_file, state
from kaiza.store.rounds import Rounds


@pytest.fixture
def root(tmp_path):
    (tmp_path / "audit").mkdir()
    return tmp_path


@pytest.fixture
def file(root):
    made = log_file.open_log(str(root), create=True)
    made.hears_losses = True
    return made


@pytest.fixture
def place(root):
    return state.directory(str(root), create=True)


@pytest.fixture
def mine(place):
    made = Rounds(place)
    yield made
    made.close()


@pytest.fixture
def synced(monkeypatch, file):
    """How often this process itself synced the file; other logs may be synced in the background meanwhile."""
    seen, really = [], os.fdatasync

    def counted(fd):
        if fd == file.descriptor:
            seen.append(fd)
        really(fd)

    monkeypatch.setattr(os, "fdatasync", counted)
    return seen


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs a file that is on no disk")
def test_losses_are_heard_of_only_where_that_is_known():
    assert log_file.LogFile(os.memfd_create("on no disk")).hears_losses is False


def test_losses_are_not_heard_of_through_a_file_system_that_is_stacked_on_another(tmp_path):
    lower, upper, work, there = (tmp_path / name for name in ("lower", "upper", "work", "there"))
    for place in (lower, upper, work, there):
        place.mkdir()
    layers = f"lowerdir={lower},upperdir={upper},workdir={work}"
    mount = ["mount", "-t", "overlay", "overlay", "-o", layers, str(there)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("a file system may not be stacked on another here")
    try:
        (there / "audit").mkdir()
        assert log_file.open_log(str(there), create=True).hears_losses is False
    finally:
        subprocess.run(["umount", str(there)], check=True)


class Other:
    """Another process's hand on the rounds; it is in one for as long as it has the lock."""

    def __init__(self, place):
        self.rounds = Rounds(place)
        assert self.rounds._takes_part()

    def enter(self):
        fcntl.flock(self.rounds._descriptor, fcntl.LOCK_EX)

    def leave(self):
        fcntl.flock(self.rounds._descriptor, fcntl.LOCK_UN)

    def tell(self, began, done, file):
        assert self.rounds._tell((began, done, file.identity))

    @property
    def seen(self):
        return self.rounds._look()[:2]

    def hears_of(self, file):
        return self.rounds._look()[2] == file.identity

    def is_free(self):
        free = self.rounds._is_free()
        self.leave()
        return free


@pytest.fixture
def other(place):
    made = Other(place)
    yield made
    made.rounds.close()


def meanwhile(monkeypatch, *events):
    """What happens each time that whoever waits here lets the others run; other logs' threads may do so meanwhile."""
    left, here = list(events), threading.get_ident()
    monkeypatch.setattr(os, "sched_yield", lambda: left.pop(0)() if left and threading.get_ident() == here else None)


def nothing():
    pass


def test_whoever_finds_nobody_syncs_and_tells_the_others(mine, other, file, synced):
    mine.sync(file)
    mine.sync(file)

    assert synced == [file.descriptor] * 2
    assert other.seen == (1, 1)
    assert other.hears_of(file)
    assert other.is_free()


def test_closing_leaves_nothing_open(place, file):
    made = Rounds(place)
    made.sync(file)
    ours = made._descriptor
    made.close()

    with pytest.raises(OSError, match="Bad file"):
        os.fstat(ours)
    made.close()


def test_whoever_waited_in_vain_syncs_alone_for_a_while(mine, other, file, synced, monkeypatch):
    other.tell(8, 7, file)
    other.enter()
    mine.sync(file)
    with monkeypatch.context() as watched:
        waited = []
        meanwhile(watched, *[lambda: waited.append(1)] * 32)
        for _ in range(32):
            mine.sync(file)
    meanwhile(monkeypatch, lambda: other.tell(9, 9, file))
    mine.sync(file)

    assert waited == []
    assert len(synced) == 33


def test_a_round_that_began_later_counts(mine, other, file, synced, monkeypatch):
    other.tell(7, 7, file)
    other.enter()
    meanwhile(monkeypatch, nothing, lambda: other.tell(8, 7, file), nothing, lambda: other.tell(8, 8, file))
    mine.sync(file)

    assert synced == []


def test_a_round_that_was_under_way_already_does_not_count(mine, other, file, synced, monkeypatch):
    other.enter()
    other.tell(8, 7, file)
    meanwhile(monkeypatch, nothing, nothing, lambda: other.tell(8, 8, file), other.leave)
    mine.sync(file)

    assert synced == [file.descriptor]
    assert other.seen == (9, 9)


def test_one_that_ended_before_the_lock_was_ours_is_not_made_again(mine, other, file, synced, monkeypatch):
    really = Rounds._is_free
    monkeypatch.setattr(Rounds, "_is_free", lambda self: (other.tell(8, 8, file), really(self))[1])
    other.tell(7, 7, file)
    mine.sync(file)

    assert synced == []
    assert other.seen == (8, 8)


def test_a_round_for_another_file_does_not_count(root, mine, other, file, synced, monkeypatch):
    log_path(root).rename(root / "moved")
    another = log_file.open_log(str(root), create=True)
    other.tell(7, 7, file)
    meanwhile(monkeypatch, lambda: other.tell(8, 8, another))
    mine.sync(file)

    assert synced == [file.descriptor]


@pytest.mark.parametrize("garbage", [b"", b"\0" * 44, b"\xff" * 44, b"short"], ids=["none", "zeros", "ones", "short"])
def test_what_is_not_whole_counts_for_nobody_and_is_mended(place, mine, other, file, synced, garbage):
    (place / "rounds").write_bytes(garbage)
    mine.sync(file)

    assert synced == [file.descriptor]
    assert other.seen == (0, 0)


def test_whoever_saw_no_whole_round_counts_none_that_was_under_way(place, mine, other, file, synced, monkeypatch):
    other.enter()
    (place / "rounds").write_bytes(b"garbage")
    meanwhile(monkeypatch, nothing, nothing, lambda: other.tell(58, 58, file))
    mine.sync(file)

    assert synced == [file.descriptor]


@pytest.mark.parametrize("told", [(8, 7), (7, 7)])
def test_a_process_that_was_stopped_in_its_round_holds_up_nobody(mine, other, file, synced, told):
    other.tell(*told, file)
    other.enter()
    mine.sync(file)

    assert synced == [file.descriptor]


def test_whoever_died_in_a_round_is_followed_by_the_next(mine, other, file, synced):
    other.tell(8, 7, file)
    mine.sync(file)

    assert synced == [file.descriptor]
    assert other.seen == (9, 9)


def test_a_round_whose_sync_fails_counts_for_nobody(mine, other, file, monkeypatch):
    def failing(_):
        raise OSError(errno.EIO, "lost")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        with pytest.raises(OSError, match="lost"):
            mine.sync(file)
    began, done = other.seen

    assert done != began
    mine.sync(file)
    assert other.seen == (began + 1, began + 1)


def test_a_round_whose_beginning_cannot_be_told_is_none(mine, other, file, synced, monkeypatch):
    other.tell(7, 7, file)
    monkeypatch.setattr(os, "pwrite", lambda *_: 3)
    mine.sync(file)

    assert synced == [file.descriptor]
    assert other.seen == (7, 7)


@pytest.mark.parametrize("call", ["open", "flock", "pread"])
def test_where_there_can_be_no_rounds_everybody_syncs_alone(mine, other, file, synced, monkeypatch, call):
    def failing(*_, **__):
        raise OSError(errno.ENOLCK, "no")

    other.tell(7, 7, file)
    monkeypatch.setattr(fcntl if call == "flock" else os, call, failing)
    mine.sync(file)

    assert synced == [file.descriptor]


def losing(number):
    """What the kernel says when it is asked whether something was lost."""
    return lambda *_: (ctypes.set_errno(number), -1)[1]


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_whom_a_round_counts_for_hears_of_its_own_losses(mine, other, file, monkeypatch, number):
    monkeypatch.setattr(log_file, "_SYNC_FILE_RANGE", losing(number))
    other.tell(7, 7, file)
    meanwhile(monkeypatch, lambda: other.tell(8, 8, file))

    with pytest.raises(OSError, match=os.strerror(number)):
        mine.sync(file)


def test_where_the_kernel_refuses_that_question_everybody_syncs(mine, other, file, synced, monkeypatch):
    monkeypatch.setattr(log_file, "_SYNC_FILE_RANGE", losing(errno.ENOSYS))
    other.tell(7, 7, file)
    meanwhile(monkeypatch, lambda: other.tell(8, 8, file))
    mine.sync(file)

    assert synced == [file.descriptor]


def test_where_nobody_is_told_of_losses_everybody_syncs(mine, other, file, synced, monkeypatch):
    file.hears_losses = False
    other.tell(7, 7, file)
    meanwhile(monkeypatch, lambda: other.tell(8, 8, file))
    mine.sync(file)

    assert synced == [file.descriptor]


def test_a_loss_that_a_round_hid_is_final_for_the_log(root, monkeypatch):
    one, two = open_log(root), open_log(root)
    one.append(body, durable=True)
    with monkeypatch.context() as broken:
        broken.setattr(Rounds, "_led", lambda _, file, __: (file.take_for_synced(), True)[1])
        broken.setattr(log_file, "_SYNC_FILE_RANGE", losing(errno.EIO))
        with pytest.raises(errors.SystemError) as refused:
            two.append(body, durable=True)

    assert refused.value.error_code == "AUDIT_LOG_FAILED"
    with pytest.raises(errors.SystemError):
        two.append(body, durable=True)
    assert one.append(body, durable=True)["seq"] == 3


def test_whoever_writes_alone_syncs_without_asking_anybody(root, place):
    log = open_log(root)
    for _ in range(3):
        log.append(body, durable=True)

    assert not (place / "rounds").exists()
    open_log(root).append(body, durable=True)
    assert (place / "rounds").stat().st_mode & 0o777 == 0o600
