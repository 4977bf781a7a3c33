import fcntl
import os
import random
import time
from contextlib import contextmanager

import pytest
from doors import PATIENCE, until
from logs import LONG, body, log_path, open_log, start_python
from scenes import records

from kaiza.domain import errors
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.verification import verify
from kaiza.store.disk import lock_timeouts, state_dir

WRITER = """
import sys
from logs import body, open_log
log = open_log(sys.argv[1], lock_seconds=60)
durable = sys.argv[3] == "durable"
for number in range(int(sys.argv[2])):
    record = body(detail={"writer": sys.argv[4], "number": number})
    written = log.append(lambda: record, durable=durable)
    print(written.seq, written.entry_hash, flush=durable)
log.close()
"""
HOLDER = """
import fcntl, os, signal, sys
log = os.open(sys.argv[1], os.O_RDWR)
fcntl.flock(log, fcntl.LOCK_EX)
print("held", flush=True)
os.kill(os.getpid(), signal.SIGSTOP)
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    (tmp_path / "audit").mkdir()
    return tmp_path


def writer(root, count, *, durable=True, name="w"):
    return start_python(WRITER, root, count, "durable" if durable else "not", name)


def acknowledged(output):
    return {
        int(seq): entry_hash for seq, entry_hash in (line.split() for line in output.splitlines() if len(line) > 64)
    }


@pytest.mark.long
@pytest.mark.parametrize("durable", [False, True])
def test_several_processes_write_one_chain(root, durable):
    count = 2000 if LONG else 60
    running = [writer(root, count, durable=durable, name=number) for number in range(8)]
    acks = [acknowledged(process.communicate()[0]) for process in running]
    found = verify.verify_log(str(root))
    lines = records(root)

    assert [process.returncode for process in running] == [0] * 8
    assert (found.verdict, found.records, found.anchored) == ("intact", 8 * count, True)
    assert {seq: entry_hash for ack in acks for seq, entry_hash in ack.items()} == {
        line["seq"]: line["entry_hash"] for line in lines
    }
    for name in range(8):
        numbers = [line["detail"]["number"] for line in lines if line["detail"]["writer"] == str(name)]
        assert numbers == list(range(count))


@pytest.mark.long
def test_a_writer_killed_at_any_moment_loses_nothing_and_delays_no_other(root):
    generator = random.Random(7)
    acks, log = {}, open_log(root, lock_seconds=PATIENCE)
    for _ in range(200 if LONG else 8):
        running = [writer(root, 10**6, name=number) for number in range(2)]
        running[0].stdout.readline()
        end = time.monotonic() + generator.random() * 0.03
        while time.monotonic() < end:
            written = log.append(body, durable=True)
            acks[written.seq] = written.entry_hash
        for process in running:
            process.kill()
        for process in running:
            acks |= acknowledged(process.communicate()[0])
        written = log.append(body, durable=True)
        acks[written.seq] = written.entry_hash
    logged = {line["seq"]: line["entry_hash"] for line in records(root)}
    found = verify.verify_log(str(root))
    assert (found.verdict, found.anchored) == ("intact", True)
    assert acks.items() <= logged.items()


@contextmanager
def stopped_holder_of(path):
    """A process that is stopped while it holds the lock on a file."""
    path.touch()
    process = start_python(HOLDER, path)
    process.stdout.readline()
    os.waitpid(process.pid, os.WUNTRACED)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def stopped(root):
    with stopped_holder_of(log_path(root)) as process:
        yield process


def test_a_process_stopped_while_it_holds_a_checkpoint_delays_no_other(root):
    log, directory = open_log(root, lock_seconds=0.3), state_dir.path_of(str(root), create=True)
    with stopped_holder_of(directory / "anchor"):
        log.append(body, durable=True)
        log.append(body, durable=False)

        assert Checkpoint(directory).read().head.seq == 1
        log.close()
    assert Checkpoint(directory).read().head.seq == 2


@pytest.mark.usefixtures("alarm")
def test_waiting_for_the_lock_of_a_stopped_process_ends_at_the_deadline(root, stopped):
    log = open_log(root, lock_seconds=0.3)
    begin = time.monotonic()

    for _ in range(2):
        with pytest.raises(errors.SystemError) as refused:
            log.append(body, durable=True)
        assert refused.value.error_code == "AUDIT_LOCK_FAILED"
    assert time.monotonic() - begin >= 0.6
    with pytest.raises(errors.SystemError):
        log.catch_up()
    assert records(root) == []


def test_no_lock_is_acquired_after_its_caller_gave_up(root, stopped):
    log = open_log(root, lock_seconds=0.2)
    with pytest.raises(errors.SystemError):
        log.append(body, durable=True)
    stopped.kill()
    stopped.wait()

    with log_path(root).open() as other:

        def is_free():
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

        until(is_free)
    assert records(root) == []
    assert log.append(body, durable=True).seq == 1


def test_a_log_put_in_place_while_a_writer_waits_for_the_old_one_gets_the_record(root, stopped):
    log = open_log(root, lock_seconds=0.2)
    with pytest.raises(errors.SystemError):
        log.append(body, durable=True)
    log_path(root).unlink()

    with pytest.raises(errors.SystemError):
        log.append(body, durable=True)
    assert log.append(body, durable=True).seq == 1


@pytest.mark.usefixtures("alarm")
def test_verification_does_not_wait_forever_for_a_stopped_process(root, stopped, monkeypatch):
    monkeypatch.setattr(lock_timeouts, "LOG", 0.1)

    assert verify.verify_log(str(root)).verdict == "intact"


def test_verification_finds_no_fault_while_others_write(root):
    log = open_log(root)
    log.append(body, durable=True)
    running = [writer(root, 10**6, name=number) for number in range(2)]
    for process in running:
        process.stdout.readline()
    found, end = [verify.verify_log(str(root))], time.monotonic() + PATIENCE
    while len(found) < (100 if LONG else 30) or found[-1].records == found[0].records:
        found.append(verify.verify_log(str(root)))
        assert time.monotonic() < end
    for process in running:
        process.kill()
        process.communicate()

    assert {one.verdict for one in found} == {"intact"}
