import fcntl
import os
import threading

import pytest
from doors import PATIENCE, until
from logs import body, chained, head_of, intent, log_path, open_log, write_checkpoint, write_log
from scenes import records

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.store.audit import durability, log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.verification import accept, verify
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.disk import lock_timeouts, state_dir
from kaiza.store.disk.file_lock import FileLock


@pytest.fixture
def root(tmp_path):
    (tmp_path / "audit").mkdir()
    return tmp_path


@pytest.fixture
def followed():
    return []


@pytest.fixture
def log(root, followed):
    made = open_log(root, followed)
    yield made
    made.close()


def refusal_code(log, compose=intent, *, durable=True):
    with pytest.raises(errors.SystemError) as caught:
        log.append(compose, durable=durable)
    return caught.value.error_code


def checkpoint_seq(root):
    value = Checkpoint(state_dir.path_of(str(root))).read()
    return value and value.head.seq


def seqs(entries):
    """The numbers of records, or of lines of the log."""
    return [getattr(entry, "members", entry)["seq"] for entry in entries]


def test_a_durable_record_has_a_checkpoint_when_append_returns(root, log):
    written = log.append(body, durable=True)

    assert Checkpoint(state_dir.path_of(str(root))).read().head == record.LogHead(
        1, written.entry_hash, log_path(root).stat().st_size
    )


def test_a_record_that_is_not_durable_has_a_checkpoint_within_a_second(root, log):
    log.append(body, durable=False)
    until(lambda: checkpoint_seq(root) is not None)

    assert checkpoint_seq(root) == 1
    assert durability._MAX_DELAY_SECONDS < 1


def test_with_sync_every_each_record_is_durable(root):
    log = open_log(root)
    log.sync_every = True
    log.append(body, durable=False)

    assert checkpoint_seq(root) == 1


def test_a_new_log_is_readable_by_its_owner_only(root, log):
    log.append(body, durable=False)

    assert log_path(root).stat().st_mode & 0o777 == 0o600


def test_records_of_other_processes_are_followed_before_compose_is_called(root, log, followed):
    other = open_log(root)
    for _ in range(3):
        other.append(body, durable=False)
    seen = []

    def compose():
        seen.extend(seqs(followed))
        return body()

    assert log.append(compose, durable=True).seq == 4
    assert seen == [1, 2, 3]


def test_following_passes_on_new_records_without_waiting_for_the_lock(root, followed):
    log, other = open_log(root, followed, lock_seconds=0.2), open_log(root)
    log.append(body, durable=True)
    written = [other.append(body, durable=False) for _ in range(3)]
    with log_path(root).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        log.follow()
        log.follow()

    assert followed[1:] == written
    assert log.head.seq == 4


@pytest.mark.parametrize("length", [1, 100, -1])
def test_a_line_that_is_being_written_is_read_again_under_the_lock(root, followed, length):
    log, other = open_log(root, followed, lock_seconds=0.2), open_log(root)
    log.append(body, durable=True)
    other.append(body, durable=False)
    line, _ = record.serialize_and_hash(body(), 3, records(root)[-1]["entry_hash"])
    with log_path(root).open("ab") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        writing.write(line[:length])
        writing.flush()
        with pytest.raises(errors.SystemError) as refused:
            log.follow()
        writing.write(line[length:])
    log.follow()

    assert refused.value.error_code == "AUDIT_LOCK_FAILED"
    assert seqs(followed) == [1, 2, 3]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_an_edited_line_of_another_process_is_detected_by_the_next_append(root, log, place, durable):
    log.append(body, durable=True)
    other = open_log(root)
    for number in range(4):
        other.append(lambda number=number: body(detail={"number": number}), durable=True)
    content = log_path(root).read_bytes()
    log_path(root).write_bytes(content.replace(b'"number":%d' % (place - 1), b'"number":7'))
    log.append(body, durable=durable)

    assert log.damage() == "broken"
    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert verify.verify_log(str(root)).verdict == "broken"


