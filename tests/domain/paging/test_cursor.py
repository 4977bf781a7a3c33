import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import errors
from kaiza.domain.paging import cursor

KEYS = st.tuples(st.text(st.characters()), st.integers(-(2**53), 2**53))


def refused(text, name="list", arguments=None, shape=(str, int)):
    with pytest.raises(errors.SystemError) as caught:
        cursor.decode(text, name, arguments or {}, shape)
    return caught.value.error_code


@given(key=KEYS, path=st.text())
def test_a_cursor_carries_its_key_back_to_its_request(key, path):
    told = cursor.encode("list", {"path": path}, key)

    assert cursor.decode(told, "list", {"path": path}, (str, int)) == key
    assert told.isascii()


@given(name=st.text(st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF)))
def test_a_name_that_is_not_utf8_can_be_a_key(name):
    assert cursor.decode(cursor.encode("list", {}, (name,)), "list", {}, (str,)) == (name,)


def test_page_size_session_and_the_cursor_itself_do_not_bind():
    told = cursor.encode("list", {"path": "a", "pageSize": 3, "session_id": "one"}, ("a", 1))
    asked = {"path": "a", "pageSize": 9, "session_id": "two", "cursor": told}

    assert cursor.decode(told, "list", asked, (str, int)) == ("a", 1)


def test_another_tool_another_argument_and_another_shape_are_refused():
    told = cursor.encode("list", {"path": "a"}, ("a", 1))

    assert refused(told, "find", {"path": "a"}) == "CURSOR_INVALID"
    assert refused(told, "list", {"path": "b"}) == "CURSOR_INVALID"
    assert refused(told, "list", {"path": "a", "more": True}) == "CURSOR_INVALID"
    assert refused(told, "list", {"path": "a"}, (str,)) == "CURSOR_INVALID"
    assert refused(told, "list", {"path": "a"}, (str, bool)) == "CURSOR_INVALID"


@given(text=st.text() | st.binary(max_size=60).map(lambda raw: base64.urlsafe_b64encode(raw).decode()))
def test_garbage_is_refused(text):
    assert refused(text) == "CURSOR_INVALID"


@given(at=st.integers(0, 40), key=KEYS)
def test_a_changed_cursor_is_refused(at, key):
    raw = bytearray(base64.urlsafe_b64decode(cursor.encode("list", {}, key) + "=="))
    raw[at % len(raw)] ^= 1

    assert refused(base64.urlsafe_b64encode(raw).decode()) == "CURSOR_INVALID"
