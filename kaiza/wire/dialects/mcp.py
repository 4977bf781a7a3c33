"""MCP dialect, for the revisions with an `initialize` handshake and those without, on one connection.

Answers everything but tool calls. Their results are encoded by `mcp_result`, which is imported on the first one:
clients start a server for every window, often only to initialize it and list its tools.
"""

import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Decoded, ServerDescription, ToolCall
from kaiza.wire.message import InvalidMessage, Request, RequestId
from kaiza.wire.protocol_versions import HANDSHAKE_VERSIONS, MODERN_VERSIONS
from kaiza.wire.shape import to_unicode, tool_name

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome

_PREFIX: Final = "io.modelcontextprotocol/"
_VERSION: Final = _PREFIX + "protocolVersion"
_CAPABILITIES: Final = _PREFIX + "clientCapabilities"
_CLIENT_INFO: Final = _PREFIX + "clientInfo"
_SERVER_INFO: Final = _PREFIX + "serverInfo"
_UNSUPPORTED_VERSION: Final = -32022
# Bounds on what is copied from a request into answers and records.
_MAX_ECHO: Final = 64
_MAX_CLIENT: Final = 200
MAX_TOKEN_CHARACTERS: Final = 256
MAX_TOKEN_BITS: Final = 64
_TRACEPARENT: Final = re.compile("([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")
_SERVER_CAPABILITIES: Final[Mapping[str, Any]] = {"tools": {"listChanged": False}}
NO_METHOD: Final = "No such method in this protocol revision. All revisions have tools/list and tools/call."
# Clients that hold refusals against the output schema as well, and so hide them from the model (ADR 1002).
_CLIENTS_WITHOUT_OUTPUT_SCHEMAS: Final = ("gemini-cli-mcp-client ",)
LIST_TTL_MS: Final = 3_600_000
"""Time for which a client without a handshake may keep the list of tools, on stdio."""


class McpDialect:
    """Decodes MCP requests and encodes their answers.

    With `summary`, the text block of a result holds the output's summary instead of the whole output as JSON. For
    `list_ttl_ms` a client without a handshake may keep the list of tools. A call's reply form is whether its request
    came without a handshake.
    """

    def __init__(
        self, description: ServerDescription, *, summary: bool = False, list_ttl_ms: int = LIST_TTL_MS
    ) -> None:
        self._description = description
        self._summary = summary
        self._list_ttl_ms = list_ttl_ms
        self._server_info = {"name": description.name, "title": description.title, "version": description.version}

    @property
    def modern_meta(self) -> Mapping[str, Any]:
        """The `_meta` of every result without a handshake."""
        return {_SERVER_INFO: self._server_info}

    def decode(self, request: Request, conversation: Conversation) -> Decoded:
        """Answer the request, or return the tool call that it requests."""
        if request.method == "initialize":
            return self._decode_initialize(request, conversation)
        if _is_modern(request, conversation):
            return self._decode_modern(request, conversation)
        return self._decode_legacy(request, conversation)

    def encode(self, request_id: RequestId, outcome: "Outcome", reply_form: object) -> bytes:
        """Line that answers a tool call."""
        from kaiza.wire.dialects import mcp_result  # noqa: PLC0415  imports orjson, which no opening answer needs

        result_format = mcp_result.ResultFormat(self._summary, self.modern_meta if reply_form else None)
        return mcp_result.encode_result(request_id, outcome, result_format)

    def _decode_initialize(self, request: Request, conversation: Conversation) -> Decoded:
        version, client = request.params.get("protocolVersion"), _client_name(request.params.get("clientInfo"))
        if not isinstance(version, str) or not isinstance(request.params.get("capabilities"), dict) or client is None:
            reason = "initialize needs protocolVersion, capabilities and clientInfo with a name and a version."
            return Decoded(conversation, _invalid_params(request, reason))
        body = {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": _SERVER_CAPABILITIES,
            "serverInfo": self._server_info,
            "instructions": self._description.instructions,
        }
        conversation = conversation._replace(initialized=True, client=client)
        return Decoded(conversation, message.result(request.id, message.encode_json(body)))

    def _decode_legacy(self, request: Request, conversation: Conversation) -> Decoded:
        if not isinstance(request.params.get("_meta"), dict | None):
            return Decoded(conversation, _invalid_params(request, "_meta must be an object."))
        if request.method == "ping":
            return Decoded(conversation, message.result(request.id, b"{}"))
        if request.method == "tools/list":
            return Decoded(conversation, self._list_tools(request, conversation.client, self._legacy_list))
        if request.method == "tools/call":
            return _decode_call(request, conversation, conversation.client)
        return Decoded(conversation, _method_not_found(request))

    def _decode_modern(self, request: Request, conversation: Conversation) -> Decoded:
        error = _envelope_error(request)
        if error is not None:
            return Decoded(conversation, error)
        conversation = conversation._replace(modern=True)
        if request.method == "server/discover":
            return Decoded(conversation, message.result(request.id, self._discovery_body))
        client = _client_name(request.params["_meta"].get(_CLIENT_INFO))
        if request.method == "tools/list":
            return Decoded(conversation, self._list_tools(request, client, self._modern_list))
        if request.method == "tools/call":
            return _decode_call(request, conversation, client, modern=True)
        return Decoded(conversation, _method_not_found(request))

    def _list_tools(self, request: Request, client: str | None, body: Callable[[bytes], bytes]) -> bytes:
        cursor = request.params.get("cursor")
        if cursor is None:
            is_plain = client is not None and client.startswith(_CLIENTS_WITHOUT_OUTPUT_SCHEMAS)
            return message.result(request.id, body(self._plain_tools_member if is_plain else self._tools_member))
        if isinstance(cursor, str):
            return message.rejection(
                InvalidMessage(request.id, "CURSOR_INVALID", "The list has one page; call again without a cursor.")
            )
        return _invalid_params(request, "cursor must be a string.")

    @cached_property
    def _tools_member(self) -> bytes:
        return b'"tools":' + message.encode_json(list(self._description.tools()))

    @cached_property
    def _plain_tools_member(self) -> bytes:
        """The list without output schemas."""
        tools = [
            {name: value for name, value in tool.items() if name != "outputSchema"}
            for tool in self._description.tools()
        ]
        return b'"tools":' + message.encode_json(tools)

    def _legacy_list(self, tools_member: bytes) -> bytes:
        return b"{" + tools_member + b"}"

    def _modern_list(self, tools_member: bytes) -> bytes:
        # Private: which tools there are depends on the role and tier that this server was started for.
        hints = self._cache_hints("private")
        return message.encode_json({**hints, "_meta": self.modern_meta})[:-1] + b"," + tools_member + b"}"

    @cached_property
    def _discovery_body(self) -> bytes:
        body = {
            "supportedVersions": MODERN_VERSIONS,
            "capabilities": _SERVER_CAPABILITIES,
            "instructions": self._description.instructions,
        }
        return message.encode_json({**body, **self._cache_hints("public"), "_meta": self.modern_meta})

    def _cache_hints(self, scope: str) -> Mapping[str, Any]:
        return {"ttlMs": self._list_ttl_ms, "cacheScope": scope, "resultType": "complete"}


