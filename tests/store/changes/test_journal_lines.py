"""Lines of a journal: what was written whole, in this order, with this key."""

import pytest

from kaiza.store.changes import journal_lines
from kaiza.store.disk.state_key import StateKey

LINES = [{"steps": []}, {"staged": [1]}, {"committed": True}]


@pytest.fixture
def key(tmp_path):
    return StateKey(tmp_path)


def signed_lines(key, txn="t"):
    written, code = [], b""
    for line in LINES:
        written.append(journal_lines.sign_line(key, txn, code, journal_lines.encode_line(line)))
        code = journal_lines.code_of(written[-1])
    return written


def read(key, *written, txn="t"):
    return journal_lines.authentic_lines(key, txn, b"".join(written))


def test_whole_lines_in_their_order_are_authentic(key):
    assert read(key, *signed_lines(key)) == LINES


def test_a_torn_last_line_does_not_count(key):
    first, second, third = signed_lines(key)
    lengths = range(len(third))

    assert [read(key, first, second, third[:length]) for length in lengths] == [LINES[:2]] * len(lengths)


def test_lines_that_were_left_out_or_swapped_end_the_journal(key):
    first, second, third = signed_lines(key)

    assert read(key, second, third) == []
    assert read(key, first, third) == LINES[:1]
    assert read(key, first, third, second) == LINES[:1]
    assert read(key, first, second, second) == LINES[:2]


def test_lines_of_another_journal_or_key_are_not_authentic(key, tmp_path):
    assert read(key, *signed_lines(key), txn="u") == []
    assert read(StateKey(tmp_path / "other"), *signed_lines(key)) == []


def test_a_code_is_of_its_parts_and_not_only_of_their_bytes(key):
    one = key.compute_code("purpose", b"a\nb", b"c")

    assert key.is_valid_code(one, "purpose", b"a\nb", b"c")
    assert not key.is_valid_code(one, "purpose", b"a", b"b\nc")
    assert not key.is_valid_code(one, "purpose\na", b"b", b"c")
