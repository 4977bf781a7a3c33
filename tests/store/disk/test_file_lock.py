"""The lock of the log: acquired through portalocker, with a deadline, and without starving any process."""

import fcntl
import os
import time

import pytest
from logs import body, log_path, open_log, start_python
from portalocker import portalocker as locker

from kaiza.domain import errors
from kaiza.store.audit.verification import verify
from kaiza.store.disk.file_lock import FileLock


@pytest.fixture
def opened(tmp_path):
    """Locks on one file, each on a descriptor of its own."""
    locks = []

    def open_lock():
        locks.append(FileLock(os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)))
        return locks[-1]

    yield open_lock
    for lock in locks:
        lock.close()


def test_only_one_lock_on_a_file_can_be_held(opened):
    first, second = opened(), opened()

    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    assert second.try_acquire()


def test_closing_a_lock_releases_it(opened):
    first, second = opened(), opened()
    first.acquire(1)
    first.close()

    assert second.try_acquire()
    first.close()
    assert not opened().try_acquire()


@pytest.mark.usefixtures("alarm")
def test_waiting_for_a_lock_ends_at_the_deadline_with_a_code(opened):
    opened().acquire(1)
    begin = time.monotonic()
    with pytest.raises(errors.SystemError) as caught:
        opened().acquire(0.1)

    assert time.monotonic() - begin >= 0.1
    assert caught.value.error_code == "AUDIT_LOCK_FAILED"
    assert caught.value.cause == {"waited_ms": 100}


def test_a_lock_that_the_system_refuses_fails_at_once(opened, monkeypatch):
    def refuse(*_):
        raise OSError(37, "No locks available")

    monkeypatch.setattr(locker, "LOCKER", refuse)
    lock = opened()
    for action in (lock.try_acquire, lambda: lock.acquire(60), lock.release):
        with pytest.raises(errors.SystemError) as caught:
            action()
        assert caught.value.error_code == "AUDIT_LOCK_FAILED"
        assert caught.value.cause["code"] == 37


BUSY = """
import os, sys, time
from kaiza.store.disk.file_lock import FileLock

lock = FileLock(os.open(sys.argv[1], os.O_RDWR | os.O_CREAT))
for _ in range(300):
    lock.acquire(60)
    end = time.perf_counter() + 0.0002
    while time.perf_counter() < end:
        pass
    lock.release()
"""


def test_none_of_three_processes_that_lock_all_the_time_starves(tmp_path):
    running = [start_python(BUSY, tmp_path / "f") for _ in range(3)]

    for process in running:
        process.communicate(timeout=120)

    assert [process.returncode for process in running] == [0, 0, 0]


def test_every_lock_on_the_log_is_acquired_through_portalocker(tmp_path, monkeypatch):
    (tmp_path / "audit").mkdir()
    direct, through = [], []

    def recording(paths, really=fcntl.flock):
        def flock(descriptor, flags):
            paths.append(os.readlink(f"/proc/self/fd/{descriptor}"))
            return really(descriptor, flags)

        return flock

    monkeypatch.setattr(locker, "LOCKER", recording(through))
    monkeypatch.setattr(fcntl, "flock", recording(direct))
    log = open_log(tmp_path)
    log.append(body, durable=True)
    log.append(body, durable=False)
    log.catch_up()
    log.close()
    verify.verify_log(str(tmp_path))

    path = str(log_path(tmp_path).resolve())
    assert path not in direct
    assert through.count(path) >= 8
