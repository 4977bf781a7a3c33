"""The outline of a line is that of the decoded line, however it is cut into pieces and whatever is broken in it."""

import json
import os
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiza.wire.outline import MAX_KEPT, MAX_TEXT, Outline

texts = st.text(max_size=6) | st.sampled_from(['"', "\\", '\\"', "\\\\", '"id":5', "}{", "[],", "\ud800", "x" * 5000])
keys = st.sampled_from(["id", "params", "_meta", "method", "arguments", '"', "\\"]) | st.text(min_size=1, max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=15,
)
messages = st.fixed_dictionaries(
    {"id": st.integers(0, 9) | st.text(max_size=4)},
    optional={
        "method": st.sampled_from(["tools/call", "ping"]),
        "params": st.dictionaries(st.sampled_from(["name", "tool", "arguments", "_meta", "input"]), values) | values,
        "extra": values,
    },
)
orders = st.booleans()


def outline_of(line, cuts=()):
    outline = Outline()
    bounds = sorted({0, len(line), *(cut % (len(line) + 1) for cut in cuts)})
    for start, end in pairwise(bounds):
        outline.feed(line[start:end])
    return outline


def expected(value, path=()):
    """What is kept of a value."""
    if isinstance(value, str):
        return value if len(json.dumps(value)) <= MAX_TEXT else ""
    if isinstance(value, list):
        return []
    if isinstance(value, dict):
        is_kept = path in ((), ("params",)) or path[:2] == ("params", "_meta")
        return {expected(key): expected(item, (*path, key)) for key, item in value.items()} if is_kept else {}
    return value


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


@settings(max_examples=2000 if os.environ.get("KAIZA_LONG") else 200)
@given(messages, orders, st.lists(st.integers(0, 10_000), max_size=6), st.sampled_from([None, 1]))
def test_the_outline_of_a_whole_line_agrees_with_a_decoder(value, is_reversed, cuts, indent):
    value = dict(reversed(value.items())) if is_reversed else value
    line = json.dumps(value, indent=indent).encode()
    outline = outline_of(line, cuts)

    assert outline.read() == expected(value)
    assert (len(outline), outline.depth) == (len(line), depth(value))


@given(messages, st.integers(0, 400))
def test_of_a_line_that_breaks_off_only_whole_members_are_read(value, end):
    line = json.dumps(value).encode()
    whole = expected(value)

    def agrees(read, known):
        return all(name in known and (read[name] == known[name] or agrees(read[name], known[name])) for name in read)

    assert agrees(outline_of(line[:end]).read(), whole)


def test_a_member_that_occurs_twice_is_left_out():
    assert outline_of(b'{"id":1,"method":"a","id":1,"params":{"name":"x","name":"x","b":1}}').read() == {
        "method": "a",
        "params": {"b": 1},
    }


@pytest.mark.parametrize(
    ("line", "read"),
    [
        (b"", {}),
        (b"7", {}),
        (b'["id",1]', {}),
        (b'"{\\"id\\":1}"', {}),
        (b"]]}}{", {}),
        (b'{"id":1}}}]]', {"id": 1}),
        (b'{"id":1}{"id":2}', {"id": 1}),
        (b'{"a":"b"c","id":1}', {}),
        (b'{"par\\u0061ms":{"name":"x"},"id":1}', {"params": {"name": "x"}, "id": 1}),
        (b'{"par\\u0061ms":{"name":"x"},"params":{},"id":1}', {"id": 1}),
        (b'{"params":{"\\u005fmeta":{"name":"x"}}}', {"params": {"_meta": {"name": "x"}}}),
        (b'\xef\xbb\xbf{"id":1}', {"id": 1}),
        (b'{"id":1,"a":"\xff"}', {"id": 1, "a": ""}),
        (b'{"id":1,"a":\xff}', {}),
        (b'{"id":1,"a":{"b":"\xff"}}', {"id": 1, "a": {}}),
        (b'{"id":1,"a":NaN}', {"id": 1, "a": None}),
        (b'{"id":1 2}', {}),
        (b'\t{ "id" :\r1 , "params" : { "_meta" : { "a" : { } } } }', {"id": 1, "params": {"_meta": {"a": {}}}}),
    ],
)
def test_odd_lines_have_an_outline(line, read):
    for size in (1, 2, 1000):
        assert outline_of(line, range(0, len(line), size)).read() == read


@pytest.mark.parametrize("flood", [b'"a":1,', b" ", b"1", b"[", b'"', b'{"a":', b"\\", b"]" * 64 + b",", b'"",'])
def test_memory_is_bounded_whatever_the_line_holds(flood):
    piece = flood * (MAX_KEPT // len(flood))
    outline = Outline()
    outline.feed(b'{"id":1,')
    tracemalloc.start()
    for _ in range(4):
        outline.feed(piece)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert peak < 4 << 20
    assert outline.read().get("id", 1) == 1


def test_the_last_member_of_a_line_that_breaks_off_is_not_believed():
    outline = Outline()
    outline.feed(b'{"id":1,"method":"tools/call","params":{"name":"read_file","x":12')

    assert outline.read() == {"id": 1, "method": "tools/call", "params": {"name": "read_file"}}


def test_of_any_number_of_members_an_outline_keeps_the_first_64_kib():
    outline = Outline()
    outline.feed(b"{" + b",".join(b'"%08d":1' % number for number in range(100_000)) + b"}")

    assert 5_000 < len(outline.read()) < MAX_KEPT / len('"00000000":1')


def test_the_depth_of_what_is_not_kept_is_measured_in_every_piece():
    outline = Outline()
    for piece in (b'{"params":{"arguments":[1,', b"[" * 500 + b"]" * 500, b"]}}"):
        outline.feed(piece)

    assert outline.depth == 503
