import errno
import os
import threading
from pathlib import Path

import pytest

from kaiza.store import together

KERNEL = pytest.mark.skipif(together._CALLS is None or together._queue() is None, reason="the system lacks the calls")


@pytest.fixture
def opened(tmp_path):
    """So many written files, open."""
    fds = []

    def open_some(count):
        for number in range(count):
            fds.append(os.open(tmp_path / f"{number}", os.O_CREAT | os.O_RDWR))
            os.write(fds[-1], b"content")
        return fds[-count:]

    yield open_some
    for fd in fds:
        os.close(fd)


@pytest.fixture
def by_hand(monkeypatch):
    """The descriptors that were synced one by one."""
    synced, really = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(fd), really(fd)))
    return synced


@KERNEL
@pytest.mark.parametrize("count", [2, 5, together.MOST])
def test_several_are_left_to_the_kernel(opened, by_hand, count, tmp_path):
    directory = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    together.sync([*opened(count - 1), directory])
    os.close(directory)

    assert by_hand == []


@pytest.mark.parametrize("count", [0, 1, together.MOST + 1])
def test_one_alone_or_too_many_are_synced_by_hand(opened, by_hand, count):
    fds = opened(count) if count else []
    together.sync(fds)

    assert by_hand == fds


@pytest.mark.parametrize("lacking", ["machine", "filtered"])
def test_where_the_calls_are_missing_each_is_synced_by_hand(opened, by_hand, monkeypatch, lacking):
    monkeypatch.setattr(together, "_idle", [])
    if lacking == "machine":
        monkeypatch.setattr(together, "_CALLS", None)
    else:
        monkeypatch.setattr(together, "_SETUP", 100_000)
    fds = opened(3)
    together.sync(fds)

    assert by_hand == fds


@KERNEL
def test_what_the_kernel_does_not_take_is_synced_by_hand_and_its_failure_is_told(opened, by_hand):
    first, second = opened(2)
    reader, writer = os.pipe()
    with pytest.raises(OSError, match="Invalid argument"):
        together.sync([first, writer, second])
    os.close(reader)
    os.close(writer)

    assert by_hand == [writer]
    together.sync([first, second])
    assert by_hand == [writer]


@KERNEL
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_failure_of_any_of_them_is_told_when_all_are_done(opened, by_hand, monkeypatch, which):
    really = together._call

    def failing(number, *arguments):
        done = really(number, *arguments)
        if number == together._EVENTS:
            events = (together._Event * done).from_address(arguments[3])
            for one in events:
                if one.wish == wishes[which]:
                    one.result = -errno.EIO
        return done

    queue = together._queue()
    wishes = list(queue._list)
    monkeypatch.setattr(together, "_idle", [queue])
    monkeypatch.setattr(together, "_call", failing)
    with pytest.raises(OSError, match="Input/output error") as failed:
        together.sync(opened(3))

    assert failed.value.errno == errno.EIO
    assert together._idle == [queue], "nothing is under way in it any more"
    assert by_hand == []


@KERNEL
def test_threads_have_queues_of_their_own(opened, monkeypatch):
    monkeypatch.setattr(together, "_idle", [])
    fds, failed = opened(12), []

    def work(mine):
        try:
            for _ in range(30):
                together.sync(mine)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(fds[at : at + 3],)) for at in range(0, 12, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failed == []
    assert 1 <= len(together._idle) <= 4


@KERNEL
def test_few_queues_rest_and_the_others_are_given_back(monkeypatch):
    def in_use():
        return int(Path("/proc/sys/fs/aio-nr").read_text())

    monkeypatch.setattr(together, "_idle", [])
    queues = [together._Queue() for _ in range(8)]
    most = in_use()
    for queue in queues:
        queue.rest()

    assert len(together._idle) == 4
    assert in_use() < most


@KERNEL
def test_a_child_of_a_fork_syncs_too(opened):
    fds = opened(2)
    together.sync(fds)
    child = os.fork()
    if child == 0:
        together.sync(fds)
        os._exit(0)

    assert os.waitpid(child, 0)[1] == 0
