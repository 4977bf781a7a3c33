"""A model on loopback that plays a script: four vendors' APIs in front of one generator.

The script is a generator. Its first yield gets the client's first request as `Seen`; then it yields `Call`s, and gets
what the client handed on for each. When it returns, the model says "done". Requests that offer no tools (titles,
summaries) are answered with a word and are no part of the script.
"""

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from clients.model_apis import APIS

MAX_STEPS = 400


class Call(NamedTuple):
    """A tool call that the model makes, with the name as the client offers it."""

    name: str
    arguments: dict[str, Any]


class Seen(NamedTuple):
    """What the client sent to the model: the result of the last call as text, and the tools it offers."""

    result: str
    tools: frozenset[str]


@dataclass
class ScriptedModel:
    """Plays one script; `error` is the exception with which it ended, if any."""

    script: Any
    error: BaseException | None = None
    is_done: bool = False
    steps: int = 0
    requests: int = 0
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, path: str, body: dict[str, Any]) -> tuple[str, bytes] | None:
        """Content type and bytes of the answer; None if no API has this path."""
        api = next((each for each in APIS if each.serves(path)), None)
        if api is None:
            return None
        with self._turn:
            self.requests += 1
            tools = api.tools(body)
            step = self._next_step(Seen(api.last_result(body), tools)) if tools else "ok"
            return api.encode(path, body, step if isinstance(step, str) else tuple(step), self.requests)

    def _next_step(self, seen: Seen) -> Call | str:
        if self.is_done:
            return "done"
        try:
            self.steps += 1
            if self.steps == 1:
                next(self.script)
            assert self.steps <= MAX_STEPS, "the script does not end"
            return self.script.send(seen)
        except StopIteration:
            pass
        except Exception as error:  # noqa: BLE001  the test raises it again
            self.error = error
        self.is_done = True
        return "done"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Any

    def do_GET(self):
        self._send(200, "application/json", b'{"data": [], "models": []}')

    def do_HEAD(self):
        self.do_GET()

    def do_POST(self):
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.model.answer(self.path.partition("?")[0], json.loads(content or b"{}"))
        self._send(200, *(answer or ("application/json", b"{}")))

    def _send(self, status, kind, content):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_):
        """Nothing is logged."""


@contextmanager
def playing(script):
    """The model and its address for as long as the context lasts."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.model = ScriptedModel(script)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.model, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