def _is_modern(request: Request, conversation: Conversation) -> bool:
    """Whether the request is, or after earlier ones must be, of a revision without a handshake."""
    meta = request.params.get("_meta")
    if isinstance(meta, dict) and _VERSION in meta:
        return True
    # A host may probe with `server/discover` and then initialize: after a handshake both kinds are served.
    return request.method == "server/discover" or (conversation.modern and not conversation.initialized)


def _envelope_error(request: Request) -> bytes | None:
    """Answer to a request whose `_meta` lacks what its revision requires; None if it is complete."""
    meta = request.params.get("_meta")
    if not isinstance(meta, dict) or _VERSION not in meta or _CAPABILITIES not in meta:
        return _invalid_params(request, f"params._meta must carry {_VERSION} and {_CAPABILITIES}.")
    version = meta[_VERSION]
    if not isinstance(version, str) or not isinstance(meta[_CAPABILITIES], dict):
        return _invalid_params(request, f"{_VERSION} must be a string and {_CAPABILITIES} an object.")
    if version not in MODERN_VERSIONS:
        data = {"supported": MODERN_VERSIONS, "requested": version[:_MAX_ECHO]}
        return message.error(
            request.id, _UNSUPPORTED_VERSION, "Unsupported protocol version", message.encode_json(data)
        )
    if meta.get(_CLIENT_INFO) is not None and _client_name(meta[_CLIENT_INFO]) is None:
        return _invalid_params(request, f"{_CLIENT_INFO} must have a name and a version.")
    return None


def _decode_call(request: Request, conversation: Conversation, client: str | None, *, modern: bool = False) -> Decoded:
    params = request.params
    # Any name and any arguments make a call, so that it is recorded; the application refuses what it cannot use.
    call = ToolCall(
        tool_name(params),
        params.get("arguments", {}),
        client,
        conversation.initialized and not modern,
        modern,
        progress_token=_progress_token(params.get("_meta")),
        traceparent=_traceparent(params.get("_meta")),
    )
    return Decoded(conversation, call=call)


def _progress_token(meta: object) -> str | int | None:
    """The token under which the client wants progress reports, if it is a string or integer of reasonable length."""
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    # Each report repeats it. A call with any other token is answered without reports, which MCP allows.
    if isinstance(token, str):
        return token if len(token) <= MAX_TOKEN_CHARACTERS else None
    if isinstance(token, int) and not isinstance(token, bool):
        return token if token.bit_length() <= MAX_TOKEN_BITS else None
    return None


def _traceparent(meta: object) -> str | None:
    """The trace that the client names, if it has the one form that W3C Trace Context allows."""
    value = meta.get("traceparent") if isinstance(meta, dict) else None
    match = _TRACEPARENT.fullmatch(value) if isinstance(value, str) else None
    # These are invalid by the standard: version ff, and ids of nothing but zeros.
    is_valid = match is not None and match[1] != "ff" and match[2].strip("0") and match[3].strip("0")
    return value if is_valid else None


def _client_name(info: object) -> str | None:
    """Name and version that the client reports; unverified."""
    if not isinstance(info, dict):
        return None
    name, version = info.get("name"), info.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    return to_unicode(f"{name} {version}")[:_MAX_CLIENT]


def _invalid_params(request: Request, reason: str) -> bytes:
    return message.rejection(InvalidMessage(request.id, "INVALID_PARAMS", reason))


def _method_not_found(request: Request) -> bytes:
    return message.rejection(InvalidMessage(request.id, "METHOD_NOT_FOUND", NO_METHOD))
