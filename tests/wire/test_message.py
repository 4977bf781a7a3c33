import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import error_codes
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage, Notification, Request

GOOD = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}


def read(**changes):
    return message.parse(json.dumps({**GOOD, **changes}).encode())


def without(key):
    return message.parse(json.dumps({name: value for name, value in GOOD.items() if name != key}).encode())


@pytest.mark.parametrize("given_id", ["a", "", "1", 1, 0, -5, 1.5, 2**53 + 1])
def test_an_id_is_a_string_or_a_number_and_keeps_its_type(given_id):
    said = read(id=given_id)

    assert isinstance(said, Request)
    assert said.id == given_id
    assert type(said.id) is type(given_id)
    assert json.loads(message.result(said.id, b"{}"))["id"] == given_id
    assert type(json.loads(message.result(said.id, b"{}"))["id"]) is type(given_id)


@pytest.mark.parametrize("given_id", [None, True, False, {}, [], ["1"]])
def test_any_other_id_is_refused_and_not_echoed(given_id):
    said = read(id=given_id)

    assert isinstance(said, InvalidMessage)
    assert said[:2] == (None, "INVALID_ENVELOPE")


@pytest.mark.parametrize(
    "changes",
    [
        {"jsonrpc": "1.0"},
        {"jsonrpc": 2.0},
        {"jsonrpc": "2"},
        {"jsonrpc": None},
        {"jsonrpc": ["2.0"]},
        {"method": ""},
        {"method": 7},
        {"method": None},
        {"method": ["tools/list"]},
        {"params": []},
        {"params": None},
        {"params": "x"},
        {"params": 0},
        {"params": False},
    ],
)
def test_a_request_with_a_fault_is_refused_under_its_id(changes):
    said = read(**changes)

    assert isinstance(said, InvalidMessage)
    assert said[:2] == (7, "INVALID_ENVELOPE")


@pytest.mark.parametrize("key", ["jsonrpc", "method"])
def test_a_request_that_lacks_a_member_is_refused_under_its_id(key):
    said = without(key)

    assert isinstance(said, InvalidMessage)
    assert said[:2] == (7, "INVALID_ENVELOPE")


@pytest.mark.rows("S3-11")
def test_params_may_be_left_out_and_further_members_may_be_there():
    assert without("params") == Request(7, "tools/list", {})
    assert read(**{"x-extra": 1}) == Request(7, "tools/list", {})


@pytest.mark.parametrize("line", [b"[]", b"[1]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_a_batch_is_refused_whole(line):
    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


@pytest.mark.parametrize("line", [b"1", b'"a"', b"null", b"true", b"1.5"])
def test_a_value_that_is_no_object_is_refused(line):
    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


def test_a_line_that_is_not_strict_json_is_a_parse_error():
    assert message.parse(b"{")[:2] == (None, "PARSE_ERROR")
    assert message.parse(b'{"id":7,"id":7}')[:2] == (None, "PARSE_ERROR")


def test_only_notifications_may_go_without_an_id():
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

    assert message.parse(line) == Notification("notifications/initialized", {})
    assert without("id")[:2] == (None, "INVALID_ENVELOPE")


def test_a_notification_with_a_fault_is_refused():
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}'

    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


def test_an_answer_is_no_request():
    line = b'{"jsonrpc":"2.0","id":3,"result":{}}'

    assert message.parse(line)[:2] == (3, "INVALID_ENVELOPE")


def test_the_rows_known_before_the_registry_are_the_registrys():
    for error_code, (code, _) in message.PROTOCOL.items():
        assert error_codes.lookup(error_code).rpc == code


@pytest.mark.rows("S3-19")
def test_a_refusal_names_its_code_in_both_vocabularies():
    told = json.loads(message.rejection(InvalidMessage("a", "INVALID_ENVELOPE", "Why.")))

    assert told == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {
            "code": -32600,
            "message": "Invalid MCP envelope",
            "data": {"error_code": "INVALID_ENVELOPE", "reason": "Why."},
        },
    }


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_every_line_is_a_message_or_a_refusal(line):
    said = message.parse(line)

    assert isinstance(said, Request | Notification | InvalidMessage)
    if isinstance(said, InvalidMessage):
        assert message.rejection(said).count(b"\n") == 1
