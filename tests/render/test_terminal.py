"""Text from files and agents cannot control the terminal, and fits its columns."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.render import terminal

ANYTHING = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("src/app.py", "src/app.py"),
        ("a\nb", "a\\nb"),
        ("a\rb\tc", "a\\rb\\tc"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("invoice\u202efdp.exe", "invoice\\u202efdp.exe"),
        ("a\u200bb\u2066c\ufeff", "a\\u200bb\\u2066c\\ufeff"),
        ("\u2028", "\\u2028"),
        ("a\u00a0b", "a\\xa0b"),
        ("\u3164", "\\u3164"),
        ("x\ufe0f", "x\\ufe0f"),
        ("\U000e0041", "\\U000e0041"),
        ("caf\udce9", "caf\\xe9"),
        ("\ud83d", "\\ud83d"),
        ("café 文件 naïve", "café 文件 naïve"),
    ],
)
def test_invisible_and_control_characters_are_escaped(raw, shown):
    assert terminal.escape(raw) == shown


@given(ANYTHING)
def test_escaped_text_has_only_printable_characters(text):
    shown = terminal.escape(text)

    assert shown.isprintable()
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in shown)
    assert shown.encode().decode() == shown


@given(st.recursive(ANYTHING.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)), st.lists))
def test_escaped_json_parses_to_the_same_value(value):
    line = json.dumps(value, ensure_ascii=False)
    shown = terminal.escape_json(line)

    assert shown.isprintable()
    assert json.loads(shown) == value


def test_wide_and_combining_characters_are_counted_in_columns():
    assert terminal.display_width("文件") == 4
    assert terminal.display_width("e\u0301") == 1
    assert list(terminal.wrap(["文件" * 6], 20)) == ["文件" * 5, "│ 文件"]


def test_colour_is_optional():
    assert terminal.paint("ok", "green", colour=True) == "\x1b[32mok\x1b[0m"
    assert terminal.paint("ok", "green", colour=False) == "ok"


@given(st.text(max_size=200), st.integers(0, 60))
def test_folded_text_fits_loses_nothing_and_marks_continued_lines(text, columns):
    text = terminal.escape(text)
    first, *rest = terminal.wrap([text], columns)

    assert all(terminal.display_width(line) <= max(columns, 20) for line in (first, *rest))
    assert all(line.startswith(terminal.QUOTE) for line in rest)
    assert first + "".join(line.removeprefix(terminal.QUOTE) for line in rest) == text


def test_text_is_folded_at_a_blank_unless_that_wastes_half_a_line():
    assert list(terminal.wrap(["twenty columns are here and more"], 20)) == ["twenty columns are ", "│ here and more"]
    assert list(terminal.wrap(["a " + "b" * 20], 20)) == ["a " + "b" * 18, "│ bb"]
    assert list(terminal.wrap(["a" * 30, ""], None)) == ["a" * 30, ""]


def test_a_word_that_fits_a_line_of_its_own_is_not_broken():
    assert list(terminal.wrap(["a " + "b" * 18 + "."], 20)) == ["a " + "b" * 18, "│ ."]
    assert list(terminal.wrap(["path: " + "b" * 18 + " c"], 20)) == ["path: ", "│ " + "b" * 18, "│  c"]


def test_sentences_are_wrapped_between_words_and_commands_are_not_broken():
    sentence = "Run `kaiza plan lint PLAN-1` first."

    assert list(terminal.wrap_words(sentence, 27)) == ["Run", "  `kaiza plan lint PLAN-1`", "  first."]
    assert list(terminal.wrap_words(sentence, 60)) == [sentence]
    assert list(terminal.wrap_words("    indented words here", 16)) == ["    indented", "  words here"]
