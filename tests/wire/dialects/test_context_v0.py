"""Errors and results of the context tools, in every dialect."""

import json

import jsonschema
import orjson
import pytest

from kaiza.domain import error_codes
from kaiza.domain.call import Outcome, Receipt
from kaiza.store.config.schema_registry import find_directory
from kaiza.wire.dialect import ServerDescription
from kaiza.wire.dialects.canonical import CanonicalDialect
from kaiza.wire.dialects.context_v0 import CONTEXT_TOOLS, MESSAGES, to_v0_error
from kaiza.wire.dialects.editor import EditorDialect
from kaiza.wire.dialects.mcp import McpDialect

DESCRIPTION = ServerDescription("1", "", list)
DIALECTS = {
    "mcp": (McpDialect(DESCRIPTION), False),
    "modern": (McpDialect(DESCRIPTION), True),
    "summary": (McpDialect(DESCRIPTION, summary=True), False),
    "editor": (EditorDialect(DESCRIPTION), "context.resolve"),
    "canonical": (CanonicalDialect(), "context.resolve"),
}
OUTPUT = {"documents": [], "selection": {"query": "é", "budget": 0}}
SCHEMA = json.loads((find_directory() / "mcp" / "error-v0.json").read_text())


def failed(error_code, tool="context_resolve"):
    envelope = {"error_code": error_code, "human_message": "m", "cause": {"path": "secret"}, "timestamp": "now"}
    return Outcome(tool, envelope=envelope, code=error_codes.lookup(error_code), receipt=Receipt(1, "ab" * 32))


def encoded(dialect, outcome):
    encoder, form = DIALECTS[dialect]
    return json.loads(encoder.encode(1, outcome, form))


@pytest.mark.rows("S0-3", "S0-5", "S0-6", "S0-7", "S0-8", "S0-9", "S0-23", "S0-28", "S0-29", "S0-30")
@pytest.mark.parametrize("error_code", sorted(error_codes.SYSTEM_ERROR_CODES))
def test_every_failure_is_one_of_six_closed_errors(error_code):
    error = to_v0_error(failed(error_code))

    jsonschema.validate(error, SCHEMA)
    assert error == {"error": {"code": error["error"]["code"], "message": MESSAGES[error["error"]["code"]]}}


@pytest.mark.rows("S0-15")
def test_a_code_without_a_v0_code_is_an_internal_error():
    assert to_v0_error(failed("ROLE_MISMATCH"))["error"]["code"] == "internal_error"
    assert to_v0_error(failed("INVALID_INPUT_TYPE"))["error"]["code"] == "internal_error"


@pytest.mark.rows("S0-31")
@pytest.mark.parametrize("tool", sorted(CONTEXT_TOOLS))
@pytest.mark.parametrize("dialect", ["mcp", "modern", "summary"])
def test_over_mcp_the_error_is_the_only_text(dialect, tool):
    outcome = failed("CONTEXT_CACHE_MISSING", tool)
    result = encoded(dialect, outcome)["result"]

    assert result["content"] == [
        {"type": "text", "text": '{"error":{"code":"cache_missing","message":"Cache does not exist"}}'}
    ]
    assert result["isError"] is True
    assert "kaiza/receipt" not in result.get("_meta", {})
    assert "structuredContent" not in result


@pytest.mark.parametrize("dialect", ["editor", "canonical"])
def test_elsewhere_the_details_are_exactly_the_error(dialect):
    known = encoded(dialect, failed("CONTEXT_CACHE_INVALID"))["error"]
    unforeseen = encoded(dialect, failed("ROLE_MISMATCH"))["error"]

    assert known["data"]["details"] == {"error": {"code": "cache_invalid", "message": "Cache exists but is invalid"}}
    assert unforeseen["code"] == -32603
    assert unforeseen["data"]["details"] == {"error": {"code": "internal_error", "message": "Internal error"}}


def test_members_around_the_details_are_those_of_the_dialect():
    editor = encoded("editor", failed("CONTEXT_CACHE_MISSING"))["error"]
    canonical = encoded("canonical", failed("CONTEXT_CACHE_MISSING"))["error"]

    assert (editor["code"], editor["message"]) == (-32002, "Cache does not exist")
    assert (editor["data"]["tool"], editor["data"]["errorType"]) == ("context.resolve", "validation")
    assert editor["data"].keys() == {"tool", "errorType", "details"}
    assert (canonical["code"], canonical["message"]) == (-32602, "Cache does not exist")
    assert (canonical["data"]["error_code"], canonical["data"]["http_status"]) == ("CONTEXT_CACHE_MISSING", 404)
    assert canonical["data"].keys() == {"canonical", "error_code", "http_status", "details"}


@pytest.mark.parametrize("dialect", ["mcp", "modern", "summary"])
def test_over_mcp_a_result_is_exactly_the_document_and_a_newline(dialect):
    result = encoded(dialect, Outcome("context_resolve", output=OUTPUT, receipt=Receipt(1, "ab" * 32)))["result"]

    assert result["content"] == [{"type": "text", "text": orjson.dumps(OUTPUT).decode() + "\n"}]
    assert result["structuredContent"] == OUTPUT
    assert "kaiza/receipt" not in result.get("_meta", {})


@pytest.mark.parametrize("dialect", ["editor", "canonical"])
def test_elsewhere_a_result_has_the_tool_as_it_was_requested(dialect):
    answer = encoded(dialect, Outcome("context_resolve", output=OUTPUT))

    assert answer["result"] == {"tool": "context.resolve", "output": OUTPUT}


def test_other_tools_keep_their_receipt_and_envelope():
    result = encoded("mcp", failed("FILE_NOT_FOUND", "read_file"))["result"]

    assert json.loads(result["content"][0]["text"])["error_code"] == "FILE_NOT_FOUND"
    assert result["_meta"]["kaiza/receipt"]["seq"] == 1


def test_diagnostics_go_into_meta_or_beside_the_output():
    outcome = Outcome("project_info", output={}, diagnostics=("Scan stopped.",))

    assert encoded("mcp", outcome)["result"]["_meta"]["kaiza/diagnostics"] == ["Scan stopped."]
    assert encoded("editor", outcome)["result"]["diagnostics"] == ["Scan stopped."]
    assert encoded("canonical", outcome)["result"].keys() == {"tool", "output"}
