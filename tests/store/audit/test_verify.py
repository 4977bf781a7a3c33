import os
import stat
from hashlib import sha256

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from logs import LONG, anchor_at, body, chained, head_of, intent, log_path, open_log, write

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
STARTS = [sum(map(len, LINES[:number])) for number in range(COUNT + 1)]
NOWHERE = st.sampled_from([None, 1, 3, COUNT])
PLACES = st.integers(0, COUNT - 1)
many = settings(max_examples=2000 if LONG else 40, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def judged(tmp_path):
    def judge(content, anchored=None):
        write(tmp_path, content)
        anchor_at(tmp_path, head_of(LINES[:anchored]) if anchored else None)
        found = verify.verify_log(str(tmp_path))
        fault = found.first_fault
        return found.verdict, (fault.seq, fault.why, fault.offset) if fault else None, found.records

    return judge


def test_an_untouched_log_is_intact(judged):
    assert judged(WHOLE) == ("intact", None, COUNT)
    assert judged(WHOLE, COUNT) == ("intact", None, COUNT)
    assert judged(WHOLE, 2) == ("intact", None, COUNT)


def expected_of_a_changed_byte(place, new, anchored):
    line = next(number for number in range(COUNT) if place < STARTS[number + 1])
    if place == len(WHOLE) - 1:
        verdict = "cut_off" if anchored == COUNT else "torn_tail"
        return verdict, (COUNT, "dropped" if verdict == "cut_off" else "torn", STARTS[line]), COUNT - 1
    return "broken", (line + 1, "edited", STARTS[line]), line


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 255), NOWHERE)
@many
def test_any_single_byte_changed_is_found_where_it_is(judged, place, new, anchored):
    changed = bytearray(WHOLE)
    changed[place] = new
    expected = expected_of_a_changed_byte(place, new, anchored) if bytes(changed) != WHOLE else ("intact", None, COUNT)

    assert judged(bytes(changed), anchored) == expected


@pytest.mark.long
def test_every_single_byte_changed_is_found_where_it_is(judged):
    for place in range(0, len(WHOLE), 1 if LONG else 197):
        for new in {WHOLE[place] ^ 1, WHOLE[place] ^ 0x80, 0, 10, 32} - {WHOLE[place]}:
            changed = WHOLE[:place] + bytes([new]) + WHOLE[place + 1 :]

            assert judged(changed, COUNT) == expected_of_a_changed_byte(place, new, COUNT)


@given(PLACES, NOWHERE)
@many
def test_a_dropped_line_is_found_where_it_was(judged, gone, anchored):
    found = judged(b"".join(LINES[:gone] + LINES[gone + 1 :]), anchored)

    if gone < COUNT - 1:
        assert found == ("broken", (gone + 1, "dropped", STARTS[gone]), gone)
    elif anchored == COUNT:
        assert found == ("cut_off", (COUNT, "dropped", STARTS[gone]), gone)
    else:
        assert found == ("intact", None, gone)


@given(PLACES, PLACES, NOWHERE)
@many
def test_a_line_copied_to_another_place_is_found_there(judged, which, where, anchored):
    lines = [*LINES[: where + 1], LINES[which], *LINES[where + 1 :]]
    copy = where + 2 if which == where + 1 else where + 1
    expected = ("broken", (copy + 1, "inserted", STARTS[copy]), copy)

    assert judged(b"".join(lines), anchored) == expected


@given(PLACES, PLACES, NOWHERE)
@many
def test_two_lines_that_changed_places_are_found_at_the_first(judged, one, other, anchored):
    first, second = sorted((one, other))
    lines = list(LINES)
    lines[first], lines[second] = lines[second], lines[first]
    expected = ("broken", (first + 1, "reordered", STARTS[first]), first) if one != other else ("intact", None, COUNT)

    assert judged(b"".join(lines), anchored) == expected


@given(PLACES, PLACES, NOWHERE)
@many
def test_a_moved_line_is_found(judged, one, other, anchored):
    lines = list(LINES)
    lines.insert(other, lines.pop(one))
    first = min(one, other)
    expected = ("broken", (first + 1, "reordered", STARTS[first]), first) if one != other else ("intact", None, COUNT)

    assert judged(b"".join(lines), anchored) == expected


@given(PLACES, st.binary(max_size=30) | st.sampled_from(chained(1, first=4, link="f" * 64)), NOWHERE)
@many
def test_a_foreign_line_is_found_where_it_was_put(judged, where, foreign, anchored):
    told = foreign.strip(b"\n").replace(b"\n", b"") + b"\n"
    found = judged(WHOLE[: STARTS[where]] + told + WHOLE[STARTS[where] :], anchored)

    assert found == ("broken", (where + 1, "inserted", STARTS[where]), where)


