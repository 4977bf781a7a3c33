import fcntl
import os
import signal
import threading
import time

import pytest
from logs import anchor_at, body, chained, head_of, intent, log_path, open_log, write
from scenes import records as lines_of

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.store.audit import log_file
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.log import AuditLog
from kaiza.store.audit.verification import verify
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import FileLock


@pytest.fixture
def root(tmp_path):
    (tmp_path / "audit").mkdir()
    return tmp_path


@pytest.fixture
def told():
    return []


@pytest.fixture
def log(root, told):
    made = open_log(root, told)
    yield made
    made.close()


@pytest.fixture
def alarm():
    """Fail a test that would otherwise never end."""

    def rings(*_):
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, rings)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def refused(log, make=intent, *, durable=True):
    with pytest.raises(errors.SystemError) as caught:
        log.append(make, durable=durable)
    return caught.value.error_code


def anchored(root):
    found = Checkpoint(state_dir.path_of(str(root))).read()
    return found and found.head.seq


def seqs(told):
    return [one["seq"] for one in told]


def test_a_record_is_in_the_file_when_append_returns(root, log):
    written = log.append(body, durable=False)

    assert lines_of(root) == [written]
    assert (written["seq"], written["prev_hash"]) == (1, record.GENESIS)


def test_a_durable_record_is_anchored_when_append_returns(root, log):
    written = log.append(body, durable=True)

    assert Checkpoint(state_dir.path_of(str(root))).read().head == record.LogHead(
        1, written["entry_hash"], log_path(root).stat().st_size
    )


def test_a_read_is_anchored_within_a_second(root, log):
    begin = time.monotonic()
    log.append(body, durable=False)
    while anchored(root) is None and time.monotonic() < begin + 5:
        os.sched_yield()

    assert time.monotonic() - begin < 1.5
    assert anchored(root) == 1


def test_closing_and_syncing_anchor_what_was_only_read(root, log):
    log.append(body, durable=False)
    log.sync()

    assert anchored(root) == 1
    log.append(body, durable=False)
    log.close()
    assert anchored(root) == 2


def test_with_every_each_record_is_durable(root):
    log = open_log(root, sync_every=True)
    log.append(body, durable=False)

    assert anchored(root) == 1


def test_the_log_is_made_for_its_owner_only(root, log):
    log.append(body, durable=False)

    assert log_path(root).stat().st_mode & 0o777 == 0o600


def test_what_make_raises_passes_and_nothing_is_written(root, log, told):
    log.append(body, durable=True)

    def never():
        raise KeyError("mine")

    with pytest.raises(KeyError):
        log.append(never, durable=True)
    assert log.append(body, durable=True)["seq"] == 2
    assert seqs(lines_of(root)) == seqs(told) == [1, 2]


def test_a_record_that_is_too_long_is_refused_and_the_next_one_fits(root, log):
    assert refused(log, lambda: body(detail={"x": "y" * record.MAX_RECORD_BYTES})) == "CAP_EXCEEDED"
    assert log.append(body, durable=True)["seq"] == 1


def test_a_second_process_is_followed_before_make_is_asked(root, log, told):
    other = open_log(root)
    for _ in range(3):
        other.append(body, durable=False)
    seen = []

    def make():
        seen.extend(seqs(told))
        return body()

    assert log.append(make, durable=True)["seq"] == 4
    assert seen == [1, 2, 3]


def test_following_tells_what_others_wrote_and_waits_for_nobody(root, told):
    mine, other = open_log(root, told, lock_seconds=0.2), open_log(root)
    mine.append(body, durable=True)
    written = [other.append(body, durable=False) for _ in range(3)]
    with log_path(root).open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        mine.follow()
        mine.follow()

    assert told[1:] == written
    assert mine.head.seq == 4


