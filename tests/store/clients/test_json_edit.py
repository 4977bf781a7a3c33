"""Edits of one value in a JSON text: that value changes, all other bytes stay."""

import copy
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kaiza.store.clients import json_edit, jsonc
from kaiza.store.clients.client import ConfigError

ENTRY = {"command": "/bin/kaiza", "args": ["serve", "--workspace", "/w"]}
KEY_PATH = ("mcpServers", "kaiza")

KEYS = st.sampled_from(["a", "mcpServers", "kaiza", "other", "ü", 'q"uote', ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["", "x", "// no comment", "/* nor */", "{", "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
BLANKS = st.sampled_from(["", "", " ", "\n", "\n  ", "\t", "\r\n    ", " // c,{\n", "/* } */", '\n// "k": 1\n\t'])


@st.composite
def spelled(draw, value):
    """A text of the value, with comments and white space anywhere."""
    gap = lambda: draw(BLANKS)  # noqa: E731  used often
    if isinstance(value, dict):
        parts = [
            gap() + json.dumps(key, ensure_ascii=draw(st.booleans())) + gap() + ":" + gap() + draw(spelled(member))
            for key, member in value.items()
        ]
        opening, closing = "{}"
    elif isinstance(value, list):
        parts = [gap() + draw(spelled(item)) for item in value]
        opening, closing = "[]"
    else:
        return json.dumps(value)
    trailing = "," + gap() if parts and draw(st.booleans()) else ""
    return opening + (gap() + ",").join(parts) + gap() + trailing + closing


@st.composite
def documents(draw):
    value = draw(st.dictionaries(KEYS, VALUES, max_size=4))
    if draw(st.booleans()):
        value["mcpServers"] = draw(st.dictionaries(KEYS, VALUES, max_size=3))
    return draw(BLANKS) + draw(spelled(value)) + draw(st.sampled_from(["", "\n", "\r\n", "  // end"])), value


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(char in rest for char in part)


@given(documents())
def test_comments_and_trailing_commas_are_parsed(document):
    text, value = document

    assert jsonc.parse(text).value == value


@given(documents())
def test_set_value_changes_nothing_else(document):
    text, value = document
    assume(isinstance(value.get("mcpServers", {}), dict))
    edited = json_edit.set_value(text, KEY_PATH, ENTRY)
    expected = copy.deepcopy(value)
    expected.setdefault("mcpServers", {})["kaiza"] = ENTRY

    assert jsonc.parse(edited).value == expected
    assert json_edit.set_value(edited, KEY_PATH, ENTRY) == edited
    if "kaiza" not in value.get("mcpServers", {}):
        assert is_subsequence(text, edited)


@given(documents())
def test_removing_an_inserted_entry_restores_the_value_and_keeps_comments(document):
    text, value = document
    assume(isinstance(value.get("mcpServers", {}), dict) and "kaiza" not in value.get("mcpServers", {}))
    edited = json_edit.remove_member(json_edit.set_value(text, KEY_PATH, ENTRY), KEY_PATH)

    assert jsonc.parse(json_edit.remove_empty(edited, KEY_PATH[:1], text)).value == value
    assert [word for word in ("// c,{", "/* } */", '// "k": 1') if text.count(word) != edited.count(word)] == []


@given(documents(), st.lists(st.sampled_from("abcxy"), max_size=3, unique=True))
def test_extend_list_adds_missing_items_and_shrink_list_removes_them_again(document, items):
    text, value = document
    assume(isinstance(value.get("mcpServers", {}), dict))
    before = value.get("mcpServers", {}).get("a", [])
    assume(isinstance(before, list))
    edited = json_edit.extend_list(text, ("mcpServers", "a"), items)
    extended = jsonc.parse(edited).value["mcpServers"]["a"]
    restored = json_edit.shrink_list(edited, ("mcpServers", "a"), [item for item in items if item not in before])

    assert extended == [*before, *(item for item in items if item not in before)]
    assert json_edit.extend_list(edited, ("mcpServers", "a"), items) == edited
    assert jsonc.parse(restored).value["mcpServers"]["a"] == before


FORMATTED = {
    "two blanks": '{\n  "mcpServers": {\n    "x": {\n      "url": "u"\n    }\n  }\n}\n',
    "tabs": '{\n\t"mcpServers": {\n\t\t"x": {\n\t\t\t"url": "u"\n\t\t}\n\t}\n}\n',
    "CRLF": '{\r\n  "mcpServers": {\r\n    "x": {\r\n      "url": "u"\r\n    }\r\n  }\r\n}\r\n',
    "no final newline": '{\n    "mcpServers": {\n        "x": {\n            "url": "u"\n        }\n    }\n}',
}


@pytest.mark.parametrize("text", FORMATTED.values(), ids=FORMATTED)
def test_an_entry_is_formatted_like_its_neighbours_and_removed_byte_for_byte(text):
    edited = json_edit.set_value(text, KEY_PATH, {"url": "v"})
    twin = text.replace('"x"', '"kaiza"').replace('"u"', '"v"')
    block = twin[twin.index('"kaiza"') : twin.index('"v"') + 3]

    assert block in edited
    assert json_edit.remove_member(edited, KEY_PATH) == text


def test_a_comment_after_the_last_member_stays_with_it():
    text = '{\n  "servers": {\n    "x": {} // mine\n  },\n}\n'
    edited = json_edit.set_value(text, ("servers", "kaiza"), {})

    assert '"x": {}, // mine\n    "kaiza": {}\n' in edited


def test_a_different_value_is_replaced_in_its_place():
    text = '{\n  "mcpServers": {\n    "kaiza": {"url": "old"}, // here\n    "z": 1\n  }\n}\n'
    edited = json_edit.set_value(text, KEY_PATH, {"url": "new"})

    assert edited == '{\n  "mcpServers": {\n    "kaiza": {\n      "url": "new"\n    }, // here\n    "z": 1\n  }\n}\n'


INVALID = {
    '{\n  "a": 1\n  "b": 2\n}': 3,
    '{\n  "a": nope\n}': 2,
    '{"a": 1}\nmore': 2,
    "{\n\n  a: 1}": 3,
    '{\n  "a" 1\n}': 2,
    "[\n  1,\n": 3,
    '{"a": "x\ny"}': 1,
    '{\n  "a": 1, /* open\n}': 2,
    "[" * 500: 1,
    '{"mcpServers": {},\n "mcpServers": {}}': 2,
    '{\n  "mcpServers": []}': 2,
    '{"a": 1,,}': 1,
    "{,}": 1,
    '{"a": "\\x"}': 1,
}


@pytest.mark.parametrize(("text", "line"), INVALID.items())
def test_invalid_or_ambiguous_json_is_refused_with_its_line(text, line):
    with pytest.raises(ConfigError) as error:
        json_edit.set_value(text, KEY_PATH, ENTRY)

    assert error.value.line == line


def test_a_byte_order_mark_is_preserved():
    edited = json_edit.set_value("\ufeff{}", KEY_PATH, ENTRY)

    assert edited.startswith("\ufeff{")
    assert json_edit.value_at(edited, KEY_PATH) == ENTRY