@given(st.integers(0, len(WHOLE)), NOWHERE)
@many
def test_a_tail_cut_at_any_byte_is_cut_off_or_torn(judged, end, anchored):
    left = sum(start <= end for start in STARTS[1:])
    found = judged(WHOLE[:end], anchored)

    if anchored is not None and anchored > left:
        assert found == ("cut_off", (left + 1, "dropped", STARTS[left]), left)
    elif end in STARTS:
        assert found == ("intact", None, left)
    else:
        assert found == ("torn_tail", (left + 1, "torn", STARTS[left]), left)


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
def test_an_emptied_or_replaced_log_is_told_from_its_anchor(judged, content, expected):
    found = judged(content, COUNT)

    assert found == expected or found[0] == expected


def test_records_sealed_again_from_a_place_on_are_only_told_by_the_anchor(judged):
    forged = chained(2) + chained(COUNT - 2, first=3, link=head_of(chained(2)).entry_hash, client="forger")

    assert judged(b"".join(forged), COUNT)[0] == "replaced"
    assert judged(b"".join(forged)) == ("intact", None, COUNT)


@pytest.mark.parametrize("place", range(COUNT - 1))
@pytest.mark.parametrize("numbered", [2, 7, 0, -1])
def test_renumbered_records_are_broken_though_every_hash_and_link_is_right(judged, place, numbered):
    before = LINES[:place]
    link = before[-1][-67:-3].decode() if before else record.GENESIS
    forged = chained(COUNT - place, first=place + numbered, link=link)
    verdict, (seq, _, offset), records_before = judged(b"".join(before + forged))

    assert (verdict, seq, offset, records_before) == ("broken", place + 1, STARTS[place], place)


@pytest.mark.parametrize("which", range(COUNT - 1))
def test_a_record_changed_and_sealed_again_is_the_faulty_one(judged, which):
    link = LINES[which - 1][-67:-3].decode() if which else record.GENESIS
    line, _ = record.serialize_and_hash(body(client="forger"), which + 1, link)
    lines = [*LINES[:which], line, *LINES[which + 1 :]]

    assert judged(b"".join(lines))[1] == (which + 1, "edited", STARTS[which])


def test_a_line_in_a_form_that_is_not_canonical_is_edited(judged):
    told = LINES[2][:-83].replace(b",", b", ", 1) + b"}"
    line = told[:-1] + b',"entry_hash":"%b"}\n' % sha256(told).hexdigest().encode()

    assert judged(b"".join([*LINES[:2], line, *LINES[3:]]))[1] == (3, "edited", STARTS[2])


def test_no_log_is_missing_only_where_an_anchor_says_there_was_one(tmp_path):
    (tmp_path / "audit").mkdir()

    assert verify.verify_log(str(tmp_path)) == record.Verdict("intact", 0, None, None, anchored=False)
    anchor_at(tmp_path, head_of(LINES))
    assert verify.verify_log(str(tmp_path)).verdict == "missing"


def test_a_last_line_that_lost_a_sector_is_torn_unless_the_anchor_covers_it(tmp_path):
    lines = [*LINES, *chained(1, first=COUNT + 1, link=head_of(LINES).entry_hash, detail={"long": "x" * 3000})]
    place = (len(WHOLE) // 512 + 2) * 512
    whole = b"".join(lines)
    write(tmp_path, whole[:place] + b"\0" * 512 + whole[place + 512 :])

    assert verify.verify_log(str(tmp_path)).verdict == "torn_tail"
    anchor_at(tmp_path, head_of(lines))
    assert verify.verify_log(str(tmp_path)).first_fault == record.ChainFault(COUNT + 1, "edited", len(WHOLE))


def test_a_head_kept_elsewhere_is_held_against_the_log(tmp_path):
    write(tmp_path, WHOLE)

    def verdict(seq, entry_hash):
        return verify.verify_log(str(tmp_path), head=(seq, entry_hash)).verdict

    for seq in range(1, COUNT + 1):
        assert verdict(seq, head_of(LINES[:seq]).entry_hash) == "intact"
        assert verdict(seq, "f" * 64) == "replaced"
    assert verdict(COUNT + 1, "f" * 64) == "cut_off"
    assert DamageMark(state_dir.path_of(str(tmp_path))).read() is None


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_log_cannot_be_judged(tmp_path, make):
    (tmp_path / "audit").mkdir()
    make(log_path(tmp_path))

    with pytest.raises(errors.SystemError) as refused:
        verify.verify_log(str(tmp_path))
    assert refused.value.error_code == "AUDIT_LOG_FAILED"


def test_a_bad_verdict_stops_changes_until_a_later_one_is_intact(tmp_path):
    log = open_log(tmp_path)
    (tmp_path / "audit").mkdir()
    for _ in range(3):
        log.append(body, durable=True)
    sound = log_path(tmp_path).read_bytes()
    log_path(tmp_path).write_bytes(sound.replace(b"a.py", b"b.py", 1))
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, log.damage()) == ("broken", "broken")
    with pytest.raises(errors.SystemError) as refused:
        log.append(intent, durable=True)
    assert refused.value.error_code == "SELF_AUDIT_FAILURE"
    log_path(tmp_path).write_bytes(sound)
    assert log.damage() == "broken"
    assert verify.verify_log(str(tmp_path)).verdict == "intact"
    assert log.damage() is None
    assert log.append(intent, durable=True)["seq"] == 4