@pytest.mark.parametrize("length", [1, 100, -1])
def test_a_line_that_is_being_written_is_looked_at_again_under_the_lock(root, told, length):
    mine, other = open_log(root, told, lock_seconds=0.2), open_log(root)
    mine.append(body, durable=True)
    other.append(body, durable=False)
    line, _ = record.serialize_and_hash(body(), 3, lines_of(root)[-1]["entry_hash"])
    with log_path(root).open("ab") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        writing.write(line[:length])
        writing.flush()
        with pytest.raises(errors.SystemError) as refused:
            mine.follow()
        writing.write(line[length:])
    mine.follow()

    assert refused.value.error_code == "AUDIT_LOCK_FAILED"
    assert seqs(told) == [1, 2, 3]


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("place", [1, 2, 3, 4])
def test_an_edited_line_of_another_process_is_noticed_by_the_next_append_of_any_record(root, log, place, durable):
    log.append(body, durable=True)
    other = open_log(root)
    for number in range(4):
        other.append(lambda number=number: body(detail={"number": number}), durable=True)
    content = log_path(root).read_bytes()
    log_path(root).write_bytes(content.replace(b'"number":%d' % (place - 1), b'"number":7'))
    log.append(body, durable=durable)

    assert log.damage() == "broken"
    assert refused(log) == "SELF_AUDIT_FAILURE"
    assert verify.verify_log(str(root)).verdict == "broken"


def test_missing_lines_of_another_process_are_noticed_by_the_next_append(root, log):
    log.append(body, durable=True)
    other = open_log(root)
    for _ in range(3):
        other.append(body, durable=True)
    lines = log_path(root).read_bytes().splitlines(keepends=True)
    log_path(root).write_bytes(b"".join((*lines[:2], lines[3])))
    log.append(body, durable=False)

    assert log.damage() == "broken"


@pytest.fixture(params=["catch_up", "append"])
def found(request, log):
    """What a closer look finds."""

    def look():
        if request.param == "append":
            assert refused(log) == "SELF_AUDIT_FAILURE"
        return log.catch_up().verdict

    return look


@pytest.mark.parametrize("kept", [1, 2])
def test_a_log_cut_behind_what_this_process_appended_after_another_is_cut_off(root, log, found, kept):
    log.append(body, durable=True)
    open_log(root).append(body, durable=False)
    log.append(body, durable=False)
    log_path(root).write_bytes(b"".join(log_path(root).read_bytes().splitlines(keepends=True)[:kept]))

    assert found() == "cut_off"
    assert refused(log) == "SELF_AUDIT_FAILURE"


def test_a_log_cut_behind_what_this_process_appended_far_behind_another_is_cut_off(root, log, found):
    log.append(body, durable=True)
    other = open_log(root)
    for _ in range(60):
        other.append(lambda: body(detail={"much": "x" * 2000}), durable=False)
    kept = log_path(root).read_bytes()
    log.append(body, durable=True)
    log_path(root).write_bytes(kept)

    assert found() == "cut_off"


def test_sound_records_of_another_process_are_told_when_one_of_them_was_edited(root, log, told):
    log.append(body, durable=True)
    other = open_log(root)
    for number in range(3):
        other.append(lambda number=number: body(detail={"number": number}), durable=True)
    content = log_path(root).read_bytes()
    log_path(root).write_bytes(content.replace(b'"number":1', b'"number":7'))

    assert log.catch_up().verdict == "broken"
    assert seqs(told) == [1, 2, 4]


def test_a_log_rewritten_after_what_this_process_appended_is_replaced(root, log, found):
    log.append(body, durable=True)
    open_log(root).append(body, durable=True)
    log.append(body, durable=False)
    whole = log_path(root).read_bytes().splitlines(keepends=True)
    link = whole[1][-67:-3].decode()
    log_path(root).write_bytes(b"".join((*whole[:2], *chained(3, first=3, link=link))))

    assert found() == "replaced"


def test_everybody_is_told_every_record_once_and_in_order(root):
    told = [[], [], []]
    logs = [open_log(root, one) for one in told]
    for number in range(60):
        logs[number * number % 3].append(body, durable=number % 7 == 0)
        if number % 11 == 0:
            logs[number % 3].catch_up()
    for log in logs:
        log.catch_up()

    assert told == [lines_of(root)] * 3
    assert seqs(told[0]) == list(range(1, 61))


def test_threads_take_turns(root, log, told):
    def work():
        for number in range(25):
            log.append(body, durable=number % 5 == 0)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert seqs(told) == list(range(1, 201))
    assert verify.verify_log(str(root)).verdict == "intact"


