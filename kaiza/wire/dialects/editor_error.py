"""Encodes failures for the editor dialect: code, message, and details by the type of error."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from kaiza.domain.argument_faults import describe_fault
from kaiza.domain.call import Outcome
from kaiza.domain.error_codes import ErrorCode, lookup
from kaiza.wire import message
from kaiza.wire.dialects.context_v0 import find_code, is_context_call, to_v0_error
from kaiza.wire.message import RequestId

_UNKNOWN_TOOL: Final = "TOOL_NOT_FOUND"
_INTERNAL_ERROR: Final = -32603
_MAX_ECHO: Final = 200
# Names of the lists in `details`, by the code of the fault.
_FAULT_LISTS: Final[Mapping[str, str]] = {
    "MISSING_REQUIRED_FIELD": "missingParameters",
    "INVALID_INPUT_TYPE": "typeMismatches",
}


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
        return "Tool not available in current tier" if _is_tier_refusal(envelope) else human_message
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
    if _is_tier_refusal(envelope):
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


def _is_tier_refusal(envelope: Mapping[str, Any]) -> bool:
    return "required_tier" in _cause(envelope)


def _cause(envelope: Mapping[str, Any]) -> Mapping[str, Any]:
    """The cause as an object. A string becomes its member `message`."""
    cause = envelope["cause"]
    if isinstance(cause, Mapping):
        return cause
    return {} if cause is None else {"message": cause}
