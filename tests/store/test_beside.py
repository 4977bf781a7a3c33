"""A file read in pieces while a thread does something else to each: nothing is lost, mixed up or left running."""

import errno
import os
import threading

import pytest

from kaiza.domain import errors
from kaiza.domain.paths import ROOT
from kaiza.store import beside
from kaiza.store.beside import PIECE, Beside


@pytest.fixture
def opened(tmp_path):
    def of(content):
        (tmp_path / "f").write_bytes(content)
        fds.append(os.open(tmp_path / "f", os.O_RDONLY))
        return fds[-1]

    fds = []
    yield of
    for fd in fds:
        os.close(fd)


def passed(fd, work=None):
    """What the reader and the work each got to see."""
    seen, done = bytearray(), bytearray()
    with Beside(fd, ROOT, work or done.extend) as pieces:
        while piece := pieces.read():
            seen += piece
    return bytes(seen), bytes(done)


@pytest.mark.parametrize("size", [0, 1, PIECE - 1, PIECE, PIECE + 1, 7 * PIECE + 5])
def test_both_sides_see_every_byte_in_order(opened, size):
    content = os.urandom(size)

    assert passed(opened(content)) == (content, content)


def test_a_reader_that_stops_leaves_no_thread_behind(opened):
    before = threading.active_count()
    with Beside(opened(b"x" * 5 * PIECE), ROOT, lambda _: None) as pieces:
        pieces.read()

    assert threading.active_count() == before


def test_a_read_that_fails_is_told_as_one(opened, monkeypatch):
    def fails(*_):
        raise OSError(errno.EIO, "no")

    fd = opened(b"x")
    monkeypatch.setattr(beside.os, "readv", fails)
    with pytest.raises(errors.SystemError) as caught, Beside(fd, ROOT, lambda _: None) as pieces:
        pieces.read()
    assert caught.value.error_code == "FILE_READ_FAILED"


def test_the_work_stays_off_the_readers_processor_where_there_is_another(opened, monkeypatch):
    mine = os.sched_getaffinity(0)
    theirs = []
    for current in mine:
        monkeypatch.setattr(beside, "_CURRENT", lambda current=current: current)
        with Beside(opened(b"x"), ROOT, lambda _: theirs.append(os.sched_getaffinity(0))) as pieces:
            pieces.read()

    assert theirs == [(mine - {current}) or mine for current in mine]
    assert os.sched_getaffinity(0) == mine


def test_where_no_thread_can_be_had_the_reader_does_the_work_itself(opened, monkeypatch):
    def no_more(_):
        raise RuntimeError("can't start new thread")

    content = os.urandom(7 * PIECE + 5)
    monkeypatch.setattr(threading.Thread, "start", no_more)

    assert passed(opened(content)) == (content, content)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("pieces", [1, 2, 3, 9])
def test_work_that_fails_is_never_taken_for_done(opened, pieces):
    left = [pieces - 1]

    def work(_):
        if not left[0]:
            raise MemoryError
        left[0] -= 1

    before = threading.active_count()
    with pytest.raises(RuntimeError, match="beside"):
        passed(opened(b"x" * pieces * PIECE), work)
    assert threading.active_count() == before
