import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import errors
from kaiza.domain.text import edits as edit
from kaiza.domain.text.edits import Position, ReplaceRange, ReplaceText


def error_of(before, *edits):
    with pytest.raises(errors.SystemError) as raised:
        edit.apply(before, edits)
    return raised.value


def splice(start, end, text):
    return ReplaceRange(Position(*start), Position(*end), text)


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a b c", b"b", b"B", b"a B c"),
        (b"a\r\nb\r\n", b"b\r\n", b"c\r\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", b"b", b"c\n", b"a\r\nc\n\r\n"),
        (b"\xef\xbb\xbfa", b"a", b"b", b"\xef\xbb\xbfb"),
        (b"caf\xe9 a", b"a", b"b", None),
        (b"caf\xe9 z", b"z", b"b", b"caf\xe9 b"),
        (b"no end", b"end", b"", b"no "),
        (b"a\0b", b"\0", b"\0\0", b"a\0\0b"),
        (b"whole", b"whole", b"", b""),
    ],
)
def test_an_old_text_is_replaced_byte_for_byte(before, old, new, after):
    if after is None:
        assert error_of(before, ReplaceText(old, new)).error_code == "PATCH_APPLY_FAILED"
    else:
        assert edit.apply(before, [ReplaceText(old, new)]).content == after


def test_edits_apply_to_the_original_in_any_order():
    edits = [ReplaceText(b"three", b"one"), ReplaceText(b"one", b"two"), ReplaceText(b"two", b"three")]

    assert edit.apply(b"one two three", edits).content == b"two three one"


@pytest.mark.parametrize(
    ("before", "start", "end", "text", "after"),
    [
        (b"ab\ncd\n", (0, 1), (1, 1), b"X", b"aXd\n"),
        (b"ab\n", (1, 0), (1, 0), b"cd\n", b"ab\ncd\n"),
        (b"", (0, 0), (0, 0), b"a", b"a"),
        (b"ab", (0, 2), (0, 2), b"c", b"abc"),
        (b"ab\r\nc", (0, 2), (0, 3), b"", b"ab\nc"),
        ("é€𐍈x".encode(), (0, 3), (0, 4), b"y", "é€𐍈y".encode()),
        (b"\xe9\xe9x", (0, 2), (0, 3), b"y", b"\xe9\xe9y"),
        (b"a\x0cb\xc2\x85c\nd", (0, 5), (1, 0), b"", b"a\x0cb\xc2\x85cd"),
    ],
)
def test_a_range_counts_lines_by_lf_and_characters_by_code_point(before, start, end, text, after):
    assert edit.apply(before, [splice(start, end, text)]).content == after


@pytest.mark.parametrize(
    ("before", "start", "end"),
    [
        (b"ab\n", (0, 3), (0, 3)),
        (b"ab\n", (1, 1), (1, 1)),
        (b"ab\n", (2, 0), (2, 0)),
        (b"ab", (1, 0), (1, 0)),
        (b"", (0, 1), (0, 1)),
        (b"", (1, 0), (1, 0)),
        (b"ab\n", (0, 0), (9, 0)),
        (b"ab\n", (0, 2), (0, 1)),
    ],
)
def test_a_range_beyond_the_file_is_refused(before, start, end):
    error = error_of(before, splice(start, end, b"x"))

    assert (error.error_code, error.cause["why"], error.cause["edit"]) == ("INVALID_INPUT_VALUE", "range", 0)


@pytest.mark.parametrize(
    "edits",
    [
        [ReplaceText(b"abc", b"x"), ReplaceText(b"cd", b"y")],
        [ReplaceText(b"abcd", b"x"), ReplaceText(b"bc", b"y")],
        [ReplaceText(b"bc", b"x"), ReplaceText(b"abcd", b"y")],
        [ReplaceText(b"bc", b"x"), ReplaceText(b"bc", b"y")],
        [splice((0, 0), (0, 3), b"x"), splice((0, 2), (0, 2), b"y")],
        [ReplaceText(b"bcd", b"x"), splice((0, 2), (0, 2), b"y")],
    ],
)
def test_edits_that_overlap_are_refused(edits):
    error = error_of(b"abcde", *edits)

    assert (error.error_code, error.cause["why"]) == ("INVALID_INPUT_VALUE", "overlap")
    assert error.cause["edits"] == [0, 1]


def test_adjacent_edits_are_applied():
    edits = [
        splice((0, 2), (0, 2), b"-"),
        ReplaceText(b"ab", b"A"),
        ReplaceText(b"cd", b"C"),
        splice((0, 2), (0, 2), b"+"),
    ]

    assert edit.apply(b"abcd", edits).content == b"A-+C"