@pytest.fixture(params=["catch_up", "append"])
def detect(request, log):
    """Returns the verdict on the log, after an append or without one."""

    def detect_damage():
        if request.param == "append":
            assert refusal_code(log) == "SELF_AUDIT_FAILURE"
        return log.catch_up().verdict

    return detect_damage


@pytest.mark.parametrize("remaining", [1, 2])
def test_a_log_truncated_by_a_record_of_this_process_is_cut_off(root, log, detect, remaining):
    log.append(body, durable=True)
    open_log(root).append(body, durable=False)
    log.append(body, durable=False)
    log_path(root).write_bytes(b"".join(log_path(root).read_bytes().splitlines(keepends=True)[:remaining]))

    assert detect() == "cut_off"
    assert refusal_code(log) == "SELF_AUDIT_FAILURE"


def test_a_log_rewritten_from_a_record_of_this_process_on_is_replaced(root, log, detect):
    log.append(body, durable=True)
    open_log(root).append(body, durable=True)
    log.append(body, durable=False)
    whole = log_path(root).read_bytes().splitlines(keepends=True)
    link = whole[1][-67:-3].decode()
    log_path(root).write_bytes(b"".join((*whole[:2], *chained(3, first=3, link=link))))

    assert detect() == "replaced"


def test_nothing_is_appended_without_a_real_audit_directory(tmp_path):
    log = open_log(tmp_path)

    assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "audit").symlink_to("elsewhere")
    assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/null", path), lambda path: os.symlink("x", path)]
)
@pytest.mark.usefixtures("alarm")
def test_a_log_that_is_not_a_regular_file_is_refused(root, log, make):
    make(log_path(root))

    assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert not (root / "audit" / "x").exists()


def test_a_read_only_log_is_refused_until_it_is_writable_again(root, log):
    log.append(body, durable=True)
    log_path(root).chmod(0o444)

    assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    log_path(root).chmod(0o644)
    assert log.append(body, durable=True).seq == 2


def test_changes_are_refused_if_the_checkpoint_cannot_be_written(root, log, monkeypatch):
    place = state_dir.path_of(str(root))
    place.parent.mkdir(parents=True)
    place.write_text("in the way")

    assert refusal_code(log) == "AUDIT_LOG_FAILED"
    place.unlink()
    assert log.append(intent, durable=True).seq == 2


def remove(path):
    path.unlink()


def empty(path):
    os.truncate(path, 0)


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


def edit(path):
    with path.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"x")


def replace(path):
    path.with_name("new").write_bytes(b"".join(chained(20, client="other")))
    path.with_name("new").rename(path)


def overwrite(path):
    path.write_bytes(b"".join(chained(20, client="other")))


def roll_back(path):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def append_garbage(path):
    with path.open("ab") as file:
        file.write(b"{}\n")


def append_wrong_link(path):
    with path.open("ab") as file:
        file.write(chained(1, first=6, link="f" * 64)[0])


