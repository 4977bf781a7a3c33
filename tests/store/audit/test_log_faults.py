import os
import resource
import signal

import pytest
from logs import LONG, body, log_path, open_log, start_python, strace_works, write_checkpoint, write_log
from scenes import records

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.store.audit.verification import verify
from kaiza.store.disk import state_dir

APPENDS = """
import sys
from kaiza.domain import errors
from logs import body, intent, open_log
log = open_log(sys.argv[1], lock_seconds=1)
for number in range(8):
    try:
        written = log.append(lambda: body(detail={"number": number}), durable=True)
        print("ack", written.seq, written.entry_hash, flush=True)
    except errors.SystemError as refused:
        print("refused", refused.error_code, flush=True)
"""
APPENDS_OF_TWO_LOGS = """
import sys
from kaiza.domain import errors
from logs import body, open_log
logs = [open_log(sys.argv[1], lock_seconds=1) for _ in range(2)]
for number in range(8):
    record, log = body(detail={"number": number}), logs[number % 2]
    try:
        written = log.append(lambda: record, durable=True)
        print("ack", written.seq, written.entry_hash, flush=True)
    except errors.SystemError as refused:
        print("refused", refused.error_code, flush=True)
"""
SHORT = ["retval=0", "retval=1", "retval=511"]
ERRORS = ["error=EIO", "error=ENOSPC", "error=EINTR"]
FAULTS = [
    *(("write", fault) for fault in (*ERRORS, *SHORT)),
    *(("fdatasync", fault) for fault in ERRORS),
    *(("flock", fault) for fault in ("error=EIO", "error=EINTR", "error=ENOLCK")),
    *(("pwrite64", fault) for fault in (*ERRORS, "retval=1")),
    *(("pread64", fault) for fault in ("error=EIO", "error=EINTR", "retval=0")),
    *(("write,ftruncate", fault) for fault in ("error=EIO", "error=EINTR")),
]


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
    (tmp_path / "audit").mkdir()
    return tmp_path


def read_results(process):
    """The hashes of the acknowledged records by number, and the error codes of the others."""
    lines = [line.split() for line in process.communicate()[0].splitlines()]
    acks = {int(line[1]): line[2] for line in lines if line[0] == "ack"}
    return acks, [line[1] for line in lines if line[0] == "refused"]


def require_nothing_lost(root, acks):
    """All acknowledged records are in the log, the chain is valid, and the next process can append."""
    complete = {line["seq"]: line["entry_hash"] for line in complete_records(root)}
    assert acks.items() <= complete.items()
    assert verify.verify_log(str(root)).verdict in ("intact", "torn_tail")
    new = open_log(root)
    new.append(body, durable=True)
    new.close()
    assert verify.verify_log(str(root)).verdict == "intact"
    assert acks.items() <= {line["seq"]: line["entry_hash"] for line in records(root)}.items()


def complete_records(root):
    content = log_path(root).read_bytes()
    log_path(root).with_name("whole").mkdir()
    (log_path(root).with_name("whole") / "audit").mkdir()
    (log_path(root).with_name("whole") / "audit" / "audit-log.jsonl").write_bytes(content[: content.rfind(b"\n") + 1])
    return records(log_path(root).with_name("whole"))


def strace_command(root, calls, fault, when):
    """Command that makes these system calls fail on the log and the checkpoints only."""
    directory = state_dir.path_of(str(root), create=True)
    files = [log_path(root), *(directory / name for name in ("anchor", "anchor-2"))]
    for file in files:
        file.touch()
    return ["strace", "-f", "-qq", "-o", "/dev/null", *(argument for file in files for argument in ("-P", str(file))),
            *(f"-einject={call}:{fault}:when={when}" for call in calls)]  # fmt: skip


def append_with_fault(root, script, calls, fault, when):
    """Acknowledged and refused records of eight appends of which one system call fails."""
    first, *then = calls.split(",")
    before = strace_command(root, [first], "retval=5" if then else fault, when)
    before += [f"-einject={call}:{fault}:when=1" for call in then]
    acks, refused = read_results(start_python(script, root, before=before))
    assert set(refused) <= {"AUDIT_LOG_FAILED", "AUDIT_LOCK_FAILED", "SELF_AUDIT_FAILURE"}
    assert len(acks) + len(refused) == 8
    return acks, refused


