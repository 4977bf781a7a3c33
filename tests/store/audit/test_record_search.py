"""Records found by a text, without parsing the others."""

import json
import os

import pytest
from logs import chained, log_path, write_log

from kaiza.store.audit import reader
from kaiza.store.audit.reader import BLOCK_BYTES, member_text, read_since, search_backward, search_records


@pytest.fixture
def root(tmp_path):
    (tmp_path / "audit").mkdir()
    return str(tmp_path)


def numbers(found):
    return [record.seq for _, record in found]


def test_the_records_with_one_of_the_texts_are_found_in_order(root):
    write_log(root, b"".join(chained(50)))
    found = list(search_records(root, [member_text("path", "src/31.py"), member_text("path", "src/7.py")]))

    assert numbers(found) == [7, 31]
    assert [json.loads(line) for line, _ in found] == [record.members for _, record in found]


def test_records_that_cross_the_end_of_a_block_are_found(root):
    lines = chained(60, human_message="x" * 60_000)
    write_log(root, b"".join(lines))

    assert os.stat(log_path(root)).st_size > 3 * BLOCK_BYTES
    assert numbers(search_records(root, [b'"kind":"call"'])) == list(range(1, 61))
    assert numbers(search_records(root, [member_text("path", "src/35.py")])) == [35]
    assert numbers(search_records(root, [b'"kind":"call"'], since_seq=41)) == list(range(41, 61))


def test_what_is_no_record_is_skipped_and_costs_no_memory(root, monkeypatch):
    monkeypatch.setattr(reader, "MAX_LINE_BYTES", 4096)
    first, second, third = chained(3)
    write_log(root, first + b'not json "kind":"call"\n' + second + b"x" * (3 * BLOCK_BYTES) + b"\n" + third)

    assert numbers(search_records(root, [b'"kind":"call"'])) == [1, 2, 3]


def test_backwards_records_that_cross_the_end_of_a_block_are_found(root):
    write_log(root, b"".join(chained(60, human_message="x" * 60_000)) + b'{"seq":61}')

    assert [record.seq for record in search_backward(root, b'"seq":')] == list(range(61, 0, -1))
    assert [record.seq for record in search_backward(root, member_text("path", "src/35.py"))] == [35]


def test_from_a_time_on_all_later_records_are_read(root):
    early = chained(3_000, timestamp="2026-11-18T09:00:00.000Z")
    link = json.loads(early[-1])["entry_hash"]
    late = chained(3_000, timestamp="2026-11-18T10:00:00.000Z", first=3_001, link=link)
    write_log(root, b"".join(early + late))
    found = numbers(read_since(root, "2026-11-18T10:00:00.000Z"))

    assert found[-3_000:] == list(range(3_001, 6_001))
    assert len(found) < 6_000
