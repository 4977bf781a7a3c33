"""MCP, both eras on one pipe: `initialize` and what follows it, and requests that carry their own `_meta`.

The opening answers are made here, before anything heavy is loaded; results of tool calls are encoded by `mcp_call`.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kaiza.wire import message
from kaiza.wire.dialect import Conversation, Decoded, ToolCall
from kaiza.wire.message import InvalidMessage, Request, RequestId

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The revisions that are begun with `initialize`; a client that asks for another gets the newest of these."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""The revisions without a handshake, where every request says which one it speaks."""

_PREFIX: Final = "io.modelcontextprotocol/"
_VERSION: Final = _PREFIX + "protocolVersion"
_CAPABILITIES: Final = _PREFIX + "clientCapabilities"
_CLIENT_INFO: Final = _PREFIX + "clientInfo"
_SERVER_INFO: Final = _PREFIX + "serverInfo"
_UNSUPPORTED_VERSION: Final = -32022
_MAX_ECHO: Final = 64
_MAX_CLIENT: Final = 200
_SERVER_CAPABILITIES: Final[Mapping[str, Any]] = {"tools": {"listChanged": False}}
_CACHE_HINTS: Final[Mapping[str, Any]] = {"ttlMs": 3_600_000, "cacheScope": "public", "resultType": "complete"}


class ServerDescription(NamedTuple):
    """What a client learns before it calls anything."""

    version: str
    instructions: str
    tools: Callable[[], Sequence[Mapping[str, Any]]]
    """What tools/list shows, in order; asked for once, when a client first wants it."""
    name: str = "kaiza"
    title: str = "Kaiza"


class McpDialect:
    """The dialect, with its opening answers ready-made.

    The reply form of a call is whether its request came without a handshake. `summary` puts an output's summary into
    the text block, instead of the whole output once more.
    """

    def __init__(self, opening: ServerDescription, *, summary: bool = False) -> None:
        self._description = opening
        self._summary = summary
        self._server_info = {"name": opening.name, "title": opening.title, "version": opening.version}

    @property
    def modern_meta(self) -> Mapping[str, Any]:
        """What every result without a handshake says about who gives it."""
        return {_SERVER_INFO: self._server_info}

    def can_decode(self, request: Request) -> bool:  # noqa: ARG002  other dialects look before they claim
        """MCP takes whatever no other dialect claims."""
        return True

    def decode(self, request: Request, so_far: Conversation) -> Decoded:
        """Answer a request, or return the tool call that it asks for."""
        if request.method == "initialize":
            return self._decode_initialize(request, so_far)
        if _is_modern(request, so_far):
            return self._decode_modern(request, so_far)
        return self._decode_legacy(request, so_far)

    def encode(self, request_id: RequestId, outcome: "Outcome", reply_form: object) -> bytes:
        """The line that answers a tool call."""
        from kaiza.wire.dialects import mcp_result as mcp_call  # noqa: PLC0415  what results need is loaded when there are calls

        form = mcp_call.ResultFormat(self._summary, self.modern_meta if reply_form else None)
        return mcp_call.encode_result(request_id, outcome, form)

    def _decode_initialize(self, request: Request, so_far: Conversation) -> Decoded:
        asked, client = request.params.get("protocolVersion"), _client_name(request.params.get("clientInfo"))
        if not isinstance(asked, str) or not isinstance(request.params.get("capabilities"), dict) or client is None:
            reason = "initialize needs protocolVersion, capabilities and clientInfo with a name and a version."
            return Decoded(so_far, _invalid_params(request, reason))
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        body = {
            "protocolVersion": version,
            "capabilities": _SERVER_CAPABILITIES,
            "serverInfo": self._server_info,
            "instructions": self._description.instructions,
        }
        now = so_far._replace(initialized=True, client=client)
        return Decoded(now, message.result(request.id, message.encode_json(body)))

    def _decode_legacy(self, request: Request, so_far: Conversation) -> Decoded:
        if not isinstance(request.params.get("_meta"), dict | None):
            return Decoded(so_far, _invalid_params(request, "_meta must be an object."))
        if request.method == "ping":
            return Decoded(so_far, message.result(request.id, b"{}"))
        if request.method == "tools/list":
            return Decoded(so_far, self._list_tools(request, self._legacy_list))
        if request.method == "tools/call":
            return _decode_call(request, so_far, so_far.client)
        return Decoded(so_far, _method_not_found(request))

    def _decode_modern(self, request: Request, so_far: Conversation) -> Decoded:
        refused = _envelope_error(request)
        if refused is not None:
            return Decoded(so_far, refused)
        so_far = so_far._replace(modern=True)
        if request.method == "server/discover":
            return Decoded(so_far, message.result(request.id, self._discovery_body))
        if request.method == "tools/list":
            return Decoded(so_far, self._list_tools(request, self._modern_list))
        if request.method == "tools/call":
            client = _client_name(request.params["_meta"].get(_CLIENT_INFO))
            return _decode_call(request, so_far, client, modern=True)
        return Decoded(so_far, _method_not_found(request))

    def _list_tools(self, request: Request, body: Callable[[], bytes]) -> bytes:
        cursor = request.params.get("cursor")
        if cursor is None:
            return message.result(request.id, body())
        if isinstance(cursor, str):
            return message.rejection(
                InvalidMessage(request.id, "CURSOR_INVALID", "The list has one page; ask without a cursor.")
            )
        return _invalid_params(request, "cursor must be a string.")

    @cached_property
    def _tools_member(self) -> bytes:
        return b'"tools":' + message.encode_json(list(self._description.tools()))

    def _legacy_list(self) -> bytes:
        return b"{" + self._tools_member + b"}"

    def _modern_list(self) -> bytes:
        return message.encode_json({**_CACHE_HINTS, "_meta": self.modern_meta})[:-1] + b"," + self._tools_member + b"}"

    @cached_property
    def _discovery_body(self) -> bytes:
        body = {
            "supportedVersions": MODERN_VERSIONS,
            "capabilities": _SERVER_CAPABILITIES,
            "instructions": self._description.instructions,
        }
        return message.encode_json({**body, **_CACHE_HINTS, "_meta": self.modern_meta})


