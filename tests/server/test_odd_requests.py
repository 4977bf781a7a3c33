"""Requests that no decoder takes, or no tool: each is answered under its id, and a tool call is recorded."""

import json

import pytest
from context_caches import MINIMAL, write_cache
from exchange import Exchange
from scenes import records

from kaiza.domain.caps import Caps
from kaiza.wire import framing

DEEP = framing.MAX_DEPTH + 1
DIALECTS = {"mcp": ("name", "arguments"), "editor": ("tool", "arguments"), "canonical": ("tool", "input")}
ORDERS = {
    "id first": '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":%s}',
    "id last": '{"method":"tools/call","params":%s,"jsonrpc":"2.0","id":%s}',
}
WIDE = ["9223372036854775808", "-9223372036854775809", "9" * 5000, "1e400", "-1e400"]
LONE = [r'"\ud800"', r'"a\uDFFFb"', r'{"\ud800":1}', r'["\udc00\ud800"]']
LIMITS = {
    "depth": ("[" * DEEP + "]" * DEEP, "request_depth"),
    "deeper": ("[" * 5000 + "]" * 5000, "request_depth"),
    "objects": ('{"a":' * 5000 + "1" + "}" * 5000, "request_depth"),
    "values": ("[" + "1," * framing.MAX_VALUES + "1]", "request_values"),
    "lists": ("[" + "[]," * framing.MAX_VALUES + "1]", "request_values"),
    "bytes": ('"' + "x" * framing.MAX_LINE + '"', "request_bytes"),
    "escapes": ('"' + r"\"" * (framing.MAX_LINE // 2) + '"', "request_bytes"),
}
NOT_JSON = [
    '"\x01\n\t"',
    "NaN",
    "Infinity",
    "-Infinity",
    '{"a":1,"a":2}',
    '"\udcff"',
    '"\udced\udca0\udc80"',
    '{"":1,"":{}}',
]


@pytest.fixture
def door(begun):
    return Exchange(begun)


def line(order, request_id, dialect, value, tool='"read_file"'):
    name, arguments = DIALECTS[dialect]
    params = f'{{"{name}":{tool},"{arguments}":{{"path":"a.txt","start_line":{value}}}}}'
    filled = (request_id, params) if order == "id first" else (params, request_id)
    return (ORDERS[order] % filled).encode(errors="surrogateescape")


def find_envelope(answer):
    """The envelope of a refused call, in any dialect."""
    if "result" in answer:
        assert answer["result"]["isError"] is True
        return json.loads(answer["result"]["content"][0]["text"])
    return answer["error"]["data"]["details"]["envelope"]


def last_record(workspace):
    record = records(workspace)[-1]
    return record["tool_name"], record["error_code"]


@pytest.mark.rows("S4-17", "S4-42", "S4-43")
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("value", [*WIDE, *LONE])
def test_a_number_or_text_that_nothing_can_hold_is_an_invalid_argument_of_a_recorded_call(
    door, workspace, dialect, value
):
    answer = door.ask(line("id first", 7, dialect, value))
    envelope = find_envelope(answer)
    codes = {"mcp": None, "editor": -32002, "canonical": -32602}

    assert answer["id"] == 7
    assert answer.get("error", {}).get("code") == codes[dialect]
    assert envelope["cause"]["class"] == "INVALID_PARAMS"
    assert envelope["cause"]["faults"][0]["argument"].startswith("start_line")
    assert "must be" in envelope["human_message"]
    assert last_record(workspace) == ("read_file", envelope["error_code"])
    if value in WIDE:
        assert records(workspace)[-1]["arguments"]["start_line"]["length"] == len(value)


@pytest.mark.rows("S0-7", "S0-12", "S0-13")
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_context_tool_answers_wide_numbers_and_lone_surrogates_with_its_own_codes(door, workspace, dialect):
    write_cache(workspace, "docs", MINIMAL)
    name, arguments = DIALECTS[dialect]

    def code(query, budget):
        members = f'{{"cache":"docs","query":{query},"budget":{budget}}}'
        params = f'{{"{name}":"context_resolve","{arguments}":{members}}}'
        answer = door.ask((ORDERS["id first"] % (1, params)).encode())
        data = answer["error"]["data"]["details"] if "error" in answer else answer["result"]["content"][0]["text"]
        assert last_record(workspace)[0] == "context_resolve"
        return (data if isinstance(data, dict) else json.loads(data))["error"]["code"]

    assert {code('"q"', wide) for wide in WIDE} == {"invalid_budget"}
    assert {code(lone, 1) for lone in LONE} == {"invalid_query"}
    assert code(LIMITS["depth"][0], 1) == "invalid_query"


@pytest.mark.rows("S3-30", "S4-17")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("limit", LIMITS)
def test_a_call_beyond_a_limit_is_refused_under_its_id_and_recorded_without_arguments(
    door, workspace, limit, dialect, order
):
    value, cap = LIMITS[limit]
    answer = door.ask(line(order, '"one"', dialect, value))
    envelope = find_envelope(answer)

    assert answer["id"] == "one"
    assert (envelope["error_code"], envelope["cause"]["cap"]) == ("INVALID_TOOL_INPUT", cap)
    assert last_record(workspace) == ("read_file", "INVALID_TOOL_INPUT")
    assert records(workspace)[-1]["arguments"] == {}
    if cap == "request_bytes":
        assert str(Caps().written_bytes) in envelope["human_message"]
        assert envelope["cause"]["size"] > envelope["cause"]["limit"] == framing.MAX_LINE


@pytest.mark.rows("S3-30", "S4-17", "S4-28")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("value", NOT_JSON)
def test_a_call_that_is_no_strict_json_is_a_parse_error_under_its_id_and_recorded(door, workspace, value, order):
    answer = door.ask(line(order, 7, "mcp", value))

    assert (answer["id"], answer["error"]["code"]) == (7, -32700)
    assert last_record(workspace) == ("read_file", "PARSE_ERROR")


SPELLINGS = {
    "params": {'"params"': r'"par\u0061ms"'},
    "all of params": {'"params"': r'"\u0070\u0061\u0072\u0061\u006d\u0073"'},
    "other keys": {'"id"': r'"\u0069d"', '"method"': r'"m\u0065thod"', '"name"': r'"nam\u0065"'},
    "byte order mark": {"{": "\ufeff{"},
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("limit", ["depth", "values", "bytes", None])
def test_a_refused_call_with_escaped_keys_or_a_byte_order_mark_is_recorded(door, workspace, limit, spelling, order):
    text = line(order, 7, "mcp", LIMITS[limit][0] if limit else "NaN").decode()
    for old, new in SPELLINGS[spelling].items():
        text = text.replace(old, new, 1)
    answer = door.ask(text.encode())

    assert answer["id"] == 7
    assert last_record(workspace) == ("read_file", "INVALID_TOOL_INPUT" if limit else "PARSE_ERROR")


@pytest.mark.rows("S3-30", "S4-28")
@pytest.mark.parametrize("broken", ["}", '"x":1', "tru", '"a', '"\x01"', "[1,]", "01", "'a'", ""])
def test_of_a_line_that_breaks_off_the_id_before_the_break_is_used(door, workspace, broken):
    head = line("id first", 7, "mcp", "@@").partition(b"@@")[0] + broken.encode()

    assert door.ask(head)["id"] == 7
    assert last_record(workspace) == ("read_file", "PARSE_ERROR")
    if broken not in ('"x":1', '"a', '"\x01"', ""):
        after = door.ask(line("id last", 7, "mcp", broken))
        assert (after["id"], after["error"]["code"]) == (None, -32700)


@pytest.mark.rows("S4-4", "S4-17")
@pytest.mark.parametrize(
    "request_id",
    [*WIDE[:2], "9" * 400, *WIDE[3:], "1e2", "-0.5", r'"\ud800"', '"' + "i" * 3000 + '"', '"\\u0000"', "0"],
)
def test_any_number_or_text_is_an_id_and_is_returned(door, request_id):
    door.ask(line("id first", request_id, "mcp", "0"))
    returned = door.line.partition(b'"id":')[2]
    as_json = (
        request_id
        if request_id.strip("-")[:2] in ("92", "99", "1e") and request_id != "1e2"
        else json.dumps(json.loads(request_id))
    )

    assert returned.startswith(as_json.encode())
    assert door.ask(line("id last", request_id, "mcp", LIMITS["depth"][0]))
    assert door.line.partition(b'"id":')[2].startswith(returned[:20])


@pytest.mark.parametrize(
    "text",
    [
        '{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}',
        '{"jsonrpc":"2.0","method":"ping","params":{"id":7,"x":NaN}}',
        '{"jsonrpc":"2.0","id":NaN,"method":"ping"}',
        '{"jsonrpc":"2.0","id":[1],"method":"ping","params":{"x":NaN}}',
        '{"jsonrpc":"2.0","id":"\udcff","method":"ping"}',
        '{"jsonrpc":"2.0","id":"' + "x" * 5000 + '","method":"ping","params":{"x":NaN}}',
        '[{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}]',
        '"\\"id\\":1,',
        '{"jsonrpc":"2.0","id":12',
    ],
)
def test_an_id_that_cannot_be_read_without_doubt_is_null(door, workspace, text):
    before = len(records(workspace))
    answer = door.ask(text.encode(errors="surrogateescape"))

    assert (answer["id"], answer["error"]["code"]) == (None, -32700)
    assert len(records(workspace)) == before


@pytest.mark.parametrize("method", ["tools/list", "ping", "initialize", "server/info", "tools/describe", "nope"])
def test_any_other_request_beyond_a_limit_is_refused_under_its_id(door, method):
    for value, cap in LIMITS.values():
        answer = door.ask(f'{{"jsonrpc":"2.0","method":"{method}","params":{{"tool":{value}}},"id":3}}'.encode())

        assert (answer["id"], answer["error"]["code"]) == (3, -32600 if cap == "request_bytes" else -32700)
        assert answer["error"]["data"]["details"]["cap"] == cap


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("tool", [r'"\ud800"', '""', '"\\u0000"', '"' + "t" * 5000 + '"', '"nope"'])
def test_a_call_of_a_tool_with_an_odd_name_is_answered_and_recorded(door, workspace, dialect, tool):
    before = len(records(workspace))
    answer = door.ask(line("id first", 7, dialect, "0", tool))

    assert answer["id"] == 7
    assert len(records(workspace)) == before + 1
    assert records(workspace)[-1]["error_code"] == "TOOL_NOT_FOUND"


def test_odd_members_beside_the_arguments_do_not_keep_a_call_from_its_answer(door, workspace):
    for member in (
        '"\\ud800":1',
        '"x":1e400',
        '"_meta":{"progressToken":9223372036854775808}',
        '"_meta":{"a":"\\ud800"}',
    ):
        text = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"server_info",{member}}}}}'

        assert door.ask(text.encode())["result"]["isError"] is False
    for argument in ('"phase_id":"\\ud800"', '"session_id":"\\ud800"', '"plan_hash":1e400', '"\\ud800":1'):
        params = f'{{"name":"read_file","arguments":{{{argument}}}}}'
        text = ORDERS["id first"] % (7, params)

        assert find_envelope(door.ask(text.encode()))["cause"]["class"] == "INVALID_PARAMS"
        assert last_record(workspace)[0] == "read_file"


@pytest.mark.rows("S3-30", "S4-17")
@pytest.mark.parametrize("member", ['"x":"a\tb"', '"_meta":{"x":"a\tb"}', '"_meta":{"progressToken":"\x00"}'])
def test_a_control_character_in_a_member_of_params_hides_neither_id_nor_call(door, workspace, member):
    params = f'{{{member},"name":"read_file","arguments":{{"path":"a.txt"}}}}'
    answer = door.ask((ORDERS["id first"] % (7, params)).encode())

    assert (answer["id"], answer["error"]["code"]) == (7, -32700)
    assert last_record(workspace) == ("read_file", "PARSE_ERROR")