def test_with_an_index_only_what_is_newer_is_told(root):
    lines = chained(9)
    write(root, b"".join(lines))
    told = []
    log = open_log(root, told, start=head_of(lines[:6]))

    assert log.catch_up().records == 9
    assert seqs(told) == [7, 8, 9]
    assert log.head == head_of(lines)


@pytest.mark.parametrize(
    "start", [record.LogHead(6, "f" * 64, 100), record.LogHead(6, "f" * 64, 10**9), record.LogHead(1, "a" * 64, 5)]
)
def test_an_index_that_is_not_in_the_log_is_not_believed(root, start):
    write(root, b"".join(chained(9)))
    told = []
    log = open_log(root, told, start=start)

    assert log.catch_up().verdict == "intact"
    assert seqs(told) == list(range(1, 10))


def test_catching_up_writes_nothing_and_makes_nothing(root, log):
    assert log.catch_up() == record.Verdict("intact", 0, None, None, anchored=False)
    assert not log_path(root).exists()


def test_without_its_directory_there_is_no_record(tmp_path):
    log = open_log(tmp_path)

    assert not log.has_directory()
    assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "audit").symlink_to("elsewhere")
    assert not log.has_directory()
    assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize(
    "make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/null", path), lambda path: os.symlink("x", path)]
)
@pytest.mark.usefixtures("alarm")
def test_what_is_no_file_is_not_written_to(root, log, make):
    make(log_path(root))

    assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert not (root / "audit" / "x").exists()


def test_a_read_only_log_is_not_written_to(root, log):
    log.append(body, durable=True)
    log_path(root).chmod(0o444)

    assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    log_path(root).chmod(0o644)
    assert log.append(body, durable=True)["seq"] == 2


def test_a_directory_put_in_the_place_of_a_running_log(root, log):
    log.append(body, durable=True)
    log_path(root).rename(root / "moved")
    log_path(root).mkdir()

    assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"


def test_an_anchor_that_cannot_be_written_refuses_changes(root, log, monkeypatch):
    place = state_dir.path_of(str(root))
    place.parent.mkdir(parents=True)
    place.write_text("in the way")

    assert refused(log) == "AUDIT_LOG_FAILED"
    place.unlink()
    assert log.append(intent, durable=True)["seq"] == 2


def removed(path):
    path.unlink()


def emptied(path):
    os.truncate(path, 0)


