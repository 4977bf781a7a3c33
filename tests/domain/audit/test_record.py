import json
import re
import shutil
import subprocess
from contextlib import suppress
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from logs import body, chained, head_of

import kaiza
from kaiza.domain import errors
from kaiza.domain.audit import record, redaction
from kaiza.domain.audit.hash_chain import Chain, InvalidLineError, is_torn, parse_and_verify
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath

PARTS = st.lists(st.sampled_from(["a", "é", "\x7f", "\udcff", '"', "\\", "\n", "\u2028"]), max_size=6).map("".join)
ANYTHING = st.recursive(
    st.none() | st.integers() | st.floats() | PARTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PARTS, inner, max_size=3),
)


def minimal_verifier(log):
    link = "0" * 64
    for number, line in enumerate(log.split(b"\n")[:-1], 1):
        entry = json.loads(line)
        claimed = entry.pop("entry_hash")
        body_bytes = json.dumps(entry, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        assert line == body_bytes[:-1] + b',"entry_hash":"%b"}' % claimed.encode()
        assert (entry["seq"], entry["prev_hash"], sha256(body_bytes).hexdigest()) == (number, link, claimed)
        link = claimed
    return number


def test_a_record_has_every_member():
    _, whole = record.serialize_and_hash(
        record.new_body("call", timestamp="2026-11-18T09:00:00.000Z"), 1, record.GENESIS
    )

    assert set(whole.members) == set(record.FIELDS)
    assert whole.members["kaiza"] == kaiza.__version__
    assert whole.members["changes"] == []
    assert {whole.members[name] for name in ("cause", "detail", "outcome", "client", "request_id")} == {None}


CHANGE = {
    "path": "a",
    "operation": "create",
    "source": None,
    "before_hash": None,
    "after_hash": "0" * 64,
    "size": 1,
    "lines_added": 1,
    "lines_removed": 0,
    "mode": 0o644,
}


@pytest.mark.parametrize(
    "changed",
    [
        {"more": 1},
        {"kind": "other"},
        {"outcome": "perhaps"},
        {"seq": 0},
        {"seq": True},
        {"timestamp": None},
        {"prev_hash": "0" * 63},
        {"prev_hash": "0" * 65},
        {"entry_hash": "Z" * 64},
        {"entry_hash": None},
        {"cause": []},
        {"duration_ms": True},
        {"changes": [{**CHANGE, "more": 1}]},
    ],
)
def test_a_record_that_kaiza_does_not_write_has_no_known_form(changed):
    _, whole = record.serialize_and_hash(
        record.new_body("call", timestamp="t", outcome="ok", changes=[CHANGE]), 1, "0" * 64
    )

    assert record.has_known_form(whole)
    assert not record.has_known_form(record.Record({**whole.members, **changed}))


def test_an_unknown_member_or_kind_is_refused():
    with pytest.raises(ValueError, match="no such member"):
        record.new_body("call", colour="red")
    with pytest.raises(ValueError, match="no such kind"):
        record.new_body("rumour")


def test_a_line_is_the_body_and_its_hash():
    line, whole = record.serialize_and_hash(body(), 7, "a" * 64)

    match = re.fullmatch(rb'(.*),"entry_hash":"([0-9a-f]{64})"}\n', line)
    assert sha256(match[1] + b"}").hexdigest().encode() == match[2]
    assert json.loads(line) == whole.members
    assert (whole.seq, whole.members["prev_hash"]) == (7, "a" * 64)
    assert list(json.loads(line)) == [*sorted(set(record.FIELDS) - {"entry_hash"}), "entry_hash"]


def test_a_minimal_verifier_accepts_the_log():
    assert minimal_verifier(b"".join(chained(20, detail={"name": "naïve \u2028 name"}))) == 20


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@given(st.lists(PARTS, min_size=1, max_size=5))
@settings(max_examples=10)
def test_the_documented_shell_command_verifies_any_line(tmp_path_factory, names):
    log = tmp_path_factory.mktemp("log") / "audit-log.jsonl"
    log.write_bytes(
        b"".join(record.serialize_and_hash(body(arguments={"path": name}), 1, record.GENESIS)[0] for name in names)
    )
    result = subprocess.run(
        ["sh", "-c", f"sed -n {len(names)}p {log} | jq -cjS 'del(.entry_hash)' | sha256sum"],
        capture_output=True,
        check=True,
    )

    assert result.stdout[:64] == log.read_bytes()[-67:-3]


def test_converted_values_are_listed_in_the_record():
    made = record.new_body("call", arguments={"path": "a\udcff\x7f"}, detail={"how": "edited"})

    assert made["arguments"] == {"path": "a\\xff\\x7f"}
    assert made["detail"] == {"how": "edited", "escaped": ["arguments.path"], "escaping": 2}


@given(st.dictionaries(PARTS, ANYTHING, max_size=4), ANYTHING)
def test_a_record_of_any_values_serializes_to_a_valid_line(arguments, cause):
    line, whole = record.serialize_and_hash(
        record.new_body("call", arguments=arguments, cause=cause), 1, record.GENESIS
    )

    assert parse_and_verify(line) == whole


@pytest.mark.parametrize("place", ["request_id", "role", "session_id", "timestamp", "tool_name", "workspace_root"])
@pytest.mark.parametrize("like", [{"p": 1, "prev_hash": "", "request_id": "x", "seq": 0, "z": 2}, ["{", "}"], "}{"])
def test_values_that_look_like_chain_members_do_not_confuse_the_parser(place, like):
    nested = {"p": 1, "prev_hash": "", "seq": 0, "z": '","prev_hash":"","seq":0,'}
    line, whole = record.serialize_and_hash(record.new_body("call", arguments=nested, **{place: like}), 7, "a" * 64)

    assert parse_and_verify(line) == whole
    assert (whole.arguments, whole.members[place], whole.seq) == (nested, like, 7)


def test_a_sequence_number_beyond_53_bits_is_refused():
    with pytest.raises(TypeError, match="53-bit"):
        record.serialize_and_hash(body(), 2**53, record.GENESIS)


def test_a_record_that_is_too_long_is_refused():
    record.serialize_and_hash(body(arguments={"path": "x" * (record.MAX_RECORD_BYTES - 1100)}), 1, record.GENESIS)

    with pytest.raises(errors.SystemError) as refused:
        record.serialize_and_hash(body(arguments={"path": "x" * record.MAX_RECORD_BYTES}), 1, record.GENESIS)
    assert refused.value.error_code == "CAP_EXCEEDED"


def test_a_chain_continues_from_a_head():
    lines = chained(9)
    chain = Chain(head_of(lines[:4]))
    fed = [chain.feed(line).seq for line in lines[4:]]

    assert fed == [5, 6, 7, 8, 9]
    assert chain.head == head_of(lines)


@pytest.mark.parametrize("wrong", [0, 1, 2, 5, 6])
def test_a_chain_accepts_only_the_next_line(wrong):
    lines = chained(7)
    chain = Chain(head_of(lines[:3]))

    with pytest.raises(InvalidLineError):
        chain.feed(lines[wrong])
    assert chain.head == head_of(lines[:3])


@pytest.mark.parametrize("first", [5, 9, 3, 0])
def test_a_chain_refuses_a_wrong_number_with_a_valid_hash_and_link(first):
    head = head_of(chained(3))
    lines = chained(2, first=first, link=head.entry_hash)
    fed, followed = Chain(head), Chain(head)

    with pytest.raises(InvalidLineError):
        fed.feed(lines[0])
    assert followed.extend(lines) is False
    assert fed.head == followed.head == head


@pytest.mark.parametrize(
    "how",
    [
        '{"prev_hash":"%s","seq":true}',
        '{"prev_hash":"%s","seq":1.0}',
        '{"prev_hash":"%s","seq": 1}',
        '{"seq":1,"prev_hash":"%s"}',
        '{"entry_hash":"x","prev_hash":"%s","seq":1}',
        '[{"prev_hash":"%s","seq":1}]',
    ],
)
def test_a_non_canonical_body_with_a_valid_hash_is_refused(how):
    body_bytes = (how % record.GENESIS).encode()
    line = body_bytes[:-1] + b',"entry_hash":"%b"}\n' % sha256(body_bytes).hexdigest().encode()

    with pytest.raises(InvalidLineError):
        Chain().feed(line)


@given(st.integers(0, 6), st.sampled_from(["drop", "double", "swap", "change", "none"]))
def test_following_accepts_the_same_lines_as_verification(place, how):
    lines = chained(7)
    if how == "drop":
        del lines[place]
    elif how == "double":
        lines.insert(place, lines[place])
    elif how == "swap":
        lines[place], lines[-1] = lines[-1], lines[place]
    elif how == "change":
        lines[place] = lines[place].replace(b"src", b"scr")
    followed, fed = Chain(), Chain()
    delivered = []
    accepted_all = followed.extend(lines, lambda one: delivered.append(one.seq))
    with suppress(InvalidLineError):
        for line in lines:
            fed.feed(line)

    assert followed.head == fed.head
    assert delivered == list(range(1, fed.seq + 1))
    assert accepted_all == (len(delivered) == len(lines))
    assert followed.last == (lines[fed.seq - 1] if delivered else b"")


def test_parsing_a_valid_line_returns_its_record():
    line, whole = record.serialize_and_hash(body(), 1, record.GENESIS)

    assert parse_and_verify(line) == whole


@pytest.mark.parametrize(
    ("line", "offset", "torn"),
    [
        (b"x" * 700, 0, True),
        (b"x" * 699 + b"\n", 0, False),
        (b"x" * 512 + b"\0" * 187 + b"\n", 0, False),
        (b"x" * 100 + b"\0" * 512 + b"x\n", 412, True),
        (b"\0" * 100 + b"x" * 599 + b"\n", 412, True),
        (b"\0" * 7 + b"x" * 599 + b"\n", 505, False),
        (b"x" * 100 + b"\0" * 511 + b"xx\n", 412, False),
    ],
)
def test_a_line_without_newline_or_with_a_zeroed_sector_is_torn(line, offset, torn):
    assert is_torn(line, offset) is torn


@pytest.mark.parametrize("letter", ["\x01", "\x7f", "\udc80", "\U0001f600"])
def test_a_single_change_always_fits_into_a_record(letter):
    size = len(letter.encode(errors="surrogateescape"))
    names = (letter * (255 // size),) * 15
    source, path = RelPath((*names, letter * (200 // size))), RelPath((*names, letter * (240 // size)))
    moved = Change(path, "move", "a" * 64, "b" * 64, 2**40, 10**9, 10**9, 0o7777, source)
    asked = dict.fromkeys(redaction.PLAIN_ARGUMENTS, letter * (redaction.MAX_TEXT // size))
    one = body(
        tool_name="t" * redaction.MAX_NAME,
        arguments=redaction.redact_arguments({"source": str(source), "destination": str(path)}),
        changes=[moved.as_record()],
        workspace_root="/" + "/".join(names),
        client=letter * 200,
        detail={"modes": {str(source): 0o7777}},
    )

    assert len(record.serialize_and_hash(one, 10**12, record.GENESIS)[0]) < record.MAX_RECORD_BYTES
    assert (
        len(record.serialize_and_hash(body(arguments=redaction.redact_arguments(asked)), 1, record.GENESIS)[0])
        < record.MAX_RECORD_BYTES // 2
    )
