import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kaiza.domain import error_codes
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage, Notification, Request

GOOD = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {}}


def parse(**changes):
    return message.parse(json.dumps({**GOOD, **changes}).encode())


def without(key):
    return message.parse(json.dumps({name: value for name, value in GOOD.items() if name != key}).encode())


@pytest.mark.parametrize("raw_id", ["a", " ", "1", 1, 0, -5, 1.5, 2**53 + 1])
def test_an_id_is_a_string_or_a_number_and_keeps_its_type(raw_id):
    parsed = parse(id=raw_id)

    assert isinstance(parsed, Request)
    assert parsed.id == raw_id
    assert type(parsed.id) is type(raw_id)
    assert json.loads(message.result(parsed.id, b"{}"))["id"] == raw_id
    assert type(json.loads(message.result(parsed.id, b"{}"))["id"]) is type(raw_id)


@pytest.mark.parametrize("raw_id", [None, True, False, {}, [], ["1"]])
def test_any_other_id_is_rejected_and_not_echoed(raw_id):
    parsed = parse(id=raw_id)

    assert isinstance(parsed, InvalidMessage)
    assert parsed[:2] == (None, "INVALID_ENVELOPE")


def test_an_empty_id_is_rejected_and_echoed():
    assert parse(id="")[:2] == ("", "INVALID_ENVELOPE")


@pytest.mark.parametrize("method", ["tools/describe", "server/info"])
def test_the_editors_own_methods_need_params(method):
    frame = {"jsonrpc": "2.0", "id": 7, "method": method}

    assert message.parse(json.dumps(frame).encode())[:2] == (7, "INVALID_ENVELOPE")
    assert isinstance(message.parse(json.dumps({**frame, "params": {}}).encode()), Request)


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
def test_an_invalid_request_is_rejected_under_its_id(changes):
    parsed = parse(**changes)

    assert isinstance(parsed, InvalidMessage)
    assert parsed[:2] == (7, "INVALID_ENVELOPE")


@pytest.mark.parametrize("key", ["jsonrpc", "method"])
def test_a_request_without_a_required_member_is_rejected_under_its_id(key):
    parsed = without(key)

    assert isinstance(parsed, InvalidMessage)
    assert parsed[:2] == (7, "INVALID_ENVELOPE")


@pytest.mark.rows("S3-11")
def test_params_are_optional_and_extra_members_are_allowed():
    assert without("params") == Request(7, "tools/list", {})
    assert parse(**{"x-extra": 1}) == Request(7, "tools/list", {})


@pytest.mark.parametrize("line", [b"[]", b"[1]", b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'])
def test_a_batch_is_rejected(line):
    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


@pytest.mark.parametrize("line", [b"1", b'"a"', b"null", b"true", b"1.5"])
def test_a_message_that_is_not_an_object_is_rejected(line):
    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


def test_a_line_that_is_not_strict_json_is_a_parse_error():
    assert message.parse(b"{")[:2] == (None, "PARSE_ERROR")
    assert message.parse(b'{"id":7,"id":7}')[:2] == (None, "PARSE_ERROR")
    assert message.parse(b'{"id":7,"x":1,"x":1}')[:2] == (7, "PARSE_ERROR")


def test_only_notifications_need_no_id():
    line = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'

    assert message.parse(line) == Notification("notifications/initialized", {})
    assert without("id")[:2] == (None, "INVALID_ENVELOPE")


def test_an_invalid_notification_is_rejected():
    line = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}'

    assert message.parse(line)[:2] == (None, "INVALID_ENVELOPE")


def test_a_response_is_rejected():
    line = b'{"jsonrpc":"2.0","id":3,"result":{}}'

    assert message.parse(line)[:2] == (3, "INVALID_ENVELOPE")


def test_protocol_codes_agree_with_the_table_of_error_codes():
    for error_code, row in message.PROTOCOL.items():
        code = error_codes.lookup(error_code)

        assert (row.rpc, row.error_type, row.http) == (code.rpc, code.error_type, code.http)


@pytest.mark.rows("S3-19")
def test_a_rejection_has_the_json_rpc_code_and_the_error_code():
    answer = json.loads(message.rejection(InvalidMessage("a", "INVALID_ENVELOPE", "Why.")))

    assert answer == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {
            "code": -32600,
            "message": "Invalid MCP envelope",
            "data": {
                "error_code": "INVALID_ENVELOPE",
                "errorType": "validation",
                "http_status": 400,
                "details": {"reason": "Why."},
            },
        },
    }


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode(errors="replace")))
def test_every_line_is_a_valid_or_an_invalid_message(line):
    parsed = message.parse(line)

    assert isinstance(parsed, Request | Notification | InvalidMessage)
    if isinstance(parsed, InvalidMessage):
        assert message.rejection(parsed).count(b"\n") == 1
