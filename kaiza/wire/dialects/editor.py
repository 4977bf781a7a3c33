"""Editor dialect: `tools/call {tool, arguments}`, filtered `tools/list`, `tools/describe` and `server/info`."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Final

import orjson

from kaiza.domain.argument_faults import describe_fault
from kaiza.domain.call import Outcome
from kaiza.domain.error_codes import ErrorCode, lookup
from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Decoded, ServerDescription, ToolCall, ToolCatalog
from kaiza.wire.dialects.context_v0 import find_code, is_context_call, to_v0_error
from kaiza.wire.message import InvalidMessage, Request, RequestId
from kaiza.wire.shape import to_unicode, tool_name

_UNKNOWN_TOOL: Final = "TOOL_NOT_FOUND"
_INTERNAL_ERROR: Final = -32603
_MAX_ECHO: Final = 200
# Names of the lists in `details`, by the code of the fault.
_FAULT_LISTS: Final[Mapping[str, str]] = {
    "MISSING_REQUIRED_FIELD": "missingParameters",
    "INVALID_INPUT_TYPE": "typeMismatches",
}


class EditorDialect:
    """Decodes editor requests and encodes their answers. A call's reply form is the tool as it was requested."""

    def __init__(self, description: ServerDescription) -> None:
        self._description = description

    @cached_property
    def _catalog(self) -> ToolCatalog:
        assert self._description.catalog is not None  # noqa: S101  every server that is started has one
        return self._description.catalog()

    def decode(self, request: Request, conversation: Conversation) -> Decoded:
        """Answer the request, or return the tool call that it requests."""
        if request.method == "tools/call":
            requested, arguments = tool_name(request.params), request.params.get("arguments")
            call = ToolCall(requested, arguments, conversation.client, conversation.initialized, requested)
            return Decoded(conversation, call=call)
        if request.method == "tools/list":
            return Decoded(conversation, self._list_tools(request))
        if request.method == "tools/describe":
            return Decoded(conversation, self._describe_tool(request))
        return Decoded(conversation, message.result(request.id, orjson.dumps(self._catalog.describe_server())))

    def encode(self, request_id: RequestId, outcome: Outcome, reply_form: object) -> bytes:
        """Line that answers a tool call."""
        if outcome.output is None:
            return encode_error(request_id, outcome, str(reply_form))
        result: dict[str, Any] = {"tool": reply_form, "output": outcome.output}
        if outcome.diagnostics:
            result["diagnostics"] = outcome.diagnostics
        return message.result(request_id, orjson.dumps(result))

    def _list_tools(self, request: Request) -> bytes:
        category, tier = request.params.get("category"), request.params.get("tier")
        if not isinstance(category, str | None) or not isinstance(tier, str | None):
            return _invalid_params(request, "category and tier must be strings.")
        tools = list(self._catalog.list_tools(category, tier))
        return message.result(request.id, orjson.dumps({"tools": tools}))

    def _describe_tool(self, request: Request) -> bytes:
        requested = request.params.get("tool")
        if not isinstance(requested, str):
            return _invalid_params(request, "tools/describe needs tool, the tool's name as a string.")
        described = self._catalog.describe_tool(requested)
        if described is None:
            return encode_not_found(request.id, to_unicode(requested))
        return message.result(request.id, orjson.dumps({"tool": described}))


def _invalid_params(request: Request, reason: str) -> bytes:
    return message.rejection(InvalidMessage(request.id, "INVALID_PARAMS", reason))


def encode_error(request_id: RequestId, outcome: Outcome, requested: str) -> bytes:
    """Line that answers a failed tool call."""
    requested = requested[:_MAX_ECHO]  # an unknown tool may fail for another reason, and its name may be long
    code, envelope = outcome.code, outcome.envelope
    assert code is not None  # noqa: S101  an outcome without output has a code
    assert envelope is not None  # noqa: S101  and an envelope
    if is_context_call(outcome):
        code, error = find_code(outcome), to_v0_error(outcome)
        data: dict[str, Any] = {"tool": requested, "errorType": code.error_type, "details": error}
        return message.error(request_id, code.editor_code, error["error"]["message"], orjson.dumps(data))
    if code.name == _UNKNOWN_TOOL:
        return encode_not_found(request_id, requested)
    details = {**_describe_details(outcome, code, envelope, requested), "envelope": envelope}
    data = {"tool": requested, "errorType": code.error_type, "details": details}
    return message.error(request_id, code.editor_code, _describe_error(code, envelope), orjson.dumps(data))


def encode_not_found(request_id: RequestId, requested: str) -> bytes:
    """Line that answers a request for a tool which does not exist."""
    code = lookup(_UNKNOWN_TOOL)
    data = {"tool": requested[:_MAX_ECHO], "errorType": code.error_type, "details": {}}
    return message.error(request_id, code.editor_code, f"Tool not found: {requested[:_MAX_ECHO]}", orjson.dumps(data))


def _describe_error(code: ErrorCode, envelope: Mapping[str, Any]) -> str:
    human_message: str = envelope["human_message"]
    if code.error_type == "validation":
        faults = _faults(envelope)
        return f"Invalid tool arguments: {describe_fault(faults[0]) if faults else human_message}"
    if code.error_type == "unity":
        return f"Host error: {human_message}"
    if code.error_type == "timeout":
        return "Tool execution timed out"
    if code.error_type == "permission":
        return "Tool not available in current tier" if "required_tier" in _cause(envelope) else human_message
    return "Internal error" if code.editor_code == _INTERNAL_ERROR else "Tool execution failed"


def _describe_details(
    outcome: Outcome, code: ErrorCode, envelope: Mapping[str, Any], requested: str
) -> Mapping[str, Any]:
    cause = _cause(envelope)
    if code.error_type == "validation":
        return _group_faults(_faults(envelope)) or {"constraintViolations": [code.name]}
    if code.error_type == "unity":
        path = cause.get("path")
        return {"hostError": envelope["human_message"], **({"path": path} if isinstance(path, str) else {})}
    if code.error_type == "timeout":
        return {"timeoutMs": cause.get("timeout_ms"), "tool": requested}
    if "required_tier" in cause:
        return {"requiredTier": cause["required_tier"], "currentTier": cause["current_tier"]}
    if code.error_type == "permission":
        return {"reason": code.name}
    evidence = {} if outcome.evidence is None else {"evidence": outcome.evidence}
    return {**cause, **evidence, "reason": code.name}


def _group_faults(faults: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = {}
    for fault in faults:
        name = "unknownParameters" if fault.get("unknown") else _FAULT_LISTS.get(fault["code"], "constraintViolations")
        grouped.setdefault(name, []).append(fault["argument"])
    return grouped


def _faults(envelope: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    faults: Sequence[Mapping[str, Any]] = _cause(envelope).get("faults", ())
    return faults


def _cause(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cause as an object. A string becomes its member `message`."""
    cause = envelope["cause"]
    if isinstance(cause, Mapping):
        return cause
    return {} if cause is None else {"message": cause}