def test_progress_is_told_to_the_end(tmp_path):
    write(tmp_path, b"".join(chained(3000)))
    told = []
    verify.verify_log(str(tmp_path), progress=lambda done, whole: told.append((done, whole)))

    assert told[-1] == (log_path(tmp_path).stat().st_size,) * 2
    assert told == sorted(told)


@pytest.mark.parametrize("tamper", [None, 0, 399, 400, 777, 1199])
def test_a_long_log_is_judged_the_same_in_stretches(tmp_path, monkeypatch, tamper):
    monkeypatch.setattr(segment, "_MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    lines = chained(1200)
    if tamper is not None:
        lines[tamper] = lines[tamper].replace(b"src", b"scr")
    write(tmp_path, b"".join(lines))
    found = verify.verify_log(str(tmp_path))

    assert found.records == (1200 if tamper is None else tamper)
    assert found.first_fault is None or (found.first_fault.seq, found.first_fault.why) == (tamper + 1, "edited")


def test_stretches_that_do_not_meet_are_no_sound_log(tmp_path, monkeypatch):
    monkeypatch.setattr(segment, "_MIN_PARALLEL_BYTES", 1)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    lines = chained(400)
    write(tmp_path, b"".join(lines[:200] + lines[201:]))

    assert verify.verify_log(str(tmp_path)).first_fault == record.ChainFault(201, "dropped", sum(map(len, lines[:200])))


def test_a_sparse_file_of_zeros_is_judged_in_little_memory(tmp_path):
    write(tmp_path, WHOLE)
    with log_path(tmp_path).open("ab") as log:
        log.truncate(200 << 20)
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, found.records) == ("torn_tail", COUNT)


@given(st.integers(1, 60), st.integers(1, 60), st.booleans())
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_records_are_found_by_halving_in_either_direction(tmp_path, monkeypatch, count, since, reverse):
    monkeypatch.setattr("kaiza.store.audit.reader.BLOCK_BYTES", 700)
    monkeypatch.setattr("kaiza.store.audit.line_reader.BLOCK_BYTES", 1000)
    write(tmp_path, b"".join(chained(count)))
    found = [told["seq"] for told in read_records(str(tmp_path), since_seq=since, reverse=reverse)]

    assert found == (list(range(since, count + 1)) if not reverse else list(range(count, since - 1, -1)))


def test_records_of_a_damaged_log_are_what_can_be_read(tmp_path):
    write(tmp_path, LINES[0] + b"garbage\n" + LINES[1] + b'{"seq":"no"}\n' + LINES[2][:50])

    assert [told["seq"] for told in read_records(str(tmp_path))] == [1, 2]
    assert [told["seq"] for told in read_records(str(tmp_path), reverse=True)] == [2, 1]


def test_verifying_leaves_the_log_alone(tmp_path):
    write(tmp_path, WHOLE[:-20])
    before = log_path(tmp_path).stat()
    verify.verify_log(str(tmp_path))

    after = log_path(tmp_path).stat()
    assert (after.st_size, after.st_mtime_ns, stat.S_IMODE(after.st_mode)) == (
        before.st_size,
        before.st_mtime_ns,
        stat.S_IMODE(before.st_mode),
    )


def test_a_log_that_is_accepted_while_it_is_judged_is_not_held_against_the_new_ones_anchor(tmp_path, monkeypatch):
    lines = chained(5)
    write(tmp_path, b"".join(lines[:3]))
    anchor_at(tmp_path, head_of(lines))
    really, accepted = verify._verify_descriptor, []

    def judged(descriptor, lock, anchor, progress, **how):
        if not accepted:
            accepted.append(accept_damage(str(tmp_path), reason="cut", person="me"))
        return really(descriptor, lock, anchor, progress, **how)

    monkeypatch.setattr(verify, "_verify_descriptor", judged)
    monkeypatch.setattr(
        "kaiza.store.audit.verification.accept.verify_log", lambda _root: Verdict("cut_off", 3, None, None, anchored=False)
    )
    found = verify.verify_log(str(tmp_path))

    assert (found.verdict, found.records, found.anchored) == ("intact", 1, True)
    assert DamageMark(state_dir.path_of(str(tmp_path))).read() is None


def test_a_state_directory_that_cannot_be_listed_is_no_absence_of_anchors(tmp_path, monkeypatch):
    lines = chained(5)
    write(tmp_path, b"".join(lines[:2]))
    anchor_at(tmp_path, head_of(lines))

    def refused(_place):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "listdir", refused)
    with pytest.raises(errors.SystemError) as failed:
        verify.verify_log(str(tmp_path))

    assert failed.value.error_code == "AUDIT_LOG_FAILED"