DAMAGES = {
    append_garbage: "broken",
    append_wrong_link: "broken",
    remove: "missing",
    empty: "cut_off",
    truncate: "cut_off",
    edit: "broken",
    replace: "replaced",
    overwrite: "replaced",
    roll_back: "cut_off",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_following_detects_damage(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    log.follow()

    assert log.damage() == DAMAGES[damage]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_while_a_process_runs_refuses_changes_but_not_reads(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    before = checkpoint_seq(root)
    damage(log_path(root))

    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == DAMAGES[damage]
    size = log_path(root).stat().st_size
    written = [log.append(body, durable=durable) for durable in (False, True, False)]
    assert seqs(written) == list(range(written[0].seq, written[0].seq + 3))
    assert written[1].members["prev_hash"] == written[0].entry_hash
    assert log_path(root).read_bytes()[size:].lstrip(b"\n").count(b"\n") == 3
    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    log.sync()
    assert checkpoint_seq(root) == before
    assert log.head is None
    assert log.catch_up().verdict == DAMAGES[damage]


def test_damage_found_by_another_process_stops_changes_and_the_checkpoint(root, log):
    log.append(body, durable=True)
    found = record.Verdict("broken", 0, None, record.ChainFault(1, "edited", 0), anchored=False)
    DamageMark(state_dir.path_of(str(root))).save(found)

    log.append(body, durable=True)
    log.append(body, durable=False)
    log.sync()
    assert (refusal_code(log), checkpoint_seq(root)) == ("SELF_AUDIT_FAILURE", 1)
    assert seqs(records(root)) == [1, 2, 3]


@pytest.mark.parametrize("damage", DAMAGES)
def test_changes_are_accepted_again_once_the_log_is_restored_and_verified(root, log, followed, damage):
    for _ in range(5):
        log.append(body, durable=True)
    intact = log_path(root).read_bytes()
    damage(log_path(root))
    log.append(body, durable=False)
    log_path(root).write_bytes(intact)

    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert verify.verify_log(str(root)).verdict == "intact"
    followed.clear()
    assert log.append(intent, durable=True).seq == 6
    assert seqs(followed) == [6]


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage is not append_wrong_link])
def test_no_record_is_passed_on_twice_and_new_ones_are_also_in_a_damaged_log(root, log, followed, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    first = log.append(body, durable=False)
    second = open_log(root).append(body, durable=False)
    log.catch_up()

    assert seqs(followed) == [1, 2, 3, 4, 5, first.seq, second.seq]


def test_a_second_acceptance_keeps_the_first_archived_log(root, log):
    for number in (1, 2):
        log.append(body, durable=True)
        log.append(body, durable=True)
        edit(log_path(root))
        assert (
            accept_damage(str(root), reason="r", person="p").archived_path == f"audit/audit-log.damaged-{number}.jsonl"
        )

    assert len(list((root / "audit").glob("audit-log.damaged-*"))) == 2


def test_of_two_acceptances_at_once_one_begins_a_new_log(root, log, monkeypatch):
    log.append(intent, durable=True)
    append_garbage(log_path(root))
    refusals = []

    def verify_and_accept(directory):
        if not refusals:
            refusals.append("")
            try:
                accept.accept_damage(str(root), reason="second", person="Bob")
            except errors.SystemError as refused:
                refusals.append(refused.error_code)
        return verify.verify_log(directory)

    monkeypatch.setattr(lock_timeouts, "LOG", 0.05)
    monkeypatch.setattr(accept, "verify_log", verify_and_accept)
    accepted = accept_damage(str(root), reason="first", person="Ada")

    assert refusals == ["", "AUDIT_LOCK_FAILED"]
    assert accepted.record.detail["person"] == "Ada"
    assert [path.name for path in (root / "audit").glob("*damaged*")] == ["audit-log.damaged-1.jsonl"]
    assert accept_damage(str(root), reason="third", person="Eve") is None


def test_an_acceptance_does_not_replace_the_new_log_of_another_state_directory(root, log, monkeypatch, tmp_path):
    log.append(intent, durable=True)
    append_garbage(log_path(root))
    own = os.environ["XDG_STATE_HOME"]

    def accept_elsewhere(directory):
        found = verify.verify_log(directory)
        if os.environ["XDG_STATE_HOME"] == own:
            monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "other"))
            accept.accept_damage(str(root), reason="other", person="Bob")
            monkeypatch.setenv("XDG_STATE_HOME", own)
        return found

    monkeypatch.setattr(accept, "verify_log", accept_elsewhere)
    with pytest.raises(errors.SystemError) as refused:
        accept_damage(str(root), reason="first", person="Ada")

    assert refused.value.error_code == "AUDIT_LOG_FAILED"
    assert records(root)[0]["detail"]["person"] == "Bob"
    assert [path.name for path in (root / "audit").glob("*damaged*")] == ["audit-log.damaged-1.jsonl"]


def test_a_log_replaced_by_its_own_copy_is_intact(root, log, followed):
    for _ in range(3):
        log.append(body, durable=True)
    log_path(root).with_name("copy").write_bytes(log_path(root).read_bytes())
    log_path(root).with_name("copy").rename(log_path(root))
    followed.clear()

    assert log.append(intent, durable=True).seq == 4
    assert seqs(followed) == [4]


