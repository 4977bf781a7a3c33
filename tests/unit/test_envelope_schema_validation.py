"""The envelope specification as tests: envelopes, tool input and output, canonical errors, the run log's events."""

import json
import time
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError
from runs import latest_run
from scenes import bind

from kaiza.domain.canonical_error import CanonicalError
from kaiza.server.pipeline import Exchange, Pipeline
from kaiza.server.run_logger import RunLogger
from kaiza.store.config.schema_registry import SchemaRegistry, find_directory

FIXTURES = Path(__file__).parent / "fixtures"
ENVELOPES = FIXTURES / "envelopes"
VALID, INVALID = (sorted(path.stem for path in ENVELOPES.glob(f"{verdict}_*.json")) for verdict in ("valid", "invalid"))
UNREGISTERED = "NOT_REAL"
VOLATILE = {"ts", "runId", "attemptId", "requestId", "traceId", "spanId", "durationMs", "logPath"}


def messages_of(tool):
    """Validators of a call of a tool and of its result, from the published template."""
    call = json.loads((find_directory() / "mcp" / "tool_io.schema.json").read_text().replace("{{tool_id}}", tool))
    return Draft202012Validator(call), Draft202012Validator({**call, "required": ["tool", "output"]})


def fixture(name):
    return json.loads((ENVELOPES / f"{name}.json").read_text())


@pytest.mark.rows("S3-1")
@pytest.mark.parametrize("name", ["envelope", "tool_io"])
def test_the_published_schemas_are_draft_2020_12(name):
    schema = json.loads((find_directory() / "mcp" / f"{name}.schema.json").read_text())

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(schema)


@pytest.mark.rows("S3-11", "S3-43")
@pytest.mark.parametrize("name", VALID)
def test_a_valid_envelope_is_accepted(name):
    SchemaRegistry().load_envelope().validate(fixture(name))


@pytest.mark.rows("S3-2", "S3-3", "S3-4", "S3-5", "S3-6", "S3-8", "S3-9", "S3-10", "S3-43")
@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_envelope_is_refused(name):
    with pytest.raises(ValidationError):
        SchemaRegistry().load_envelope().validate(fixture(name))


@pytest.mark.parametrize("member", ["id", "jsonrpc", "method", "params"])
@pytest.mark.parametrize("value", [None, True, 2, 2.5, [], "", "x"])
def test_a_member_of_another_type_or_value_is_refused(member, value):
    allowed = {("id", "x"), ("method", "x")}
    envelope = fixture("valid_minimal") | {member: value}
    faults = list(SchemaRegistry().load_envelope().iter_errors(envelope))

    assert bool(faults) is ((member, value if isinstance(value, str) else None) not in allowed)


def test_there_are_fixtures_of_both_kinds():
    assert len(VALID) >= 3
    assert len(INVALID) >= 15


@pytest.mark.rows("S3-12", "S3-13")
def test_a_call_names_the_requested_tool_and_has_an_object_as_input():
    call, _ = messages_of("read_file")

    call.validate({"tool": "read_file", "input": {"path": "a.txt"}})
    for wrong in (
        {"tool": "write_file", "input": {}},
        {"tool": "read_file", "input": "not-an-object"},
        {"tool": "read_file"},
        {"input": {}},
    ):
        with pytest.raises(ValidationError):
            call.validate(wrong)


@pytest.mark.rows("S3-12")
def test_a_tool_that_was_requested_by_its_alias_is_named_by_it():
    _, result = messages_of("context.resolve")

    result.validate({"tool": "context.resolve", "output": {}})
    with pytest.raises(ValidationError):
        result.validate({"tool": "context_resolve", "output": {}})


@pytest.mark.rows("S3-12", "S3-14")
def test_a_result_names_the_requested_tool_and_has_an_object_as_output():
    _, result = messages_of("read_file")

    result.validate({"tool": "read_file", "output": {}})
    for wrong in (
        {"tool": "write_file", "output": {}},
        {"tool": "read_file", "output": "not-an-object"},
        {"tool": "read_file", "output": []},
        {"output": {}},
        {"tool": "read_file", "input": {}},
    ):
        with pytest.raises(ValidationError):
            result.validate(wrong)


@pytest.mark.rows("S3-15")
def test_a_tools_validators_take_its_input_and_its_output():
    tool = SchemaRegistry().load_tool_io("read_file")

    tool.input.validate({"path": "a.txt"})
    for validator, wrong in (
        (tool.input, {"path": 1}),
        (tool.input, {"tool": "other", "input": {}}),
        (tool.output, {"output": "not-an-object"}),
    ):
        with pytest.raises(ValidationError):
            validator.validate(wrong)


@pytest.mark.parametrize("name", ["no_such_tool", "../catalog", "mcp.tool:other"])
def test_an_unknown_tool_is_a_key_error(name):
    with pytest.raises(KeyError):
        SchemaRegistry().load_tool_io(name)


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


def note_refusal(run_logger, transport, route):
    """Refuse a frame without a method as both transports do, and note it."""
    pipeline, line = Pipeline({}), (ENVELOPES / "invalid_missing_method.json").read_bytes().strip()
    parsed = pipeline.parse_line(line)
    answer = pipeline.next_action(parsed).answer
    run_logger.log_exchange(
        Exchange(parsed, len(line), time.monotonic(), transport=transport, route=route, line=line, answer=answer)
    )
    return json.loads(answer)["error"]


@pytest.mark.rows("S3-31", "S3-32", "S3-42")
def test_the_events_of_an_invalid_envelope_over_both_transports_are_the_golden_ones(workspace):
    run_logger = RunLogger([str(bind(workspace).resolve())], is_deterministic=True)
    refused = [note_refusal(run_logger, "http", "/rpc"), note_refusal(run_logger, "stdio", None)]
    golden = [json.loads(line) for line in (FIXTURES / "run_log.golden.jsonl").read_text().splitlines()]
    events = latest_run(workspace)

    assert [{name: event[name] for name in event if name not in VOLATILE} for event in events] == golden
    assert {event["transport"] for event in golden} == {"http", "stdio"}
    assert all(event.keys() == golden[0].keys() | VOLATILE - {"attemptId", "logPath"} for event in events)
    assert refused[0] == refused[1]
    assert (refused[0]["code"], refused[0]["message"]) == (-32600, "Invalid MCP envelope")
