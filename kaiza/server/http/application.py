"""The ASGI application: routes, the order of refusals, and the HTTP status of each answer."""

import asyncio
import json
import time
from asyncio import Future
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kaiza.domain.call import Principal
from kaiza.domain.error_codes import SYSTEM_ERROR_CODES
from kaiza.server.call_runner import CallAnswer, CallRunner, ServedCall
from kaiza.server.http import mcp_headers
from kaiza.server.http.admission import Admission, check_content, require_room
from kaiza.server.http.body import BodyDrain, BodyReader
from kaiza.server.http.event_stream import EventStream, accepts_events
from kaiza.server.pipeline import Exchange, Incoming, Pipeline
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage, Notification, Request, RequestId
from kaiza.wire.numbers import parse_integer
from kaiza.wire.outline import Outline

if TYPE_CHECKING:
    from kaiza.server.run_logger import RunLogger

HEALTH_PATH: Final = "/healthz"
_MCP_STATUS: Final = {-32601: 404, -32603: 500}
"""HTTP status of JSON-RPC errors in MCP without a handshake; 400 of all others."""
_STATUS_BY_NUMBER: Final = {row.rpc: row.http for row in reversed(list(SYSTEM_ERROR_CODES.values()))}

ReportProgress = Callable[[int, int | None], None]


class Pipelines(NamedTuple):
    """Factories of the pipeline of one request. Requests never share a conversation."""

    mcp: Callable[[], Pipeline]
    """For MCP only."""
    rpc: Callable[[], Pipeline]
    """For all dialects."""


class AdmittedRequest(NamedTuple):
    """An admitted request: its principal, its body, its path, and when it was received."""

    principal: Principal | None
    body: bytes | Outline
    """The outline of a body that is too long."""
    path: str
    at: float
    """In seconds of `time.monotonic`."""

    def describe(self, parsed: InvalidMessage | Request) -> Exchange:
        """The exchange that this request begins."""
        agent = None if self.principal is None else self.principal.label
        return Exchange(parsed, len(self.body), self.at, "http", self.path, agent)


