"""The envelope specification as tests: envelopes, tool input and output, canonical errors, the run log's events."""

import pytest

from kaiza.domain.canonical_error import CanonicalError

UNREGISTERED = "NOT_REAL"


@pytest.mark.rows("S3-17", "S3-18", "S3-20", "S3-22", "S3-24")
@pytest.mark.parametrize(
    ("code", "status"),
    [("INVALID_ENVELOPE", 400), ("INVALID_TOOL_INPUT", 422), ("TOOL_NOT_FOUND", 404), ("INTERNAL_ERROR", 500)],
)
def test_a_canonical_error_has_its_http_status(code, status):
    assert CanonicalError.to_http_status(code) == status


@pytest.mark.rows("S3-17", "S3-19", "S3-21", "S3-23", "S3-25")
@pytest.mark.parametrize(
    ("code", "error"),
    [
        ("INVALID_ENVELOPE", {"code": -32600, "message": "Invalid MCP envelope"}),
        ("INVALID_TOOL_INPUT", {"code": -32602, "message": "Invalid tool input"}),
        ("TOOL_NOT_FOUND", {"code": -32001, "message": "Unknown tool"}),
        ("INTERNAL_ERROR", {"code": -32603, "message": "Internal error"}),
    ],
)
def test_a_canonical_error_is_exactly_a_code_and_a_message(code, error):
    assert CanonicalError.to_jsonrpc_error(code) == error


@pytest.mark.rows("S3-26")
def test_an_unknown_code_has_no_http_status():
    with pytest.raises(KeyError):
        CanonicalError.to_http_status(UNREGISTERED)


@pytest.mark.rows("S3-27")
def test_an_unknown_code_has_no_json_rpc_error():
    with pytest.raises(KeyError):
        CanonicalError.to_jsonrpc_error(UNREGISTERED)
