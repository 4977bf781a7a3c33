import os
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import LONG, body, chained, head_of, intent, log_path, open_log, write_checkpoint, write_log

from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.domain.audit.record import Verdict
from kaiza.store.audit.damage_mark import DamageMark
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification import segment, verify
from kaiza.store.audit.verification.accept import accept_damage
from kaiza.store.disk import state_dir

COUNT = 6
LINES = chained(COUNT)
WHOLE = b"".join(LINES)
OFFSETS = [sum(map(len, LINES[:number])) for number in range(COUNT + 1)]
CHECKPOINTS = st.sampled_from([None, 1, 3, COUNT])
many = settings(max_examples=2000 if LONG else 40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def verdict_on(tmp_path):
    def verify_content(content, checkpoint_seq=None):
        write_log(tmp_path, content)
        write_checkpoint(tmp_path, head_of(LINES[:checkpoint_seq]) if checkpoint_seq else None)
        found = verify.verify_log(str(tmp_path))
        fault = found.first_fault
        return found.verdict, (fault.seq, fault.why, fault.offset) if fault else None, found.records

    return verify_content


def expected_for_changed_byte(offset, checkpoint_seq):
    line = next(number for number in range(COUNT) if offset < OFFSETS[number + 1])
    if offset == len(WHOLE) - 1:
        verdict = "cut_off" if checkpoint_seq == COUNT else "torn_tail"
        return verdict, (COUNT, "dropped" if verdict == "cut_off" else "torn", OFFSETS[line]), COUNT - 1
    return "broken", (line + 1, "edited", OFFSETS[line]), line


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), CHECKPOINTS)
@many
def test_any_single_byte_changed_is_found_where_it_is(verdict_on, offset, new, checkpoint_seq):
    changed = bytearray(WHOLE)
    changed[offset] = new
    expected = expected_for_changed_byte(offset, checkpoint_seq) if bytes(changed) != WHOLE else ("intact", None, COUNT)

    assert verdict_on(bytes(changed), checkpoint_seq) == expected


@pytest.mark.long
def test_every_single_byte_changed_is_found_where_it_is(verdict_on):
    for offset in range(0, len(WHOLE), 1 if LONG else 197):
        for new in {WHOLE[offset] ^ 1, WHOLE[offset] ^ 0x80, 0, 10, 32} - {WHOLE[offset]}:
            changed = WHOLE[:offset] + bytes([new]) + WHOLE[offset + 1 :]

            assert verdict_on(changed, COUNT) == expected_for_changed_byte(offset, COUNT)


@given(st.integers(0, COUNT - 1), CHECKPOINTS)
@many
def test_a_dropped_line_is_found_where_it_was(verdict_on, dropped, checkpoint_seq):
    found = verdict_on(b"".join(LINES[:dropped] + LINES[dropped + 1 :]), checkpoint_seq)

    if dropped < COUNT - 1:
        assert found == ("broken", (dropped + 1, "dropped", OFFSETS[dropped]), dropped)
    elif checkpoint_seq == COUNT:
        assert found == ("cut_off", (COUNT, "dropped", OFFSETS[dropped]), dropped)
    else:
        assert found == ("intact", None, dropped)


@given(st.integers(0, len(WHOLE)), CHECKPOINTS)
@many
def test_a_log_truncated_at_any_byte_is_cut_off_or_torn(verdict_on, end, checkpoint_seq):
    left = sum(start <= end for start in OFFSETS[1:])
    found = verdict_on(WHOLE[:end], checkpoint_seq)

    if checkpoint_seq is not None and checkpoint_seq > left:
        assert found == ("cut_off", (left + 1, "dropped", OFFSETS[left]), left)
    elif end in OFFSETS:
        assert found == ("intact", None, left)
    else:
        assert found == ("torn_tail", (left + 1, "torn", OFFSETS[left]), left)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", ("cut_off", (1, "dropped", 0), 0)),
        (b"\n", ("broken", (1, "edited", 0), 0)),
        (b"".join(chained(COUNT - 1, client="other")), "cut_off"),
        (b"".join(chained(COUNT, client="other")), "replaced"),
        (b"".join(chained(COUNT + 3, client="other")), "replaced"),
        (b"\0" * 5000, ("cut_off", (1, "dropped", 0), 0)),
    ],
)
def test_an_emptied_or_replaced_log_is_found_by_its_checkpoint(verdict_on, content, expected):
    found = verdict_on(content, COUNT)

    assert found == expected or found[0] == expected


def test_rewritten_records_with_a_valid_chain_are_found_by_the_checkpoint_only(verdict_on):
    forged = chained(2) + chained(COUNT - 2, first=3, link=head_of(chained(2)).entry_hash, client="forger")

    assert verdict_on(b"".join(forged), COUNT)[0] == "replaced"
    assert verdict_on(b"".join(forged)) == ("intact", None, COUNT)


@pytest.mark.parametrize("line", range(COUNT - 1))
@pytest.mark.parametrize("shift", [2, 7, 0, -1])
def test_renumbered_records_are_broken_although_every_hash_and_link_is_valid(verdict_on, line, shift):
    before = LINES[:line]
    link = before[-1][-67:-3].decode() if before else record.GENESIS
    forged = chained(COUNT - line, first=line + shift, link=link)
    verdict, (seq, _, offset), records_before = verdict_on(b"".join(before + forged))

    assert (verdict, seq, offset, records_before) == ("broken", line + 1, OFFSETS[line], line)


