import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import errors
from kaiza.domain.paging import cursor

KEYS = st.tuples(st.text(st.characters()), st.integers(-(2**53), 2**53))


def error_code_of(text, name="list", arguments=None, shape=(str, int)):
    with pytest.raises(errors.SystemError) as caught:
        cursor.decode(text, name, arguments or {}, shape)
    return caught.value.error_code


@given(key=KEYS, path=st.text())
def test_a_cursor_returns_its_key_for_the_same_request(key, path):
    encoded = cursor.encode("list", {"path": path}, key)

    assert cursor.decode(encoded, "list", {"path": path}, (str, int)) == key
    assert encoded.isascii()


@given(name=st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)))
def test_a_name_that_is_not_utf8_can_be_a_key(name):
    assert cursor.decode(cursor.encode("list", {}, (name,)), "list", {}, (str,)) == (name,)


def test_a_cursor_is_valid_with_another_page_size_or_session():
    encoded = cursor.encode("list", {"path": "a", "pageSize": 3, "session_id": "one"}, ("a", 1))
    arguments = {"path": "a", "pageSize": 9, "session_id": "two", "cursor": encoded}

    assert cursor.decode(encoded, "list", arguments, (str, int)) == ("a", 1)


def test_a_cursor_of_another_tool_argument_or_key_type_is_refused():
    encoded = cursor.encode("list", {"path": "a"}, ("a", 1))

    assert error_code_of(encoded, "find", {"path": "a"}) == "CURSOR_INVALID"
    assert error_code_of(encoded, "list", {"path": "b"}) == "CURSOR_INVALID"
    assert error_code_of(encoded, "list", {"path": "a", "more": True}) == "CURSOR_INVALID"
    assert error_code_of(encoded, "list", {"path": "a"}, (str,)) == "CURSOR_INVALID"
    assert error_code_of(encoded, "list", {"path": "a"}, (str, bool)) == "CURSOR_INVALID"


@given(text=st.text() | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_a_random_string_is_refused_as_a_cursor(text):
    assert error_code_of(text) == "CURSOR_INVALID"


@given(at=st.integers(0, 40), key=KEYS)
def test_a_changed_cursor_is_refused(at, key):
    raw = bytearray(base64.urlsafe_b64decode(cursor.encode("list", {}, key) + "=="))
    raw[at % len(raw)] ^= 1

    assert error_code_of(base64.urlsafe_b64encode(raw).decode()) == "CURSOR_INVALID"
