"""Editor dialect: `tools/call {tool, arguments}`, filtered `tools/list`, `tools/describe` and `server/info`."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

import orjson

from kaiza.domain.call import Outcome
from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Decoded, ServerDescription, ToolCall, ToolCatalog
from kaiza.wire.dialects import editor_error
from kaiza.wire.message import InvalidMessage, Request, RequestId
from kaiza.wire.shape import to_unicode, tool_name

_FILTERS: Final = ("category", "tier")


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
            return _decode_call(request, conversation)
        if request.method == "tools/list":
            return Decoded(conversation, self._list_tools(request))
        if request.method == "tools/describe":
            return Decoded(conversation, self._describe_tool(request))
        return Decoded(conversation, message.result(request.id, orjson.dumps(self._catalog.describe_server())))

    def encode(self, request_id: RequestId, outcome: Outcome, reply_form: object) -> bytes:
        """Line that answers a tool call."""
        if outcome.output is None:
            return editor_error.encode_error(request_id, outcome, str(reply_form))
        result: dict[str, Any] = {"tool": reply_form, "output": outcome.output}
        if outcome.diagnostics:
            result["diagnostics"] = outcome.diagnostics
        return message.result(request_id, orjson.dumps(result))

    def _list_tools(self, request: Request) -> bytes:
        category, tier = (request.params.get(name) for name in _FILTERS)
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
            return editor_error.encode_not_found(request.id, to_unicode(requested))
        return message.result(request.id, orjson.dumps({"tool": described}))


def _decode_call(request: Request, conversation: Conversation) -> Decoded:
    params: Mapping[str, Any] = request.params
    requested = tool_name(params)
    call = ToolCall(requested, params.get("arguments"), conversation.client, conversation.initialized, requested)
    return Decoded(conversation, call=call)


def _invalid_params(request: Request, reason: str) -> bytes:
    return message.rejection(InvalidMessage(request.id, "INVALID_PARAMS", reason))
