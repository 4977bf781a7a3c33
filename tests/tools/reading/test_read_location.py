import hashlib

import pytest


def at(reader, path, line, character, **more):
    return reader.call(
        "read_location", uri=f"file://{reader.root}/{path}", position={"line": line, "character": character}, **more
    )


@pytest.mark.rows("S2-15")
def test_the_line_is_returned_with_the_hash_of_the_file(reader):
    reader.write("a", "zero\none\ntwo\n")

    assert at(reader, "a", 1, 2) == {
        "uri": f"file://{reader.root}/a",
        "path": "a",
        "position": {"line": 1, "character": 2},
        "lines": [{"line": 1, "text": "one"}],
        "hash": hashlib.sha256(b"zero\none\ntwo\n").hexdigest(),
        "summary": "Lines 1\u20131, counted from 0.",
    }


def test_context_lines_end_at_the_ends_of_the_file(reader):
    reader.write("a", "\n".join("abcdefgh"))

    lines = at(reader, "a", 1, 0, context_lines=3)["lines"]

    assert [(line["line"], line["text"]) for line in lines] == [(0, "a"), (1, "b"), (2, "c"), (3, "d"), (4, "e")]


def test_characters_are_code_points_and_the_end_of_a_line_is_a_position(reader):
    reader.write("a", "é\U0001f600x\n")

    assert at(reader, "a", 0, 3)["lines"][0]["text"] == "é\U0001f600x"
    with pytest.raises(Exception, match="INVALID_INPUT_VALUE"):
        at(reader, "a", 0, 4)


@pytest.mark.parametrize(("content", "line"), [("", 0), ("a\n", 1), ("a", 5)])
def test_a_line_number_past_the_end_is_refused(reader, content, line):
    reader.write("a", content)
    uri = f"file://{reader.root}/a"

    assert reader.code("read_location", uri=uri, position={"line": line, "character": 0}) == "INVALID_INPUT_VALUE"


def test_a_10_mb_line_is_truncated_around_the_position(reader):
    reader.write("a", "x" * 5_000_000 + "HERE" + "y" * 5_000_000 + "\nnext\n")

    answer = at(reader, "a", 0, 5_000_000, context_lines=1)

    text = answer["lines"][0]["text"]
    assert len(text) == 502
    assert text.startswith("…")
    assert text.endswith("…")
    assert "xHEREy" in text
    assert answer["lines"][1] == {"line": 1, "text": "next"}


def test_bytes_that_are_not_utf8_are_one_character_each(reader):
    reader.write("a", b"a\xff\xfeb\n")

    assert at(reader, "a", 0, 4)["lines"][0]["text"] == "a\ufffd\ufffdb"


@pytest.mark.parametrize(
    ("uri", "code"),
    [
        ("a.txt", "INVALID_INPUT_FORMAT"),
        ("https://example.org/a", "INVALID_INPUT_FORMAT"),
        ("file:///etc/passwd", "OUTSIDE_WORKSPACE"),
    ],
)
def test_a_uri_outside_the_workspace_is_refused(reader, uri, code):
    assert reader.code("read_location", uri=uri, position={"line": 0, "character": 0}) == code


def test_an_unreadable_file_is_refused(reader):
    reader.write(".env", "SECRET=1")
    uri = f"file://{reader.root}/.env"

    assert reader.code("read_location", uri=uri, position={"line": 0, "character": 0}) == "POLICY_VIOLATION"
