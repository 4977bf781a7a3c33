import html
import re
from itertools import pairwise

import pytest
from review_samples import line

from kaiza.domain.review.diff import DiffHunk, ReviewDiff
from kaiza.render.html.files import render_diff
from kaiza.render.html.syntax import find_spans


def pieces(lines, spans):
    return [
        [(each.text[start:end], name) for start, end, name in found] for each, found in zip(lines, spans, strict=True)
    ]


def test_each_side_of_a_change_is_lexed_as_one_text():
    lines = [
        line("context", 1, 1, "def f():"),
        line("removed", 2, None, '    return "old', 9),
        line("added", None, 2, '    return """new', 9),
        line("added", None, 3, 'and more"""', 9),
    ]

    found = pieces(lines, find_spans("src/a.py", lines))

    assert ("def", "tk") in found[0]
    assert ("return", "tk") in found[1]
    assert "".join(text for text, name in found[3] if name == "ts") == 'and more"""'


@pytest.mark.parametrize("path", ["notes.txt", "Makefile", "a.unknown", ".py/readme"])
def test_a_file_of_no_known_language_has_no_tokens(path):
    lines = [line("added", None, 1, "def f(): return 1", 9)]

    assert find_spans(path, lines) == [[]]


def test_long_lines_and_long_hunks_are_not_lexed():
    assert find_spans("a.py", [line("added", None, 1, "x = 1" + " " * 500, 9)]) == [[]]
    many = [line("added", None, number, "x = " + "1" * 400, 9) for number in range(1, 200)]
    assert not any(find_spans("a.py", many))


def test_a_line_is_cut_where_a_token_or_a_different_word_begins_and_no_character_is_lost():
    text = 'x = "<b>" + f(12)'
    lines = (line("added", None, 1, text, 9, words=((6, 15),)),)
    table = render_diff("a.py", ReviewDiff((DiffHunk(0, 0, 1, 1, lines),), 1, 0))
    cell = table.rpartition("<td>")[2].partition("</td>")[0]

    assert html.unescape(re.sub(r"<[^>]*>", "", "".join(re.findall("<ins>(.*?)</ins>", cell)))) == text[6:15]
    assert "<b>" not in cell
    assert html.unescape(re.sub(r"<[^>]*>", "", cell)) == text


@pytest.mark.parametrize(
    "extension",
    [
        "py",
        "js",
        "ts",
        "c",
        "cpp",
        "sh",
        "yaml",
        "go",
        "java",
        "rb",
        "php",
        "swift",
        "css",
        "html",
        "json",
        "toml",
        "ini",
        "sql",
        "rs",
        "kt",
        "cs",
    ],
)
def test_tokens_of_every_language_stay_inside_their_lines(extension):
    texts = [
        "\t/* <a href='x'> */ \"x\\\" `y` ${z} \u202e",
        "",
        "\r",
        "''' \"\"\" <!-- --> #{",
        "0x1f 1e5 'c' end def fn let",
        "\udcff\x00",
    ]
    lines = [line("added", None, number, text, 9) for number, text in enumerate(texts, 1)]

    for each, spans in zip(lines, find_spans(f"a.{extension}", lines), strict=True):
        assert all(0 <= start < end <= len(each.text) for start, end, _name in spans)
        assert all(first[1] <= second[0] for first, second in pairwise(spans))
