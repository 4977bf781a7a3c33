"""The ASGI application: routes, the order of refusals, and the HTTP status of each answer."""

import json
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kaiza.domain.call import CallRequest, Principal
from kaiza.domain.error_codes import SYSTEM_ERROR_CODES
from kaiza.server.http import mcp_headers
from kaiza.server.http.admission import Admission, check_content
from kaiza.server.http.body import BodyDrain, read_body
from kaiza.server.http.call_runner import CallAnswer, CallRunner
from kaiza.server.http.event_stream import EventStream, accepts_events
from kaiza.server.pipeline import Exchange, Incoming, NotesProtocol, Pipeline, to_call_request
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage, Notification, Request

HEALTH_PATH: Final = "/healthz"
RETRY_SECONDS: Final = 1
_MCP_STATUS: Final = {-32601: 404, -32603: 500}
"""HTTP status of JSON-RPC errors in MCP without a handshake; 400 of all others."""
_STATUS_BY_NUMBER: Final = {row.rpc: row.http for row in reversed(list(SYSTEM_ERROR_CODES.values()))}

ReportProgress = Callable[[int, int | None], None]


class Pipelines(NamedTuple):
    """What makes the pipeline of one request. A conversation is never shared between requests."""

    mcp: Callable[[], Pipeline]
    """For MCP's own shape only."""
    rpc: Callable[[], Pipeline]
    """For all dialects."""


class RequestRead(NamedTuple):
    """A request that was let in: the holder of its token, its body, and when it was received."""

    principal: Principal | None
    body: bytes
    path: str
    at: float
    """In seconds of `time.monotonic`."""

    def describe(self, parsed: InvalidMessage | Request) -> Exchange:
        """The exchange that this request begins."""
        agent = None if self.principal is None else self.principal.label
        return Exchange(parsed, len(self.body), self.at, "http", self.path, agent)


def make_http_app(
    calls: CallRunner, pipelines: Pipelines, admission: Admission, notes: NotesProtocol | None = None
) -> Starlette:
    """Make the application."""
    endpoints = Endpoints(calls, pipelines, admission, notes)
    app = Starlette(
        routes=[
            Route("/mcp", endpoints.answer_mcp, methods=["POST"]),
            Route("/rpc", endpoints.answer_rpc, methods=["POST"]),
            Route("/rpc/{tool}", endpoints.answer_rpc, methods=["POST"]),
            Route(HEALTH_PATH, _answer_health, methods=["GET"]),
        ],
        middleware=[Middleware(BodyDrain), Middleware(SourceCheck, admission=admission)],
        exception_handlers={
            404: _refuse_path,
            405: _refuse_method,
            ClientDisconnect: _drop_answer,
            Exception: _answer_bug,
        },
    )
    app.router.redirect_slashes = False
    return app