def make_http_app(
    calls: CallRunner, pipelines: Pipelines, admission: Admission, run_logger: "RunLogger | None" = None
) -> Starlette:
    """Make the application."""
    endpoints = Endpoints(calls, pipelines, admission, run_logger)
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
    """ASGI middleware: refuses unknown hosts and origins before anything else is checked."""

    def __init__(self, app: ASGIApp, admission: Admission) -> None:
        self._app = app
        self._admission = admission

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        # Routes are compared with the path as it was sent: a proxy in front of this server sees the same one.
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
        self, calls: CallRunner, pipelines: Pipelines, admission: Admission, run_logger: "RunLogger | None"
    ) -> None:
        self._calls = calls
        self._run_logger = run_logger
        self._pipelines = pipelines
        self._admission = admission
        self._bodies = BodyReader()

    async def answer_mcp(self, http: HttpRequest) -> Response:
        """Answer one message of MCP, of a revision with or without a handshake."""
        admitted = await self._admit(http)
        pipeline = self._pipelines.mcp()
        parsed = await self._bodies.parse(admitted.body, pipeline, admitted.principal)
        if isinstance(parsed, Notification):
            return Response(status_code=202)
        # A client with a handshake expects errors with status 200. An invalid message has no revision.
        is_legacy = isinstance(parsed, Request) and not mcp_headers.is_modern(parsed, http.headers)
        if isinstance(parsed, Request) and not is_legacy:
            parsed = mcp_headers.find_fault(parsed, http.headers) or parsed

        def to_response(answer: CallAnswer) -> Response:
            error = None if is_legacy else _find_error(answer.line, parsed.id)
            return _to_response(answer.line, 200 if error is None else _MCP_STATUS.get(error["code"], 400))

        incoming = self._decide(http, pipeline, parsed, admitted)
        if isinstance(incoming, CallAnswer):
            return to_response(incoming)
        exchange = admitted.describe(parsed)
        if incoming.call.progress_token is None or not accepts_events(http.headers):
            return to_response(await self._run_call(incoming, exchange, admitted.principal))
        stream = EventStream(incoming)
        run = self._run_call(incoming, exchange, admitted.principal, stream.report_progress)
        return await stream.respond(run, to_response)

    async def answer_rpc(self, http: HttpRequest) -> Response:
        """Answer one message in any dialect, with the HTTP status of its error code."""
        admitted = await self._admit(http)
        pipeline = self._pipelines.rpc()
        parsed = await self._bodies.parse(admitted.body, pipeline, admitted.principal)
        if isinstance(parsed, Notification):
            return Response(status_code=202)
        answer = self._decide(http, pipeline, parsed, admitted)
        if isinstance(answer, Incoming):
            incoming = _check_path(answer, http.path_params.get("tool"))
            answer = await self._run_call(incoming, admitted.describe(parsed), admitted.principal)
        if answer.outcome is not None and answer.outcome.code is not None:
            return _to_response(answer.line, answer.outcome.code.http)
        return _to_response(answer.line, _rpc_status(_find_error(answer.line, parsed.id)))

    async def _admit(self, http: HttpRequest) -> AdmittedRequest:
        principal = self._admission.find_principal(http.headers)
        check_content(http.headers)
        body = await self._bodies.read(http, principal)
        return AdmittedRequest(principal, body, http.url.path, time.monotonic())

    def _decide(
        self, http: HttpRequest, pipeline: Pipeline, parsed: InvalidMessage | Request, admitted: AdmittedRequest
    ) -> CallAnswer | Incoming:
        """The answer to a message, or the call that it makes."""
        http.state.request_id = parsed.id
        action = pipeline.next_action(parsed)
        if action.call is None:
            assert action.answer is not None  # noqa: S101  every message but a notification is answered
            answer = CallAnswer(action.answer)
            self._log_exchange(admitted.describe(parsed)._replace(line=admitted.body), answer)
            return answer
        require_room(self._calls.list_in_flight(), action.call.call.tool_name, admitted.principal)
        return action.call

    async def _run_call(
        self, incoming: Incoming, exchange: Exchange, principal: Principal | None, report: ReportProgress | None = None
    ) -> CallAnswer:
        """Run a call to its end, or until its deadline. It continues if the client disconnects."""
        loop = asyncio.get_running_loop()
        answered: Future[CallAnswer] = loop.create_future()

        def set_answer(answer: CallAnswer) -> None:
            if not answered.done():  # it is cancelled where the client has disconnected
                answered.set_result(answer)

        def send_answer(_call: ServedCall, answer: CallAnswer) -> None:
            try:
                self._log_exchange(exchange._replace(incoming=incoming), answer)
            finally:
                if not loop.is_closed():  # the process is about to exit
                    loop.call_soon_threadsafe(set_answer, answer)

        self._calls.submit(ServedCall(incoming, exchange.size, send_answer, principal, report))
        return await answered

    def _log_exchange(self, exchange: Exchange, answer: CallAnswer) -> None:
        """Log an answered request in the run log."""
        if self._run_logger is not None:
            self._run_logger.log_exchange(exchange._replace(answer=answer.line, outcome=answer.outcome))


def _check_path(incoming: Incoming, path_tool: str | None) -> Incoming:
    """The call; with a fault if its path and its body name different tools, so that it is recorded."""
    if path_tool is None or path_tool == incoming.call.tool_name:
        return incoming
    reason = "The path names another tool than the body. Send the call to the path of its tool, or to /rpc."
    fault = InvalidMessage(incoming.request_id, "INVALID_TOOL_INPUT", reason)
    return incoming._replace(call=incoming.call._replace(fault=fault))


def _find_error(line: bytes, request_id: RequestId | None) -> Mapping[str, Any] | None:
    """The JSON-RPC error in an answer; None if it has a result, which is not decoded."""
    if not line.startswith(b'{"jsonrpc":"2.0","id":%b,"error":' % message.encode_id(request_id)):
        return None
    error: Mapping[str, Any] = json.loads(line, parse_int=parse_integer)["error"]
    return error


def _rpc_status(error: Mapping[str, Any] | None) -> int:
    if error is None:
        return 200
    data = error.get("data")
    row = SYSTEM_ERROR_CODES.get(data.get("error_code", "") if isinstance(data, Mapping) else "")
    # The editor dialect's errors have no error code. Without a call, each number has one status.
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
    """Answer a request that failed because of a bug. Starlette raises the exception again, and the server prints it."""
    request_id = getattr(http.state, "request_id", None)
    rejection = message.rejection(InvalidMessage(request_id, "INTERNAL_ERROR", message.BUG_REASON))
    return _to_response(rejection, 500)