@pytest.mark.parametrize(
    "edits",
    [
        [ReplaceText(b"b", b"b")],
        [ReplaceText(b"a", b"x"), ReplaceText(b"b", b"b")],
        [splice((0, 1), (0, 1), b"")],
        [splice((0, 0), (0, 1), b"a")],
        [splice((0, 0), (0, 1), b""), splice((0, 1), (0, 1), b"a")],
        [],
    ],
)
def test_edits_must_change_something(edits):
    error = error_of(b"abc", *edits)

    assert (error.error_code, error.cause["why"]) == ("INVALID_INPUT_VALUE", "changes_nothing")


def test_an_empty_old_text_is_refused():
    assert error_of(b"abc", ReplaceText(b"", b"x")).error_code == "INVALID_INPUT_VALUE"


def test_several_matches_are_refused_with_all_their_lines():
    error = error_of(b"x\na\nx\nbx x\n", ReplaceText(b"x", b"y"))

    assert error.error_code == "PATCH_APPLY_FAILED"
    assert (error.cause["matches"], error.cause["lines"], error.cause["more"]) == (4, [0, 2, 3, 3], False)


def test_overlapping_matches_are_counted():
    error = error_of(b"aaa", ReplaceText(b"aa", b"b"))

    assert (error.cause["matches"], error.cause["lines"]) == (2, [0, 0])


def test_the_list_of_matches_is_bounded():
    error = error_of(b"x\n" * 5000, ReplaceText(b"x", b"y"))

    assert (len(error.cause["lines"]), error.cause["more"]) == (100, True)


FILE = b"import os\n\n\ndef first(one):\n    return one + 1\n\n\ndef second(two):\n    return two + 2\n"


@pytest.mark.parametrize(
    ("old", "near"),
    [
        (b"def second(two):\n    return two + 3\n", [7, 8]),
        (b"def second(two):\n\treturn two + 2\n", [7, 8]),
        (b"    def second(two):\n        return two + 2", [7, 8]),
        (b"def first(one):\n\n    return one + 1\n", [3, 4, 5]),
        (b"return one + 7", [4]),
        (b"imports os", [0]),
    ],
)
def test_a_text_without_match_is_refused_with_the_nearest_lines(old, near):
    error = error_of(FILE, ReplaceText(old, b"x"))

    assert error.error_code == "PATCH_APPLY_FAILED"
    assert (error.cause["matches"], error.cause["nearest_lines"]) == (0, near)
    assert error.evidence["found"][0]["line"] == near[0]
    assert error.evidence["found"][0]["text"] == [FILE.decode().split("\n")[line] for line in near]


def test_a_text_unlike_any_line_is_refused_without_nearest_lines():
    error = error_of(FILE, ReplaceText(b"zebra", b"x"))

    assert "nearest_lines" not in error.cause


def test_a_mismatch_of_line_endings_is_named():
    error = error_of(b"a b\r\nc d\r\n", ReplaceText(b"a b\nc d\n", b"x\n"))

    assert error.cause["why"] == "line_ending"
    assert error.cause["nearest_lines"] == [0, 1]


def test_content_is_in_the_evidence_and_never_in_the_cause():
    for before, old in ((b"secret one\n", b"secret two"), (b"secret secret", b"secret")):
        error = error_of(before, ReplaceText(old, b"x"))

        assert "secret" not in repr(error.cause)
        assert "secret" in repr(error.evidence["expected"])


@given(st.binary(max_size=40), st.data())
def test_a_replacement_equals_bytes_replace(before, data):
    start = data.draw(st.integers(0, len(before)))
    old = before[start : data.draw(st.integers(start, len(before)))]
    if old and before.find(old) == before.rfind(old):
        assert edit.apply(before, [ReplaceText(old, old + b"!")]).content == before.replace(old, old + b"!")


@given(st.text(max_size=40), st.data())
def test_an_insertion_at_a_position_equals_the_same_in_an_editor(text, data):
    at = data.draw(st.integers(0, len(text)))
    head = text[:at]
    position = (head.count("\n"), len(head) - head.rfind("\n") - 1)

    assert edit.apply(text.encode(), [splice(position, position, b"!")]).content == (head + "!" + text[at:]).encode()


@pytest.mark.parametrize(
    ("before", "old"),
    [
        (b"some words on a line\n" * 50_000, b"other words on a line\nthere"),
        (b"x\n" * 500_000, b"x\ny\n" * 5_000),
        (b"x" * 1_000_000, b"y" + b"x" * 1000),
        (b"a b " * 250_000, b"a c b"),
        (b"a" * 1_000_000, b"a" * 500_000),
        (bytes(range(256)) * 4_000, b"\xff\xfe"),
    ],
)
def test_a_refusal_on_a_megabyte_takes_less_than_three_seconds(before, old):
    begun = time.process_time()
    error = error_of(before, ReplaceText(old, b"x"))

    assert error.error_code == "PATCH_APPLY_FAILED"
    assert time.process_time() - begun < 3
