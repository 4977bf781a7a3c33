"""Nothing that a file name holds can steer a terminal, and text keeps to its columns."""

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
def test_what_is_invisible_or_steers_a_terminal_is_written_out(raw, shown):
    assert terminal.escape(raw) == shown


@given(ANYTHING)
def test_escaped_text_holds_only_characters_that_show(text):
    shown = terminal.escape(text)

    assert shown.isprintable()
    assert not any(unicodedata.category(char) in {"Cc", "Cf", "Cs"} for char in shown)
    assert shown.encode().decode() == shown


@given(st.recursive(ANYTHING.filter(lambda text: not any("\ud800" <= c <= "\udfff" for c in text)), st.lists))
def test_json_shown_on_a_terminal_still_means_the_same(value):
    line = json.dumps(value, ensure_ascii=False)
    shown = terminal.escape_json(line)

    assert shown.isprintable()
    assert json.loads(shown) == value


@given(st.text(), st.integers(0, 40), st.sampled_from(["start", "end"]))
def test_cut_text_keeps_to_its_columns_and_to_its_end(text, columns, keep):
    text = terminal.escape(text)
    cut = terminal.truncate(text, columns, keep)

    assert terminal.display_width(cut) <= columns
    if cut != text and columns:
        assert cut.strip("…") in text
        assert cut.endswith("…") if keep == "start" else cut.startswith("…")


def test_wide_and_combining_characters_are_counted_as_a_terminal_counts_them():
    assert terminal.display_width("文件") == 4
    assert terminal.display_width("e\u0301") == 1
    assert terminal.truncate("文件文件", 5) == "文件…"


def test_colour_is_only_there_where_it_is_wanted():
    assert terminal.paint("ok", "green", colour=True) == "\x1b[32mok\x1b[0m"
    assert terminal.paint("ok", "green", colour=False) == "ok"


@given(st.text(max_size=200), st.integers(0, 60))
def test_folded_text_keeps_to_its_columns_loses_nothing_and_is_marked_where_it_goes_on(text, columns):
    text = terminal.escape(text)
    first, *rest = terminal.wrap([text], columns)

    assert all(terminal.display_width(line) <= max(columns, 20) for line in (first, *rest))
    assert all(line.startswith(terminal.QUOTE) for line in rest)
    assert first + "".join(line.removeprefix(terminal.QUOTE) for line in rest) == text


def test_text_is_folded_behind_a_blank_unless_that_wastes_half_a_line():
    assert list(terminal.wrap(["twenty columns are here and more"], 20)) == ["twenty columns are ", "│ here and more"]
    assert list(terminal.wrap(["a " + "b" * 20], 20)) == ["a " + "b" * 18, "│ bb"]
    assert list(terminal.wrap(["a" * 30, ""], None)) == ["a" * 30, ""]