class SourceCheck:
    """ASGI middleware: refuses hosts and origins before anything else is looked at."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        # Routes are compared with the path as it was sent, as a proxy before this server does.
        scope["path"] = scope["raw_path"].decode("ascii")
        # Probes of container platforms send the address as the host name.
        if scope["path"] != HEALTH_PATH:
            try:
                self._admission.check_source(Headers(scope=scope))
            except HTTPException as refusal:
                await PlainTextResponse(refusal.detail, refusal.status_code)(scope, receive, send)
                return
        await self._app(scope, receive, send)


class Endpoints:
    """Answers of the routes."""

    def __init__(
        self, calls: CallRunner, pipelines: Pipelines, admission: Admission, notes: NotesProtocol | None
    ) -> None:
        self._calls = calls
        self._notes = notes
        self._pipelines = pipelines
        self._admission = admission

    async def answer_mcp(self, http: HttpRequest) -> Response:
        """Answer one message of MCP, of a revision with or without a handshake."""
        read = await self._read(http)
        pipeline = self._pipelines.mcp()
        parsed = pipeline.parse_line(read.body)
        if isinstance(parsed, Notification):
            return Response(status_code=202)
        # A client with a handshake expects errors with status 200; what is no request has no revision.
        is_legacy = isinstance(parsed, Request) and not mcp_headers.is_modern(parsed, http.headers)
        if isinstance(parsed, Request) and not is_legacy:
            parsed = mcp_headers.find_fault(parsed, http.headers) or parsed

        def to_response(answer: CallAnswer) -> Response:
            return _to_response(answer.line, 200 if is_legacy else _mcp_status(_find_error(answer.line, parsed.id)))

        incoming = self._decide(http, pipeline, parsed, read)
        if isinstance(incoming, CallAnswer):
            return to_response(incoming)
        note = partial(self._note, read.describe(parsed)._replace(incoming=incoming))
        if incoming.call.progress_token is None or not accepts_events(http.headers):
            return to_response(await self._calls.run(incoming, _to_request(incoming, read), note))
        stream = EventStream(incoming)
        request = _to_request(incoming, read, stream.report_progress)
        return await stream.respond(self._calls.run(incoming, request, note), to_response)

    async def answer_rpc(self, http: HttpRequest) -> Response:
        """Answer one message in any dialect, with the HTTP status of its error code."""
        read = await self._read(http)
        pipeline = self._pipelines.rpc()
        parsed = pipeline.parse_line(read.body)
        if isinstance(parsed, Notification):
            return Response(status_code=202)
        answer = self._decide(http, pipeline, parsed, read)
        if isinstance(answer, Incoming):
            incoming = _check_path(answer, http.path_params.get("tool"))
            note = partial(self._note, read.describe(parsed)._replace(incoming=incoming))
            answer = await self._calls.run(incoming, _to_request(incoming, read), note)
        if answer.outcome is not None and answer.outcome.code is not None:
            return _to_response(answer.line, answer.outcome.code.http)
        return _to_response(answer.line, _rpc_status(_find_error(answer.line, parsed.id)))

    async def _read(self, http: HttpRequest) -> RequestRead:
        principal = self._admission.find_principal(http.headers)
        check_content(http.headers)
        body = await read_body(http)
        return RequestRead(principal, body, http.url.path, time.monotonic())

    def _decide(
        self, http: HttpRequest, pipeline: Pipeline, parsed: InvalidMessage | Request, read: RequestRead
    ) -> CallAnswer | Incoming:
        """The answer to a message, or the call that it makes."""
        http.state.request_id = parsed.id
        action = pipeline.next_action(parsed)
        if action.call is None:
            assert action.answer is not None  # noqa: S101  every message but a notification is answered
            answer = CallAnswer(action.answer)
            self._note(read.describe(parsed)._replace(line=read.body), answer)
            return answer
        if not self._calls.has_room(read.principal):
            retry = {"Retry-After": str(RETRY_SECONDS)}
            raise HTTPException(503, "Too many calls are in flight. Send this one again later.", retry)
        return action.call

    def _note(self, exchange: Exchange, answer: CallAnswer) -> None:
        """Note an answered request in the run log."""
        if self._notes is not None:
            self._notes.note(exchange._replace(answer=answer.line, outcome=answer.outcome))


def _to_request(incoming: Incoming, read: RequestRead, report: ReportProgress | None = None) -> CallRequest:
    return to_call_request(incoming.call, report)._replace(principal=read.principal)


def _check_path(incoming: Incoming, path_tool: str | None) -> Incoming:
    """The call; with a fault, so that it is recorded, if its path names another tool than its body."""
    if path_tool is None or path_tool == incoming.call.tool_name:
        return incoming
    reason = "The path names another tool than the body. Send the call to the path of its tool, or to /rpc."
    fault = InvalidMessage(incoming.request_id, "INVALID_TOOL_INPUT", reason)
    return incoming._replace(call=incoming.call._replace(fault=fault))


def _find_error(line: bytes, request_id: object) -> Mapping[str, Any] | None:
    """The JSON-RPC error in an answer, without decoding the results of others."""
    if not line.startswith(b'{"jsonrpc":"2.0","id":%b,"error":' % message.encode_json(request_id)):
        return None
    error: Mapping[str, Any] = json.loads(line)["error"]
    return error


def _mcp_status(error: Mapping[str, Any] | None) -> int:
    if error is None:
        return 200
    return _MCP_STATUS.get(error["code"], 400)


def _rpc_status(error: Mapping[str, Any] | None) -> int:
    if error is None:
        return 200
    data = error.get("data")
    row = SYSTEM_ERROR_CODES.get(data.get("error_code", "") if isinstance(data, Mapping) else "")
    # The editor dialect's errors do not name the code. Without a call, its number has one status.
    return row.http if row is not None else _STATUS_BY_NUMBER.get(error["code"], 400)


def _to_response(line: bytes, status: int) -> Response:
    return Response(line, status, media_type="application/json")


async def _answer_health(_: HttpRequest) -> Response:
    return JSONResponse({"status": "ok"})


async def _refuse_path(*_: object) -> Response:
    return PlainTextResponse("There is nothing at this path. Send requests to /mcp or /rpc.", 404)


async def _refuse_method(_: HttpRequest, refusal: Exception) -> Response:
    allow = (refusal.headers or {})["Allow"] if isinstance(refusal, HTTPException) else ""
    return PlainTextResponse(f"Use another method here: {allow}.", 405, {"Allow": allow})


async def _drop_answer(*_: object) -> Response:
    return Response(status_code=400)  # not sent: the client is gone


async def _answer_bug(http: HttpRequest, _: Exception) -> Response:
    """Answer of a request that met a bug. The exception goes on, and is printed by the server."""
    request_id = getattr(http.state, "request_id", None)
    rejection = message.rejection(InvalidMessage(request_id, "INTERNAL_ERROR", "Kaiza failed unexpectedly."))
    return _to_response(rejection, 500)
