"""Kaiza's HTTP transport and MCP dialect with the fixtures of the conformance suite in place of Kaiza's tools.

Run as a program. What the transport sends before a result is progress; here any notification or request goes that way.
"""

import itertools
import json
import queue
import socket
import sys
import threading
import time
from types import SimpleNamespace

import conformance_fixtures as fixtures

from kaiza.domain.call import Outcome
from kaiza.server.http.admission import Admission
from kaiza.server.http.application import Pipelines
from kaiza.server.http.serve import Listener, serve_http
from kaiza.server.pipeline import Incoming, Pipeline, TransportAction
from kaiza.wire import message
from kaiza.wire.dialect import Decoded, ServerDescription, ToolCall
from kaiza.wire.dialects.mcp import McpDialect
from kaiza.wire.message import Notification

PREFIX = "io.modelcontextprotocol/"
CACHED = {"ttlMs": 0, "cacheScope": "private"}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"subscribe": True},
    "completions": {},
}
LISTEN = "subscriptions/listen"
SECONDS = 5
LISTENING_SECONDS = 2


class Clients:
    """What clients have open: answers that tools wait for, and streams that hear of changes."""

    def __init__(self):
        self._numbers = itertools.count(1)
        self._waiting = {}
        self._listening = {}
        self._lock = threading.Lock()

    def expect(self):
        """The id of a request to the client, and the queue that its answer will be in."""
        with self._lock:
            number = f"fixture-{next(self._numbers)}"
            self._waiting[number] = queue.SimpleQueue()
            return number, self._waiting[number]

    def hear(self, answer):
        """Pass on the answer of a client; whether one was waited for."""
        waiting = self._waiting.pop(answer.get("id"), None)
        if waiting is not None:
            waiting.put(answer)
        return waiting is not None

    def listen(self, kinds):
        """The queue of changes of these kinds."""
        changes = queue.SimpleQueue()
        with self._lock:
            self._listening[changes] = kinds
        return changes

    def leave(self, changes):
        with self._lock:
            del self._listening[changes]

    def announce(self, kind):
        with self._lock:
            for changes, kinds in self._listening.items():
                if kind in kinds:
                    changes.put(kind)


class Visit:
    """One call of a fixture: what the client sent, and how to send it something before the result."""

    def __init__(self, request, clients, *, is_modern):
        self.params = request.params
        self.arguments = request.params.get("arguments") or {}
        self.is_modern = is_modern
        self.lines = []
        self._request_id = request.id
        self._clients = clients
        self._report = None

    @property
    def meta(self):
        return self.params.get("_meta") or {}

    @property
    def capabilities(self):
        return self.meta.get(PREFIX + "clientCapabilities") or {}

    @property
    def progress_token(self):
        return self.meta.get("progressToken")

    def wants_log(self):
        return not self.is_modern or PREFIX + "logLevel" in self.meta

    def begin(self, report):
        self._report = report

    def notify(self, method, **params):
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask_client(self, request):
        number, answers = self._clients.expect()
        self._send({"jsonrpc": "2.0", "id": number, **request})
        return answers.get(timeout=SECONDS).get("result")

    def announce(self, kind):
        self._clients.announce(kind)
        return fixtures.content(fixtures.text("announced"))

    def listen(self):
        """Report the changes that the client asked for, until it is time to end."""
        wanted = self.params.get("notifications") or {}
        kinds = [kind for kind in ("tools", "prompts") if wanted.get(f"{kind}ListChanged")]
        tag = {PREFIX + "subscriptionId": str(self._request_id)}
        changes = self._clients.listen(kinds)
        try:
            accepted = {f"{kind}ListChanged": True for kind in kinds}
            self.notify("notifications/subscriptions/acknowledged", notifications=accepted, _meta=tag)
            end = time.monotonic() + LISTENING_SECONDS
            while (left := end - time.monotonic()) > 0:
                self.notify(f"notifications/{changes.get(timeout=left)}/list_changed", _meta=tag)
        except queue.Empty:
            pass
        finally:
            self._clients.leave(changes)
        return {"_meta": tag}

    def _send(self, value):
        self.lines.append(message.encode_json(value) + b"\n")
        self._report(len(self.lines), None)


class Streamed(Incoming):
    """A call whose reports of progress are the lines of its visit."""

    def encode_progress(self, done, _total):
        return self.call.arguments.lines[done - 1]