def test_a_last_line_that_lost_a_sector_is_torn_unless_the_checkpoint_covers_it(tmp_path):
    lines = [*LINES, *chained(1, first=COUNT + 1, link=head_of(LINES).entry_hash, detail={"long": "x" * 3000})]
    offset = (len(WHOLE) // 512 + 2) * 512
    whole = b"".join(lines)
    write_log(tmp_path, whole[:offset] + b"\0" * 512 + whole[offset + 512 :])

    assert verify.verify_log(str(tmp_path)).verdict == "torn_tail"
    write_checkpoint(tmp_path, head_of(lines))
    assert verify.verify_log(str(tmp_path)).first_fault == record.ChainFault(COUNT + 1, "edited", len(WHOLE))


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_a_log_that_is_not_a_regular_file_cannot_be_verified(tmp_path, make):
    (tmp_path / "audit").mkdir()
    make(log_path(tmp_path))

    with pytest.raises(errors.SystemError) as refused:
        verify.verify_log(str(tmp_path))
    assert refused.value.error_code == "AUDIT_LOG_FAILED"


def test_a_verdict_of_damage_stops_changes_until_a_later_one_is_intact(tmp_path):
    log = open_log(tmp_path)
    (tmp_path / "audit").mkdir()
    for _ in range(3):
        log.append(body, durable=True)
    intact = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(intact.replace(b"a.py", b"b.py", 1))
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, log.damage()) == ("broken", "broken")
    with pytest.raises(errors.SystemError) as refused:
        log.append(intent, durable=True)
    assert refused.value.error_code == "SELF_AUDIT_FAILURE"
    log_path(tmp_path).write_bytes(intact)
    assert log.damage() == "broken"
    assert verify.verify_log(str(tmp_path)).verdict == "intact"
    assert log.damage() is None
    assert log.append(intent, durable=True).seq == 4


@pytest.mark.parametrize("tamper", [None, 0, 399, 400, 777, 1199])
def test_a_long_log_verified_in_segments_has_the_same_verdict(tmp_path, monkeypatch, tamper):
    monkeypatch.setattr(segment, "_MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    lines = chained(1200)
    if tamper is not None:
        lines[tamper] = lines[tamper].replace(b"src", b"scr")
    write_log(tmp_path, b"".join(lines))
    found = verify.verify_log(str(tmp_path))

    assert found.records == (1200 if tamper is None else tamper)
    assert found.first_fault is None or (found.first_fault.seq, found.first_fault.why) == (tamper + 1, "edited")


def test_segments_that_are_not_connected_are_broken(tmp_path, monkeypatch):
    monkeypatch.setattr(segment, "_MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    lines = chained(400)
    write_log(tmp_path, b"".join(lines[:200] + lines[201:]))

    assert verify.verify_log(str(tmp_path)).first_fault == record.ChainFault(201, "dropped", sum(map(len, lines[:200])))


def test_more_zeros_at_the_end_than_a_crash_leaves_are_damage(tmp_path):
    write_log(tmp_path, WHOLE)
    with log_path(tmp_path).open("ab") as log:
        log.truncate(200 << 20)
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, found.records) == ("broken", COUNT)


@given(st.integers(1, 60), st.integers(1, 60), st.booleans())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_since_a_number_are_read_in_either_direction(tmp_path, monkeypatch, count, since, reverse):
    monkeypatch.setattr("kaiza.store.audit.reader.BLOCK_BYTES", 700)
    monkeypatch.setattr("kaiza.store.audit.reader.BLOCK_BYTES", 1000)
    write_log(tmp_path, b"".join(chained(count)))
    found = [entry.seq for entry in read_records(str(tmp_path), since_seq=since, reverse=reverse)]

    assert found == (list(range(since, count + 1)) if not reverse else list(range(count, since - 1, -1)))


def test_verification_does_not_change_the_log(tmp_path):
    write_log(tmp_path, WHOLE[:-20])
    before = log_path(tmp_path).stat()
    verify.verify_log(str(tmp_path))

    after = log_path(tmp_path).stat()
    assert (after.st_size, after.st_mtime_ns, stat.S_IMODE(after.st_mode)) == (
        before.st_size,
        before.st_mtime_ns,
        stat.S_IMODE(before.st_mode),
    )


def test_a_log_accepted_during_its_verification_is_not_compared_with_the_new_checkpoint(tmp_path, monkeypatch):
    lines = chained(5)
    write_log(tmp_path, b"".join(lines[:3]))
    write_checkpoint(tmp_path, head_of(lines))
    verify_descriptor, accepted = verify._verify_descriptor, []

    def accept_first(descriptor, lock, checkpoint, progress, **options):
        if not accepted:
            accepted.append(accept_damage(str(tmp_path), reason="cut", person="me"))
        return verify_descriptor(descriptor, lock, checkpoint, progress, **options)

    monkeypatch.setattr(verify, "_verify_descriptor", accept_first)
    monkeypatch.setattr(
        "kaiza.store.audit.verification.accept.verify_log",
        lambda _root: Verdict("cut_off", 3, None, None, anchored=False),
    )
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, found.records, found.anchored) == ("intact", 1, True)
    assert DamageMark(state_dir.path_of(str(tmp_path))).read() is None


def test_a_state_directory_that_cannot_be_listed_is_an_error(tmp_path, monkeypatch):
    lines = chained(5)
    write_log(tmp_path, b"".join(lines[:2]))
    write_checkpoint(tmp_path, head_of(lines))

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refuse)
    with pytest.raises(errors.SystemError) as failed:
        verify.verify_log(str(tmp_path))

    assert failed.value.error_code == "AUDIT_LOG_FAILED"
