"""Canonical dialect: `tools/call {tool, input}`, answered with `{tool, output}` or a canonical error."""

from typing import Any, Final

import orjson

from kaiza.domain import error_codes
from kaiza.domain.call import Outcome
from kaiza.domain.canonical_error import CanonicalError
from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Decoded, ToolCall
from kaiza.wire.dialects.context_v0 import find_code, is_context_call, to_v0_error
from kaiza.wire.message import Request, RequestId
from kaiza.wire.shape import tool_name

_UNKNOWN_TOOL: Final = "TOOL_NOT_FOUND"


class CanonicalDialect:
    """Decodes canonical tool calls and encodes their answers. A call's reply form is the tool as it was requested."""

    def decode(self, request: Request, conversation: Conversation) -> Decoded:
        """Return the tool call that the request makes."""
        requested = tool_name(request.params)
        call = ToolCall(
            requested, request.params.get("input"), conversation.client, conversation.initialized, requested
        )
        return Decoded(conversation, call=call)

    def encode(self, request_id: RequestId, outcome: Outcome, reply_form: object) -> bytes:
        """Line that answers a tool call."""
        if outcome.output is not None:
            return message.result(request_id, orjson.dumps({"tool": reply_form, "output": outcome.output}))
        code = find_code(outcome) if is_context_call(outcome) else outcome.code
        assert code is not None  # noqa: S101  an outcome without output has a code
        # One code for all codes of invalid arguments.
        canonical = "INVALID_TOOL_INPUT" if code.name in error_codes.INVALID_PARAMS_CODES else code.name
        details = _describe_details(outcome)
        error = details["error"] if is_context_call(outcome) else CanonicalError.to_jsonrpc_error(canonical)
        data = {"canonical": canonical, "error_code": code.name, "http_status": code.http, "details": details}
        return message.error(request_id, code.rpc, str(error["message"]), orjson.dumps(data))


def _describe_details(outcome: Outcome) -> dict[str, Any]:
    if is_context_call(outcome):
        return to_v0_error(outcome)
    if outcome.code is not None and outcome.code.name == _UNKNOWN_TOOL:
        return {}
    details: dict[str, Any] = {"envelope": outcome.envelope}
    if outcome.evidence is not None:
        details["evidence"] = outcome.evidence
    return details