def cut(path):
    os.truncate(path, path.stat().st_size // 2)


def edited(path):
    with path.open("r+b") as file:
        file.seek(-100, os.SEEK_END)
        file.write(b"x")


def replaced(path):
    path.with_name("new").write_bytes(b"".join(chained(20, client="other")))
    path.with_name("new").rename(path)


def replaced_in_place(path):
    path.write_bytes(b"".join(chained(20, client="other")))


def rolled_back(path):
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


def added_to(path):
    with path.open("ab") as file:
        file.write(b"{}\n")


def chained_wrongly(path):
    with path.open("ab") as file:
        file.write(chained(1, first=6, link="f" * 64)[0])


DAMAGES = {
    added_to: "broken",
    chained_wrongly: "broken",
    removed: "missing",
    emptied: "cut_off",
    cut: "cut_off",
    edited: "broken",
    replaced: "replaced",
    replaced_in_place: "replaced",
    rolled_back: "cut_off",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_following_finds_damage(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    log.follow()

    assert log.damage() == DAMAGES[damage]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_under_a_running_process_stops_changes_and_reads_go_on(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    before = anchored(root)
    damage(log_path(root))

    assert refused(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == DAMAGES[damage]
    size = log_path(root).stat().st_size
    written = [log.append(body, durable=durable) for durable in (False, True, False)]
    assert seqs(written) == list(range(written[0]["seq"], written[0]["seq"] + 3))
    assert written[1]["prev_hash"] == written[0]["entry_hash"]
    assert log_path(root).read_bytes()[size:].lstrip(b"\n").count(b"\n") == 3
    assert refused(log) == "SELF_AUDIT_FAILURE"
    log.sync()
    assert anchored(root) == before
    assert log.head is None
    assert log.catch_up().verdict == DAMAGES[damage]


def test_damage_that_somebody_else_found_stops_changes_and_the_anchor(root, log):
    log.append(body, durable=True)
    found = record.Verdict("broken", 0, None, record.ChainFault(1, "edited", 0), anchored=False)
    DamageMark(state_dir.path_of(str(root))).save(found)

    log.append(body, durable=True)
    log.append(body, durable=False)
    log.sync()
    assert (refused(log), anchored(root)) == ("SELF_AUDIT_FAILURE", 1)
    assert seqs(lines_of(root)) == [1, 2, 3]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_found_by_a_new_process_too(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    log.close()
    damage(log_path(root))
    new = open_log(root)

    assert new.catch_up().verdict == DAMAGES[damage]
    assert refused(new) == "SELF_AUDIT_FAILURE"
    assert open_log(root).damage() == DAMAGES[damage]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_over_when_the_log_is_restored_and_verified(root, log, told, damage):
    for _ in range(5):
        log.append(body, durable=True)
    sound = log_path(root).read_bytes()
    damage(log_path(root))
    log.append(body, durable=False)
    log_path(root).write_bytes(sound)

    assert refused(log) == "SELF_AUDIT_FAILURE"
    assert verify.verify_log(str(root)).verdict == "intact"
    told.clear()
    assert log.append(intent, durable=True)["seq"] == 6
    assert seqs(told) == [6]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_person_accepts_damage(root, log, told, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    log.append(body, durable=False)
    old = log_path(root).read_bytes()
    accepted = accept_damage(str(root), reason="a restore gone wrong", person="Ada")

    assert accepted.verdict.verdict == DAMAGES[damage]
    assert (root / accepted.archived_path).read_bytes() == old
    assert accepted.archived_path == "audit/audit-log.damaged-1.jsonl"
    first = lines_of(root)[0]
    assert first == accepted.record
    assert (first["seq"], first["kind"]) == (1, "person")
    assert first["detail"]["old_head"]["seq"] == 5
    assert {"reason", "person", "verdict", "sha256", "file"} <= first["detail"].keys()
    told.clear()
    assert log.append(intent, durable=True)["seq"] == 2
    assert seqs(told) == [1, 2]
    assert (log.damage(), anchored(root)) == (None, 2)
    assert verify.verify_log(str(root)) == record.Verdict("intact", 2, log.head, None, anchored=True)


@pytest.mark.parametrize("damage", [damage for damage in DAMAGES if damage is not chained_wrongly])
def test_what_was_told_is_not_told_again_and_what_is_read_in_damage_is(root, log, told, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    first = log.append(body, durable=False)
    second = open_log(root).append(body, durable=False)
    log.catch_up()

    assert seqs(told) == [1, 2, 3, 4, 5, first["seq"], second["seq"]]


@pytest.mark.parametrize("damage", [cut, edited, rolled_back])
def test_a_new_process_is_told_what_is_sound_in_a_damaged_log(root, log, damage):
    for _ in range(5):
        log.append(body, durable=True)
    damage(log_path(root))
    written = log.append(body, durable=False)
    told = []
    open_log(root, told).append(body, durable=False)

    assert told[-2] == written
    assert seqs(told)[:2] == [1, 2]
    assert sorted(set(seqs(told))) == seqs(told)


def test_a_missing_log_can_be_accepted_before_anything_is_written(root, log):
    log.append(body, durable=True)
    log_path(root).unlink()
    accepted = accept_damage(str(root), reason="gone", person="Ada")

    assert (accepted.verdict.verdict, accepted.archived_path) == ("missing", None)
    assert log.append(intent, durable=True)["seq"] == 2


def test_a_second_acceptance_keeps_the_first_log(root, log):
    for number in (1, 2):
        log.append(body, durable=True)
        log.append(body, durable=True)
        edited(log_path(root))
        assert (
            accept_damage(str(root), reason="r", person="p").archived_path == f"audit/audit-log.damaged-{number}.jsonl"
        )

    assert len(list((root / "audit").glob("audit-log.damaged-*"))) == 2


def test_there_is_nothing_to_accept_in_a_sound_log(root, log):
    log.append(body, durable=True)
    before = log_path(root).read_bytes()

    assert accept_damage(str(root), reason="r", person="p") is None
    assert log_path(root).read_bytes() == before


def test_a_log_replaced_by_its_own_copy_is_sound(root, log, told):
    for _ in range(3):
        log.append(body, durable=True)
    log_path(root).with_name("copy").write_bytes(log_path(root).read_bytes())
    log_path(root).with_name("copy").rename(log_path(root))
    told.clear()

    assert log.append(intent, durable=True)["seq"] == 4
    assert seqs(told) == [4]


def test_what_this_process_saw_but_nobody_anchored_may_not_vanish_either(root, log):
    for _ in range(3):
        log.append(body, durable=False)
    os.truncate(log_path(root), log_path(root).stat().st_size // 3)

    assert refused(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == "cut_off"


@pytest.mark.parametrize("damage", [cut, edited])
def test_what_a_person_mended_and_verified_is_not_held_against_what_this_process_saw(root, log, damage):
    for _ in range(3):
        log.append(body, durable=False)
    first = log_path(root).read_bytes().splitlines(keepends=True)[0]
    damage(log_path(root))
    assert refused(log) == "SELF_AUDIT_FAILURE"
    log_path(root).write_bytes(first)
    verify.verify_log(str(root))

    assert log.damage() is None
    assert log.append(intent, durable=True)["seq"] == 2


@pytest.mark.parametrize("tail", [b"{", b'{"arguments":null', b"\0" * 600, b"x" * 100_000])
def test_a_torn_tail_is_set_aside_and_recorded(root, log, told, tail):
    lines = chained(3)
    sound = b"".join(lines)
    write(root, sound + tail)
    anchor_at(root, head_of(lines))
    before = log.catch_up()
    log.append(body, durable=False)

    assert (before.verdict, before.records) == ("torn_tail", 3)
    assert (root / "audit" / f"audit-log.torn-{len(sound)}").read_bytes() == tail
    assert [one["kind"] for one in told] == ["call", "call", "call", "recovery", "call"]
    assert told[3]["detail"]["offset"] == len(sound)
    assert told[3]["detail"]["length"] == len(tail)
    assert lines_of(root) == told
    assert log.damage() is None
    assert verify.verify_log(str(root)).verdict == "intact"


def test_a_second_torn_tail_at_the_same_place_is_kept_too(root):
    sound = b"".join(chained(1))
    for tail in (b"one", b"two"):
        write(root, sound + tail)
        open_log(root).append(body, durable=False)

    kept = sorted((root / "audit").glob("audit-log.torn-*"))
    assert [one.read_bytes() for one in kept] == [b"one", b"two"]


def test_a_torn_tail_that_the_anchor_covers_is_tampering(root, log):
    lines = chained(3)
    write(root, b"".join(lines)[:-10])
    anchor_at(root, head_of(lines))

    assert refused(log) == "SELF_AUDIT_FAILURE"
    assert log.damage() == "cut_off"
    assert log.append(body, durable=False)["seq"] == 3
    assert not list((root / "audit").glob("audit-log.torn-*"))


def test_a_torn_tail_is_durable_before_it_is_cut_off(root, log, monkeypatch):
    write(root, b"torn")
    synced, really = [], os.fsync

    def looking(descriptor):
        synced.append((os.path.basename(os.readlink(f"/proc/self/fd/{descriptor}")), log_path(root).read_bytes()))
        really(descriptor)

    monkeypatch.setattr(os, "fsync", looking)
    log.append(body, durable=False)

    assert synced == [("audit-log.torn-0", b"torn"), ("audit", b"torn")]


def test_a_torn_tail_that_cannot_be_set_aside_stays(root, log, monkeypatch):
    sound = b"".join(chained(2))
    write(root, sound + b"torn")

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", full)
        assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert log_path(root).read_bytes() == sound + b"torn"
    assert list((root / "audit").glob("audit-log.torn-*")) == []
    log.append(body, durable=False)
    assert [one["kind"] for one in lines_of(root)] == ["call", "call", "recovery", "call"]


def test_a_failed_sync_is_final_for_changes_and_reads_go_on(root, monkeypatch):
    log = open_log(root)
    log.append(body, durable=True)

    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", failing)
        assert refused(log) == "AUDIT_LOG_FAILED"
    assert refused(log) == "AUDIT_LOG_FAILED"
    assert log.append(body, durable=False)["seq"] == 3
    assert anchored(root) == 1
    assert open_log(root).append(intent, durable=True)["seq"] == 4


def is_free(root):
    """Whether another process could have the lock now."""
    with log_path(root).open() as other:
        try:
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def test_the_record_is_composed_under_the_lock(root, log):
    seen = []

    def make():
        seen.append(is_free(root))
        return body()

    log.append(make, durable=True)

    assert seen == [False]
    assert is_free(root)


def test_the_lock_is_let_go_before_the_sync_and_the_anchor_comes_after_it(root, log, monkeypatch):
    seen, really = [], os.fdatasync

    def looking(descriptor):
        if log._file is not None and descriptor == log._file.descriptor:
            seen.append((is_free(root), seqs(lines_of(root)), anchored(root)))
        really(descriptor)

    monkeypatch.setattr(os, "fdatasync", looking)
    log.append(body, durable=True)

    assert seen == [(True, [1], None)]
    assert anchored(root) == 1


@pytest.mark.parametrize("patience", [0.05, 5.0])
def test_closing_leaves_a_sync_that_is_under_way_its_anchor(root, monkeypatch, patience):
    log, begun, really, told = open_log(root, lock_seconds=patience), threading.Event(), os.fdatasync, []

    def slow(descriptor):
        if log._file is not None and descriptor == log._file.descriptor:
            begun.set()
            time.sleep(0.3)
        really(descriptor)

    monkeypatch.setattr(os, "fdatasync", slow)
    syncing = threading.Thread(target=lambda: told.append(log.append(body, durable=True)))
    syncing.start()
    begun.wait(5)
    log.close()
    syncing.join()

    assert [one["seq"] for one in told] == [1]
    assert anchored(root) == 1


@pytest.mark.parametrize("look", ["append", "catch_up", "verify"])
def test_a_log_that_somebody_begins_at_this_moment_is_not_missing(root, monkeypatch, look):
    log, other, really, begun = open_log(root), open_log(root), Checkpoint.read, []

    def late(anchor):
        if not begun:
            begun.append(anchor)
            other.append(body, durable=True)
        return really(anchor)

    monkeypatch.setattr(Checkpoint, "read", late)
    if look == "append":
        log.append(intent, durable=True)
    elif look == "catch_up":
        log.catch_up()
    else:
        assert verify.verify_log(str(root)).verdict == "intact"

    assert log.damage() is None
    assert log_path(root).exists()
    log.close()
    other.close()


def test_every_process_anchors_what_it_made_durable_and_the_newest_counts(root, log):
    other = open_log(root)
    log.append(body, durable=True)
    written = other.append(body, durable=True)
    log.append(body, durable=False)

    assert Checkpoint(state_dir.path_of(str(root))).read().head.entry_hash == written["entry_hash"]
    log.sync()
    assert anchored(root) == 3
    other.close()


def test_a_log_whose_directory_cannot_be_synced_is_not_begun(root, log, monkeypatch):
    def failing(_):
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", failing)
        assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
        assert refused(log, body, durable=False) == "AUDIT_LOG_FAILED"
    assert log.append(body, durable=False)["seq"] == 1


def test_nobody_is_told_a_path_outside(tmp_path):
    log = open_log(tmp_path)

    with pytest.raises(errors.SystemError) as caught:
        log.append(body, durable=True)
    assert str(tmp_path) not in caught.value.human_message + str(caught.value.cause)


def test_a_newcomer_follows_a_long_log_before_it_asks_for_the_lock(root, told, monkeypatch):
    write(root, b"".join(chained(500)))
    followed = []
    taken = FileLock.try_acquire

    def watched(lock):
        followed.append(len(told))
        return taken(lock)

    monkeypatch.setattr(FileLock, "try_acquire", watched)
    log = open_log(root, told)
    log.append(body, durable=False)
    log.close()

    assert followed[0] == 500
    assert [one["seq"] for one in told] == list(range(1, 502))


@pytest.mark.usefixtures("alarm")
def test_a_log_that_is_another_file_at_each_look_is_given_up_in_time(tmp_path, monkeypatch):
    (tmp_path / "audit").mkdir()
    log = AuditLog(str(tmp_path), follow=lambda _: None, lock_seconds=0.05)
    monkeypatch.setattr(log_file.LogFile, "size_if_current", lambda *_: None)
    with pytest.raises(errors.SystemError) as caught:
        log.append(body, durable=True)

    assert caught.value.error_code == "AUDIT_LOCK_FAILED"
