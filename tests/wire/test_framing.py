import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.wire import framing

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(json_values, st.booleans())
def test_any_json_value_is_decoded(value, ascii_only):
    line = json.dumps(value, ensure_ascii=ascii_only).encode(errors="surrogatepass")

    assert framing.decode(line) == value


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"   ",
        b"nonsense",
        b"{not json",
        b'{"a":1',
        b'{"a":1} {"b":2}',
        b"{'a':1}",
        b'{"a":1,}',
        b"[1]\x00",
        b"\xef\xbb\xbf{}",
        b'"\xff"',
        b'"\xc3\x28"',
        b'"\xed\xa0\x80"',
        '{"a":1}'.encode("utf-16"),
        b"NaN",
        b'{"a":NaN}',
        b"[Infinity]",
        b"[-Infinity]",
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"c":2,"b":3}}',
        b'{"a":1,"\\u0061":2}',
        b'"a\nb"',
        b'"\x01"',
        b"[" * 101 + b"]" * 101,
        b"[" * 10_000 + b"]" * 10_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"[" * 10_000,
    ],
)
def test_lines_that_parsers_could_read_differently_are_rejected(line):
    with pytest.raises(ValueError):  # noqa: PT011  why it is not read is not promised
        framing.decode(line)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b' {"a" : 1}\r', {"a": 1}),
        (b'"\\ud83d\\ude00"', "\N{GRINNING FACE}"),
        (b'"\\\\ud800"', "\\ud800"),
        (b'{"a":{"b":1},"b":1}', {"a": {"b": 1}, "b": 1}),
        (b"[1.5,-0,9223372036854775807]", [1.5, 0, 2**63 - 1]),
        (b"[" * 100 + b"]" * 100, json.loads("[" * 100 + "]" * 100)),
        (b"[" + b"[]," * 49_999 + b"1]", [[]] * 49_999 + [1]),
        (b'"' + b"[]," * 200_000 + b'"', "[]," * 200_000),
        (rb'"\ud800"', "\ud800"),
        (rb'{"\ude00\ud83d":1}', {"\ude00\ud83d": 1}),
        (b'["' + b"[" * 500 + b'"]', ["[" * 500]),
    ],
)
def test_unusual_but_unambiguous_json_is_decoded(line, value):
    assert framing.decode(line) == value


@pytest.mark.parametrize("digits", ["9223372036854775808", "-9223372036854775809", "9" * 400, "-" + "9" * 5000])
@pytest.mark.parametrize("end", ["", "e400"])
def test_a_number_beyond_64_bits_is_an_infinity_that_keeps_its_digits(digits, end):
    (number,) = framing.decode(f"[{digits}{end}]".encode())

    assert number == float("-inf" if digits.startswith("-") else "inf")
    assert repr(number) == digits + end


def test_floats_that_64_bits_hold_are_floats():
    assert repr(framing.decode(b"[1e308,1e-400,-0.0]")) == "[1e+308, 0.0, -0.0]"


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b"[" * 101, "depth"),
        (b'{"a":[' * 10_000, "depth"),
        (b"[" + b"0," * 100_000 + b"0]", "values"),
        (b"[" + b"[]," * 50_000 + b"1]", "values"),
        (b"[" * (4 << 20), "depth"),
        (b"[" + b"[]," * (1 << 20), "values"),
    ],
)
def test_what_is_too_deep_or_too_large_to_decode_is_refused_before_it_is_decoded(line, kind):
    with pytest.raises(framing.RefusedLineError) as refused:
        framing.decode(line)

    assert refused.value.kind == kind
