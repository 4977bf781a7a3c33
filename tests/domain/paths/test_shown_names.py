"""Names in the form that JSON shows: no two alike."""

import os

from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain.paths.shown_names import escape_name

names = st.lists(st.sampled_from([b"\\", b"x", b"ff", b"80", b"\xff", b"\x80", "é".encode(), b"7f", b"a"])).map(
    b"".join
)


def test_bytes_that_are_not_utf8_are_escaped_and_other_names_stay():
    assert escape_name(os.fsdecode(b"a\xff\xc3\xa9\\n")) == r"a\xffé\\n"
    assert [escape_name(name) for name in ("é", r"a\nb", r"\x7f", "\\")] == ["é", r"a\nb", r"\x7f", "\\"]
    assert escape_name(r"\xff") == r"\\xff"


@given(names, names)
def test_no_two_names_are_shown_alike(one, other):
    shown = [escape_name(os.fsdecode(name)) for name in (one, other)]

    assert (shown[0] == shown[1]) == (one == other)
    assert os.fsdecode(one) != shown[0] or shown[0].isprintable()