def test_records_that_this_process_read_are_missed_even_without_a_checkpoint(root, log):
    for _ in range(3):
        log.append(body, durable=False)
    os.truncate(log_path(root), log_path(root).stat().st_size // 3)

    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == "cut_off"


@pytest.mark.parametrize("damage", [truncate, edit])
def test_a_verified_log_need_not_contain_what_this_process_read_before(root, log, damage):
    for _ in range(3):
        log.append(body, durable=False)
    first = log_path(root).read_bytes().splitlines(keepends=True)[0]
    damage(log_path(root))
    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    log_path(root).write_bytes(first)
    verify.verify_log(str(root))

    assert log.damage() is None
    assert log.append(intent, durable=True).seq == 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"verdict":"intact"}', None])
def test_a_damage_mark_that_cannot_be_read_stops_changes(root, log, content):
    log.append(intent, durable=True)
    mark = state_dir.path_of(str(root)) / "damage.json"
    mark.mkdir() if content is None else mark.write_bytes(content)

    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert refusal_code(open_log(root)) == "SELF_AUDIT_FAILURE"
    assert log.damage() == "broken"


@pytest.mark.parametrize("tail", [b"{", b'{"arguments":null', b"\0" * 600, b"x" * 100_000])
def test_a_torn_tail_is_set_aside_and_recorded(root, log, followed, tail):
    lines = chained(3)
    intact = b"".join(lines)
    write_log(root, intact + tail)
    write_checkpoint(root, head_of(lines))
    before = log.catch_up()
    log.append(body, durable=False)

    assert (before.verdict, before.records) == ("torn_tail", 3)
    assert (root / "audit" / f"audit-log.torn-{len(intact)}").read_bytes() == tail
    assert [entry.kind for entry in followed] == ["call", "call", "call", "recovery", "call"]
    assert followed[3].detail["offset"] == len(intact)
    assert followed[3].detail["length"] == len(tail)
    assert records(root) == [entry.members for entry in followed]
    assert log.damage() is None
    assert verify.verify_log(str(root)).verdict == "intact"