@pytest.mark.long
@pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not be used here")
@pytest.mark.parametrize("when", range(1, 9) if LONG else [3])
@pytest.mark.parametrize(("calls", "fault"), FAULTS if LONG else FAULTS[::2])
def test_no_acknowledged_record_is_lost_when_a_system_call_fails_or_falls_short(root, calls, fault, when):
    acks, refused = append_with_fault(root, APPENDS, calls, fault, when)

    if "EINTR" in fault and "," not in calls:
        assert len(acks) == 8
    if calls == "fdatasync" and "EINTR" not in fault:
        assert (len(acks), len(refused)) == (when - 1, 9 - when)
    require_nothing_lost(root, acks)


@pytest.mark.long
@pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not be used here")
@pytest.mark.parametrize("when", range(1, 25) if LONG else [5])
@pytest.mark.parametrize(("calls", "fault"), FAULTS if LONG else FAULTS[1::2])
def test_no_acknowledged_record_is_lost_when_a_system_call_fails_with_several_writers(root, calls, fault, when):
    acks, _ = append_with_fault(root, APPENDS_OF_TWO_LOGS, calls, fault, when)

    require_nothing_lost(root, acks)


@pytest.mark.long
@pytest.mark.skipif(not strace_works(), reason="strace is not installed, or may not be used here")
@pytest.mark.parametrize("call", ["write", "fdatasync", "flock", "pwrite64"])
@pytest.mark.parametrize("when", range(1, 13) if LONG else [4])
@pytest.mark.parametrize("script", [APPENDS, APPENDS_OF_TWO_LOGS], ids=["one_log", "two_logs"])
def test_no_acknowledged_record_is_lost_when_the_process_is_killed_in_a_system_call(root, script, call, when):
    before = strace_command(root, [call], "signal=KILL", when)
    acks, _ = read_results(start_python(script, root, before=before))

    require_nothing_lost(root, acks)


@pytest.mark.parametrize("room", [0, 1, 300, 700, 1500])
def test_a_short_write_is_undone(root, room):
    log = open_log(root)
    acks = {entry.seq: entry.entry_hash for entry in (log.append(body, durable=True) for _ in range(3))}
    size = log_path(root).stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + room, limits[1]))
    refused = []
    try:
        for _ in range(4):
            try:
                written = log.append(body, durable=True)
                acks[written.seq] = written.entry_hash
            except errors.SystemError as error:
                refused.append(error.error_code)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)

    assert set(refused) == {"AUDIT_LOG_FAILED"}
    assert log_path(root).read_bytes().endswith(b"\n")
    assert log.append(body, durable=True).seq == len(acks) + 1
    require_nothing_lost(root, acks)


def test_part_of_a_record_is_removed_where_the_write_then_fails(root, monkeypatch):
    log = open_log(root)
    log.append(body, durable=True)
    before, real_write = log_path(root).read_bytes(), os.write

    def write_half(descriptor, content):
        real_write(descriptor, content[: len(content) // 2])
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "write", write_half)
        with pytest.raises(errors.SystemError) as refused:
            log.append(body, durable=True)

    assert refused.value.error_code == "AUDIT_LOG_FAILED"
    assert log_path(root).read_bytes() == before
    assert log.append(body, durable=True).seq == 2


def test_an_unfinished_line_of_any_length_is_set_aside(root):
    log = open_log(root)
    for _ in range(2):
        log.append(body, durable=True)
    log.close()
    intact = log_path(root).read_bytes()
    head = record.LogHead(2, log.head.entry_hash, len(intact))
    line, _ = record.serialize_and_hash(body(), 3, log.head.entry_hash)
    for length in range(1, len(line), 1 if LONG else 83):
        write_log(root, intact + line[:length])
        write_checkpoint(root, head)
        followed = []
        new = open_log(root, followed)
        new.append(body, durable=True)

        assert [entry.kind for entry in followed] == ["call", "call", "recovery", "call"]
        assert verify.verify_log(str(root)).verdict == "intact"