def _is_modern(request: Request, so_far: Conversation) -> bool:
    """Whether a request speaks, or by what came before it ought to speak, a revision without a handshake."""
    meta = request.params.get("_meta")
    if isinstance(meta, dict) and _VERSION in meta:
        return True
    return request.method == "server/discover" or (so_far.modern and not so_far.initialized)


def _envelope_error(request: Request) -> bytes | None:
    """The answer to a request whose `_meta` is not what its revision requires."""
    meta = request.params.get("_meta")
    if not isinstance(meta, dict) or _VERSION not in meta or _CAPABILITIES not in meta:
        return _invalid_params(request, f"params._meta must carry {_VERSION} and {_CAPABILITIES}.")
    asked = meta[_VERSION]
    if not isinstance(asked, str) or not isinstance(meta[_CAPABILITIES], dict):
        return _invalid_params(request, f"{_VERSION} must be a string and {_CAPABILITIES} an object.")
    if asked not in MODERN_VERSIONS:
        data = {"supported": MODERN_VERSIONS, "requested": asked[:_MAX_ECHO]}
        return message.error(
            request.id, _UNSUPPORTED_VERSION, "Unsupported protocol version", message.encode_json(data)
        )
    if meta.get(_CLIENT_INFO) is not None and _client_name(meta[_CLIENT_INFO]) is None:
        return _invalid_params(request, f"{_CLIENT_INFO} must have a name and a version.")
    return None


def _decode_call(request: Request, so_far: Conversation, client: str | None, *, modern: bool = False) -> Decoded:
    name = request.params.get("name")
    if not isinstance(name, str):
        return Decoded(so_far, _invalid_params(request, "tools/call needs the tool's name, a string."))
    conversational = so_far.initialized and not modern
    return Decoded(so_far, call=ToolCall(name, request.params.get("arguments", {}), client, conversational, modern))


def _client_name(info: object) -> str | None:
    """Who the client claims to be."""
    if not isinstance(info, dict):
        return None
    name, version = info.get("name"), info.get("version")
    if not isinstance(name, str) or not isinstance(version, str):
        return None
    return f"{name} {version}"[:_MAX_CLIENT]


def _invalid_params(request: Request, reason: str) -> bytes:
    return message.rejection(InvalidMessage(request.id, "INVALID_PARAMS", reason))


def _method_not_found(request: Request) -> bytes:
    return message.rejection(
        InvalidMessage(request.id, "METHOD_NOT_FOUND", "There is no such method in this revision.")
    )