def test_a_torn_tail_that_the_checkpoint_covers_is_damage(root, log):
    lines = chained(3)
    write_log(root, b"".join(lines)[:-10])
    write_checkpoint(root, head_of(lines))

    assert refusal_code(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == "cut_off"
    assert log.append(body, durable=False).seq == 3
    assert not list((root / "audit").glob("audit-log.torn-*"))


def test_a_torn_tail_is_copied_durably_before_the_log_is_truncated(root, log, monkeypatch):
    write_log(root, b"torn")
    synced, fsync = [], os.fsync

    def recording(descriptor):
        synced.append((os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")), log_path(root).read_bytes()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", recording)
    log.append(body, durable=False)

    assert synced == [("audit-log.torn-0", b"torn"), ("audit", b"torn")]


def test_a_torn_tail_that_cannot_be_set_aside_stays_in_the_log(root, log, monkeypatch):
    intact = b"".join(chained(2))
    write_log(root, intact + b"torn")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert log_path(root).read_bytes() == intact + b"torn"
    assert list((root / "audit").glob("audit-log.torn-*")) == []
    log.append(body, durable=False)
    assert [entry["kind"] for entry in records(root)] == ["call", "call", "recovery", "call"]


def test_after_a_failed_fsync_the_process_refuses_changes_but_not_reads(root, monkeypatch):
    log = open_log(root)
    log.append(body, durable=True)

    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        assert refusal_code(log) == "AUDIT_LOG_FAILED"
    assert refusal_code(log) == "AUDIT_LOG_FAILED"
    assert log.append(body, durable=False).seq == 3
    assert checkpoint_seq(root) == 1
    assert open_log(root).append(intent, durable=True).seq == 4


def is_free(root):
    """Whether another process could acquire the lock now."""
    with log_path(root).open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_the_record_is_composed_under_the_lock(root, log):
    seen = []

    def compose():
        seen.append(is_free(root))
        return body()

    log.append(compose, durable=True)

    assert seen == [False]
    assert is_free(root)


def test_the_lock_is_released_before_the_fsync_and_the_checkpoint_is_written_after_it(root, log, monkeypatch):
    seen, fdatasync = [], os.fdatasync

    def recording(descriptor):
        if log._file is not None and descriptor == log._file.descriptor:
            seen.append((is_free(root), seqs(records(root)), checkpoint_seq(root)))
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", recording)
    log.append(body, durable=True)

    assert seen == [(True, [1], None)]
    assert checkpoint_seq(root) == 1


@pytest.mark.parametrize(("patience", "fsync_seconds"), [(0.05, PATIENCE), (PATIENCE, 0.3)])
def test_close_waits_for_a_running_fsync_or_leaves_its_checkpoint_open(root, monkeypatch, patience, fsync_seconds):
    log, fdatasync, written = open_log(root, lock_seconds=patience), os.fdatasync, []
    begun, closed = threading.Event(), threading.Event()

    def slow(descriptor):
        if log._file is not None and descriptor == log._file.descriptor:
            begun.set()
            closed.wait(fsync_seconds)
        fdatasync(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    syncing = threading.Thread(target=lambda: written.append(log.append(body, durable=True)))
    syncing.start()
    assert begun.wait(PATIENCE)
    log.close()
    closed.set()
    syncing.join()

    assert seqs(written) == [1]
    assert checkpoint_seq(root) == 1


@pytest.mark.parametrize("action", ["append", "catch_up", "verify"])
def test_a_log_that_another_process_creates_at_this_moment_is_not_missing(root, monkeypatch, action):
    log, other, read, begun = open_log(root), open_log(root), Checkpoint.read, []

    def read_after_append(checkpoint):
        if not begun:
            begun.append(checkpoint)
            other.append(body, durable=True)
        return read(checkpoint)

    monkeypatch.setattr(Checkpoint, "read", read_after_append)
    if action == "append":
        log.append(intent, durable=True)
    elif action == "catch_up":
        log.catch_up()
    else:
        assert verify.verify_log(str(root)).verdict == "intact"

    assert log.damage() is None
    assert log_path(root).exists()
    log.close()
    other.close()


def test_no_record_is_written_to_a_new_log_whose_directory_cannot_be_fsynced(root, log, monkeypatch):
    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
        assert refusal_code(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert log.append(body, durable=False).seq == 1


def test_errors_do_not_contain_absolute_paths(tmp_path):
    log = open_log(tmp_path)

    with pytest.raises(errors.SystemError) as caught:
        log.append(body, durable=True)
    assert str(tmp_path) not in caught.value.human_message + str(caught.value.cause)


def test_a_new_process_follows_a_long_log_before_it_asks_for_the_lock(root, followed, monkeypatch):
    write_log(root, b"".join(chained(500)))
    counts = []
    try_acquire = FileLock.try_acquire

    def watched(lock):
        counts.append(len(followed))
        return try_acquire(lock)

    monkeypatch.setattr(FileLock, "try_acquire", watched)
    log = open_log(root, followed)
    log.append(body, durable=False)
    log.close()

    assert counts[0] == 500
    assert seqs(followed) == list(range(1, 502))


@pytest.mark.usefixtures("alarm")
def test_an_append_to_a_log_that_is_replaced_over_and_over_ends_at_the_deadline(tmp_path, monkeypatch):
    (tmp_path / "audit").mkdir()
    log = AuditLog(str(tmp_path), follow=lambda _: None, lock_seconds=0.05)
    monkeypatch.setattr(log_file.LogFile, "size_if_current", lambda *_: None)
    with pytest.raises(errors.SystemError) as caught:
        log.append(body, durable=True)

    assert caught.value.error_code == "AUDIT_LOCK_FAILED"


def test_waiting_for_a_call_of_this_process_is_not_blamed_on_another_process(tmp_path):
    (tmp_path / "audit").mkdir()
    log = open_log(tmp_path, lock_seconds=0.01)
    with pytest.raises(errors.SystemError) as caught:
        log.hold_still(lambda _file, _position: log.catch_up())

    assert caught.value.error_code == "AUDIT_LOCK_FAILED"
    assert caught.value.cause["held_by"] == "this process"
    log.close()
