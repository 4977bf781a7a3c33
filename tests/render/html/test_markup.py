import html
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.render.html.markup import Html, escape, escape_plain, script_data, tag

ANY_TEXT = st.text(st.characters(), max_size=80)
HIDDEN = "a\u202eb\u200bc\x1bd\udcffe\x00f\rg\ufeffh\u2028i"


@given(ANY_TEXT)
def test_escaped_text_makes_no_element_and_no_attribute(text):
    without_names = re.sub(r'<span class="ctl">(U\+[0-9A-F]{4,6}|\\x[0-9a-f]{2})</span>', "", escape(text))

    assert not set(without_names) & set("<>\"'")


@given(st.text(st.characters(codec="ascii", min_codepoint=32, max_codepoint=126)))
def test_plain_text_reads_back_as_it_was(text):
    assert html.unescape(escape(text)) == text


def test_characters_that_hide_reorder_or_control_are_shown_by_their_code_points():
    shown = escape(HIDDEN)

    assert re.findall(r"(?<=ctl\">)[^<]+", shown) == [
        "U+202E",
        "U+200B",
        "U+001B",
        "\\xff",
        "U+0000",
        "U+000D",
        "U+FEFF",
        "U+2028",
    ]
    assert re.sub(r"<[^>]*>|U\+\w{4}|\\xff", "", shown) == "abcdefghi"


def test_text_for_attributes_and_titles_holds_no_element():
    attribute = tag("a", {"title": '"><script>' + HIDDEN})

    assert attribute.count("<") == 2
    assert "&quot;&gt;&lt;script&gt;" in attribute
    assert not set(escape_plain(HIDDEN)) & set("<>\u202e\u200b\x1b\x00\r\ufeff")


@pytest.mark.parametrize("name", ["style", "onclick", "ONCLICK", "a b", "x=y", "", "href>"])
def test_handlers_and_inline_styles_cannot_be_made(name):
    with pytest.raises(ValueError, match="cannot be the name"):
        tag("p", {name: "x"})


@pytest.mark.parametrize("name", ["style", "p onclick=x", "P", "p>"])
def test_elements_with_odd_names_cannot_be_made(name):
    with pytest.raises(ValueError, match="cannot be the name"):
        tag(name, {})


def test_an_attribute_without_a_value_is_left_out():
    assert tag("td", {"class": None, "colspan": 5}, Html("x")) == '<td colspan="5">x</td>'


@given(
    st.recursive(st.none() | ANY_TEXT, lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner), max_leaves=8)
)
def test_data_for_the_script_reads_back_and_cannot_end_its_element(value):
    element = script_data("data", value)
    content = element.removeprefix('<script id="data" type="application/json">').removesuffix("</script>")

    assert json.loads(content) == json.loads(json.dumps(value))
    assert content.isascii()
    assert not set(content) & set("<>&")
