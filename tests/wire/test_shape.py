import pytest

from kaiza.wire.message import Request
from kaiza.wire.shape import find_call_fault, find_dialect, tool_name


def call(**params):
    return Request("a", "tools/call", params)


@pytest.mark.parametrize(
    ("request_", "dialect"),
    [
        (call(name="a"), "mcp"),
        (call(name="a", arguments={}), "mcp"),
        (call(name="a", input={}), "mcp"),
        (call(), "mcp"),
        (call(tool="a", arguments={}), "editor"),
        (call(tool="a"), "editor"),
        (call(tool="a", input={}), "canonical"),
        (call(tool="a", input={}, arguments={}), "canonical"),
        (Request(1, "tools/list", {}), "mcp"),
        (Request(1, "tools/list", {"cursor": "x"}), "mcp"),
        (Request(1, "tools/list", {"category": "files"}), "editor"),
        (Request(1, "tools/list", {"tier": None}), "editor"),
        (Request(1, "tools/describe", {"tool": "a"}), "editor"),
        (Request(1, "server/info", {}), "editor"),
        (Request(1, "server/discover", {}), "mcp"),
        (Request(1, "initialize", {"tool": "a"}), "mcp"),
        (Request(1, "nope", {"tool": "a"}), "mcp"),
    ],
)
def test_the_shape_of_a_request_selects_its_dialect(request_, dialect):
    assert find_dialect(request_) == dialect


@pytest.mark.rows("S4-10", "S4-11", "S4-31", "S3-13")
@pytest.mark.parametrize(
    ("params", "error_code"),
    [
        ({}, "INVALID_PARAMS"),
        ({"name": 5}, "INVALID_PARAMS"),
        ({"arguments": {}}, "INVALID_PARAMS"),
        ({"tool": "a", "name": "a", "arguments": {}}, "INVALID_PARAMS"),
        ({"tool": "a", "arguments": {}, "input": {}}, "INVALID_PARAMS"),
        ({"name": "a", "arguments": {}, "input": {}}, "INVALID_PARAMS"),
        ({"tool": 5, "arguments": {}}, "INVALID_PARAMS"),
        ({"tool": None, "input": {}}, "INVALID_PARAMS"),
        ({"tool": "a"}, "INVALID_PARAMS"),
        ({"tool": "a", "arguments": "x"}, "INVALID_PARAMS"),
        ({"tool": "a", "arguments": None}, "INVALID_PARAMS"),
        ({"tool": "a", "input": "x"}, "INVALID_TOOL_INPUT"),
        ({"tool": "a", "input": None}, "INVALID_TOOL_INPUT"),
        ({"tool": "a", "input": []}, "INVALID_TOOL_INPUT"),
    ],
)
def test_a_call_of_the_wrong_shape_names_no_tool(params, error_code):
    fault = find_call_fault(call(**params))

    assert (fault.id, fault.error_code) == ("a", error_code)


@pytest.mark.parametrize(
    "params",
    [
        {"name": "a"},
        {"name": "a", "arguments": 5},
        {"tool": "a", "arguments": {}},
        {"tool": "a", "input": {}},
        {"tool": "a", "input": {}, "other": 1},
    ],
)
def test_a_call_of_a_right_shape_has_no_fault(params):
    assert find_call_fault(call(**params)) is None


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({"tool": "a"}, "a"),
        ({"name": "b"}, "b"),
        ({"tool": "a", "name": "b"}, "a"),
        ({}, "unknown"),
        ({"name": 5}, "unknown"),
    ],
)
def test_a_call_without_a_name_is_recorded_as_unknown(params, name):
    assert tool_name(params) == name
