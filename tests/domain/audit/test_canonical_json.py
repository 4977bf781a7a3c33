import os
import shutil
import subprocess

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from kaiza.domain.audit import canonical_json

KEYS = st.text(st.characters(max_codepoint=127), max_size=8)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | TEXTS
INSIDE = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4))
ANY_TEXT = st.text(max_size=12) | st.binary(max_size=12).map(os.fsdecode) | st.just("a\x7fb")
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
)


@given(INSIDE)
def test_inside_the_profile_encoding_equals_rfc_8785(value):
    assert canonical_json.encode(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    "outside",
    [1.0, -0.0, 1e21, float("nan"), float("inf"), 2**53, -(2**53), "\ud800", os.fsdecode(b"\xff"), {"ключ": 1},
     {"\U0001f600": 1}, {1: "a"}, {None: 1}, {"\ud800": 1}, {1, 2}, b"bytes", object(), os],
)  # fmt: skip
@pytest.mark.parametrize("wrap", [lambda value: value, lambda value: {"a": [value]}, lambda value: [{"b": value}]])
def test_a_value_outside_the_profile_is_refused(outside, wrap):
    with pytest.raises(ValueError, match="outside the profile"):
        canonical_json.encode(wrap(outside))


def test_a_value_that_contains_itself_is_refused():
    loop = []
    loop.append(loop)

    with pytest.raises(ValueError, match="outside the profile"):
        canonical_json.encode(loop)


@given(st.dictionaries(KEYS, INSIDE, max_size=5))
def test_decoding_reverses_encoding(value):
    assert canonical_json.decode(canonical_json.encode(value)) == value


@pytest.mark.parametrize(
    "other",
    [b'{"a": 1}', b'{"b":1,"a":2}', b'{"a":1,"a":1}', b'{"a":1.0}', b'{"a":1.5}', b'{"a":[1,{"b":0.5}]}', b'{"a":1e2}',
     b'{"a":-0}', b'{"a":"\\u0041"}', b'{"a":"\\/"}', b'{"a":"\xff"}', b'{"a":NaN}', b'{"a":9007199254740992}',
     b'{"\xd0\xba":1}', b'{"b":{"\xd0\xba":1}}', b"[1]", b"1", b"", b"{", b'{"a":1}\n', b'\xef\xbb\xbf{"a":1}',
     b'{"a":' + b"[" * 300 + b"]" * 300 + b"}"],
)  # fmt: skip
def test_bytes_in_non_canonical_form_are_not_decoded(other):
    assert canonical_json.decode(other) is None


@given(ANYTHING)
def test_any_json_value_becomes_recordable(value):
    converted, paths = canonical_json.to_recordable(value)

    assert canonical_json.encode_unchecked({"value": converted}) == canonical_json.encode({"value": converted})
    assert (converted == value) == (not paths)


@given(st.binary(min_size=1, max_size=20))
def test_non_utf8_bytes_of_a_name_are_escaped_readably(name):
    converted, paths = canonical_json.to_recordable({"path": os.fsdecode(name)})

    expected = name.decode("utf-8", "backslashreplace").replace("\x7f", "\\x7f")
    assert paths == (("path",) if expected != os.fsdecode(name) else ())
    assert converted == {"path": expected} or b"\\" in name


def test_the_paths_of_converted_values_are_returned():
    converted, paths = canonical_json.to_recordable({"a": [{"b": "x\x7f"}, 1.5], "é": 2**60, "plain": "é"})

    assert converted == {"a": [{"b": "x\\x7f"}, "1.5"], "\\xe9": str(2**60), "plain": "é"}
    assert paths == ("a.0.b", "a.1", "\\xe9", "\\xe9")


def test_keys_that_become_equal_stay_distinct():
    converted, _ = canonical_json.to_recordable({"\\xe9": 1, "é": 2})

    assert converted == {"\\\\xe9": 1, "\\xe9": 2}


@pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")
@given(st.lists(st.dictionaries(KEYS, ANYTHING, max_size=4), min_size=1, max_size=20))
@settings(max_examples=10)
def test_jq_encodes_recordable_values_to_the_same_bytes(values):
    lines = [canonical_json.encode(canonical_json.to_recordable(value)[0]) for value in values]

    converted = subprocess.run(["jq", "-cS", "."], input=b"\n".join(lines), capture_output=True, check=True)
    assert converted.stdout.splitlines() == lines
