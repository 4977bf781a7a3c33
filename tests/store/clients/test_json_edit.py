"""Editing a JSON text in one place: what is meant changes, every other byte stays."""

import copy
import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kaiza.store.clients import json_edit, jsonc
from kaiza.store.clients.errors import ConfigError

ENTRY = {"command": "/bin/kaiza", "args": ["serve", "--workspace", "/w"]}
PLACE = ("mcpServers", "kaiza")

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
def spelled(draw, value, depth=0):
    """A text of the value, as odd as JSON with comments allows."""
    gap = lambda: draw(BLANKS)  # noqa: E731  said often
    if isinstance(value, dict):
        parts = [
            gap() + json.dumps(key, ensure_ascii=draw(st.booleans())) + gap() + ":" + gap() + draw(spelled(one))
            for key, one in value.items()
        ]
        opening, closing = "{}"
    elif isinstance(value, list):
        parts = [gap() + draw(spelled(one)) for one in value]
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


def subsequence(part, whole):
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
    done = json_edit.set_value(text, PLACE, ENTRY)
    expected = copy.deepcopy(value)
    expected.setdefault("mcpServers", {})["kaiza"] = ENTRY

    assert jsonc.parse(done).value == expected
    assert json_edit.set_value(done, PLACE, ENTRY) == done
    if "kaiza" not in value.get("mcpServers", {}):
        assert subsequence(text, done)


@given(documents())
def test_removing_an_inserted_entry_restores_the_value_and_keeps_comments(document):
    text, value = document
    assume(isinstance(value.get("mcpServers", {}), dict) and "kaiza" not in value.get("mcpServers", {}))
    done = json_edit.remove_member(json_edit.set_value(text, PLACE, ENTRY), PLACE)

    assert jsonc.parse(json_edit.remove_empty(done, PLACE[:1], text)).value == value
    assert [word for word in ("// c,{", "/* } */", '// "k": 1') if text.count(word) != done.count(word)] == []


@given(documents(), st.lists(st.sampled_from("abcxy"), max_size=3, unique=True))
def test_extend_list_adds_missing_items_and_shrink_list_removes_them_again(document, items):
    text, value = document
    assume(isinstance(value.get("mcpServers", {}), dict))
    before = value.get("mcpServers", {}).get("a", [])
    assume(isinstance(before, list))
    done = json_edit.extend_list(text, ("mcpServers", "a"), items)
    there = jsonc.parse(done).value["mcpServers"]["a"]
    back = json_edit.shrink_list(done, ("mcpServers", "a"), [item for item in items if item not in before])

    assert there == [*before, *(item for item in items if item not in before)]
    assert json_edit.extend_list(done, ("mcpServers", "a"), items) == done
    assert jsonc.parse(back).value["mcpServers"]["a"] == before


TIDY = {
    "two blanks": '{\n  "mcpServers": {\n    "x": {\n      "url": "u"\n    }\n  }\n}\n',
    "tabs": '{\n\t"mcpServers": {\n\t\t"x": {\n\t\t\t"url": "u"\n\t\t}\n\t}\n}\n',
    "CRLF": '{\r\n  "mcpServers": {\r\n    "x": {\r\n      "url": "u"\r\n    }\r\n  }\r\n}\r\n',
    "no final newline": '{\n    "mcpServers": {\n        "x": {\n            "url": "u"\n        }\n    }\n}',
}


@pytest.mark.parametrize("text", TIDY.values(), ids=TIDY)
def test_an_entry_is_formatted_like_its_neighbours_and_removed_byte_for_byte(text):
    done = json_edit.set_value(text, PLACE, {"url": "v"})
    twin = text.replace('"x"', '"kaiza"').replace('"u"', '"v"')
    block = twin[twin.index('"kaiza"') : twin.index('"v"') + 3]

    assert block in done
    assert json_edit.remove_member(done, PLACE) == text


def test_a_comment_after_the_last_member_stays_with_it():
    text = '{\n  "servers": {\n    "x": {} // mine\n  },\n}\n'
    done = json_edit.set_value(text, ("servers", "kaiza"), {})

    assert '"x": {}, // mine\n    "kaiza": {}\n' in done


def test_an_equal_value_keeps_its_spelling():
    text = '{"mcpServers":{"kaiza":{"args":["a"]  ,"command":"c"}}}'

    assert json_edit.set_value(text, PLACE, {"command": "c", "args": ["a"]}) == text


def test_a_different_value_is_replaced_in_its_place():
    text = '{\n  "mcpServers": {\n    "kaiza": {"url": "old"}, // here\n    "z": 1\n  }\n}\n'
    done = json_edit.set_value(text, PLACE, {"url": "new"})

    assert done == '{\n  "mcpServers": {\n    "kaiza": {\n      "url": "new"\n    }, // here\n    "z": 1\n  }\n}\n'


FAULTY = {
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


@pytest.mark.parametrize(("text", "line"), FAULTY.items())
def test_invalid_or_ambiguous_json_is_refused_with_its_line(text, line):
    with pytest.raises(ConfigError) as refused:
        json_edit.set_value(text, PLACE, ENTRY)

    assert refused.value.line == line


def test_a_byte_order_mark_is_preserved():
    done = json_edit.set_value("\ufeff{}", PLACE, ENTRY)

    assert done.startswith("\ufeff{")
    assert json_edit.value_at(done, PLACE) == ENTRY


def test_an_edit_with_any_other_effect_is_refused():
    with pytest.raises(ConfigError):
        json_edit._verify_edit('{"a": 1}', '{"a": 2, "b": 3}', ("b",), lambda _: 3)