class FixtureDialect(McpDialect):
    """Kaiza's MCP dialect, which here also answers for prompts, resources and the rest."""

    def __init__(self, description, clients):
        super().__init__(description, list_ttl_ms=0)
        self._clients = clients

    def decode(self, request, conversation):
        decoded = super().decode(request, conversation)
        is_modern = decoded.conversation.modern
        visit = Visit(request, self._clients, is_modern=is_modern)
        if decoded.call is not None:
            return decoded._replace(call=self._as_call(decoded.call.tool_name, visit))
        answer = json.loads(decoded.answer)
        if "capabilities" in answer.get("result", {}):
            legacy = {} if is_modern else {"logging": {}}
            answer["result"]["capabilities"] = CAPABILITIES | legacy
            return decoded._replace(answer=message.encode_json(answer))
        if answer.get("error", {}).get("code") == message.PROTOCOL["METHOD_NOT_FOUND"][0]:
            return self._decode_fixture(request, decoded, visit)
        return decoded

    def encode(self, request_id, outcome, reply_form):
        return self._answer(request_id, outcome.output, is_modern=reply_form)

    def _decode_fixture(self, request, decoded, visit):
        method = request.method
        if visit.is_modern and method == LISTEN:
            return Decoded(decoded.conversation, call=self._as_call(method, visit))
        is_legacy_only = method in ("logging/setLevel", "resources/subscribe", "resources/unsubscribe")
        if method not in METHODS or (is_legacy_only and visit.is_modern):
            return decoded
        reply = reply_of(METHODS[method], visit)
        return decoded._replace(answer=self._answer(request.id, reply, is_modern=visit.is_modern))

    def _as_call(self, name, visit):
        return ToolCall(name, visit, None, conversational=False, reply_form=visit.is_modern, progress_token="any")

    def _answer(self, request_id, reply, *, is_modern):
        if "error" in reply:
            return message.encode_json({"jsonrpc": "2.0", "id": request_id, "error": reply["error"]})
        closing = {"resultType": "complete"} if is_modern else {}
        result = closing | reply["result"]
        if is_modern:
            result["_meta"] = dict(self.modern_meta) | result.get("_meta", {})
        return message.result(request_id, message.encode_json(result))


class FixturePipeline(Pipeline):
    """Also takes the answers of clients to requests of this server."""

    def __init__(self, dialect, clients):
        super().__init__({"mcp": lambda: dialect}, mcp_only=True)
        self._clients = clients

    def parse_line(self, line):
        value = json.loads(line) if line and line.startswith(b"{") else None
        if isinstance(value, dict) and "method" not in value and self._clients.hear(value):
            return Notification("notifications/answered", {})
        return super().parse_line(line)

    def next_action(self, parsed):
        action = super().next_action(parsed)
        return action if action.call is None else TransportAction(call=Streamed(*action.call))


class FixtureApp:
    """Runs the fixtures as an application runs tools."""

    def stamp(self, request):
        return SimpleNamespace(request=request, deadline=time.monotonic() + SECONDS)

    def answer(self, call):
        visit = call.request.arguments
        visit.begin(call.request.report_progress)
        name = call.request.tool_name
        return Outcome(name, reply_of(Visit.listen if name == LISTEN else find_tool(name), visit))

    def expire(self, call, cap="timeout"):
        error = {"code": -32603, "message": cap}
        return Outcome(call.request.tool_name, {"error": error})

    def close(self):
        pass


def find_tool(name):
    def refuse(_):
        raise fixtures.RefusalError(fixtures.INVALID_PARAMS, f"Unknown tool: {name}")

    return fixtures.TOOLS.get(name, refuse)


def reply_of(run, visit):
    try:
        return {"result": run(visit)}
    except fixtures.RefusalError as refusal:
        return {"error": refusal.error}


def get_prompt(visit):
    name = visit.params.get("name")
    if name not in fixtures.PROMPTS:
        raise fixtures.RefusalError(fixtures.INVALID_PARAMS, f"Unknown prompt: {name}")
    return fixtures.PROMPTS[name][1](visit)


def with_hints(result):
    return lambda visit: result | (CACHED if visit.is_modern else {})


METHODS = {
    "prompts/list": with_hints({"prompts": fixtures.PROMPT_ITEMS}),
    "prompts/get": get_prompt,
    "resources/list": with_hints({"resources": fixtures.RESOURCE_ITEMS}),
    "resources/templates/list": with_hints({"resourceTemplates": fixtures.TEMPLATE_ITEMS}),
    "resources/read": lambda visit: with_hints(fixtures.read_resource(visit.params.get("uri", "")))(visit),
    "completion/complete": lambda _: {"completion": {"values": [], "hasMore": False}},
    "logging/setLevel": lambda _: {},
    "resources/subscribe": lambda _: {},
    "resources/unsubscribe": lambda _: {},
}


def main():
    clients = Clients()
    description = ServerDescription("0", "Fixtures of the conformance suite.", lambda: fixtures.TOOL_ITEMS)
    dialect = FixtureDialect(description, clients)

    def make_pipeline():
        return FixturePipeline(dialect, clients)

    bound = socket.create_server(("127.0.0.1", 0))
    port = bound.getsockname()[1]
    listener = Listener(
        bound, None, lambda: print(f"listening on http://127.0.0.1:{port}", file=sys.stderr, flush=True)
    )
    return serve_http(FixtureApp, Pipelines(make_pipeline, make_pipeline), Admission(), listener)


if __name__ == "__main__":
    sys.exit(main())
