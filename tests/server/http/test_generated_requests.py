"""Generated HTTP requests to /rpc, valid and hostile in head, framing and body, against the whole server."""

import os
import socket
import subprocess
import sys
from typing import NamedTuple

import pytest
from doors import PATIENCE, call, request
from frames import LONG, SESSION, TOOLS, frames
from http_doors import expected_status
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scenes import records

from kaiza.store.audit.verification.verify import verify_log
from kaiza.wire import message

# Five minutes, half a minute, two seconds.
EXAMPLES = 900 if LONG else 90 if os.environ.get("CI") else 6
REFUSALS = {400, 401, 403, 404, 405, 413, 415, 421, 503}
"""Statuses of answers that are no JSON-RPC message: refusals by head, and too many calls."""
TOKEN = "@TOKEN@"


class Sent(NamedTuple):
    """A request: its head without the framing, its body, and how the body is framed."""

    head: bytes
    body: bytes
    framing: str

    def encode(self):
        lengths = {"length": len(self.body), "short": len(self.body) // 2, "long": len(self.body) + 7}
        if self.framing in lengths:
            return self.head + b"Content-Length: %d\r\n\r\n%b" % (lengths[self.framing], self.body)
        if self.framing == "none":
            return self.head + b"\r\n" + self.body
        half = len(self.body) // 2
        parts = (part for part in (self.body[:half], self.body[half:]) if part)
        chunks = b"".join(b"%x;x=y\r\n%b\r\n" % (len(part), part) for part in parts)
        length = b"Content-Length: 3\r\n" if self.framing == "both" else b""
        return self.head + length + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"

    def received_body(self):
        """The body as the server has to read it; None if its end is missing or ambiguous."""
        kinds = {"length": self.body, "chunked": self.body, "short": self.body[: len(self.body) // 2], "none": b""}
        return kinds.get(self.framing)


def often(value, *others):
    """Mostly one value: a request that differs everywhere is refused for its first fault."""
    return st.sampled_from([value] * 7 * len(others) + list(others))


texts = st.text(st.characters(min_codepoint=33, max_codepoint=255), min_size=1, max_size=12)
targets = often("/rpc", "/rpc?token=x", "/rpc/", "//rpc", "/rpc/../rpc", "http://localhost/rpc", "*", "/rpc#x") | (
    st.sampled_from(TOOLS).map("/rpc/{}".format) | texts.map("/rpc/{}".format)
)
header_lines = (
    st.sampled_from(
        [
            "Accept: text/event-stream",
            "Accept-Encoding: gzip",
            "Connection: keep-alive, Upgrade",
            "Content-Encoding: gzip",
            "Content-Type: text/plain",
            "Expect: 100-continue",
            "Forwarded: host=evil",
            "Host: evil",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Name: read_file",
            "Origin: http://localhost:3000",
            "Origin: null",
            "Upgrade: h2c",
            "X-Forwarded-Host: evil",
            "X-HTTP-Method-Override: DELETE",
            " folded",
            "no colon",
        ]
    )
    | texts.map("X-Any: {}".format)
    | texts
)
heads = st.builds(
    lambda method, target, version, host, authorization, content_type, others: "".join(
        f"{line}\r\n"
        for line in (
            f"{method} {target} HTTP/{version}",
            f"Host: {host}",
            "Connection: close",
            f"Authorization: {authorization}",
            f"Content-Type: {content_type}",
            *others,
        )
    ).encode("latin-1"),
    often("POST", "GET", "OPTIONS", "post", "BREW"),
    targets,
    often("1.1", "1.0", "1.2", "0.9", "2"),
    often("localhost", "evil", "127.0.0.1:80", "localhost.", ""),
    often(f"Bearer {TOKEN}", "Bearer kz_x", f"Bearer {TOKEN} x", f"Basic {TOKEN}", ""),
    often("application/json", "application/json; charset=x", "text/plain", ""),
    st.lists(header_lines, max_size=2),
)
framings = st.sampled_from(["length", "length", "length", "chunked", "chunked", "short", "long", "none", "both"])
requests = st.builds(Sent, heads, frames, framings)


class Answer(NamedTuple):
    """One of the answers on a connection."""

    status: int
    body: bytes

    @property
    def is_rpc(self):
        return self.status == 202 or self.body.startswith(b'{"jsonrpc"')

    @property
    def value(self):
        return message.framing.decode(self.body)


def split_answers(received):
    """All answers that were received, without interim ones."""
    while received:
        head, _, received = received.partition(b"\r\n\r\n")
        status, headers = int(head.split()[1]), head.lower()
        length = headers.partition(b"content-length: ")[2].split(b"\r\n")[0]
        # Chunked answers are the last on their connection.
        size = int(length) if length else 0 if status < 200 else len(received)
        body, received = received[:size], received[size:]
        if status >= 200:
            yield Answer(status, body)


class Target:
    """A server, one token, and a session of it."""

    def __init__(self, door, workspace, token):
        self.door = door
        self.workspace = workspace
        self.token = token
        self.session = self.door.post("/rpc", call(0, "begin_session", role="WINDSURF"), **self.authorization).value[
            "result"
        ]["structuredContent"]["session_id"]
        self.called = 1

    @property
    def authorization(self):
        return {"Authorization": f"Bearer {self.token}"}

    def send(self, sent):
        """Send a request and count its calls; its answers."""
        sent = sent._replace(
            head=sent.head.replace(TOKEN.encode(), self.token.encode()),
            body=sent.body.replace(SESSION.encode(), self.session.encode()),
        )
        received = self._exchange(sent.encode(), ends=sent.framing == "long")
        answers = list(split_answers(received))
        body = sent.received_body()
        parsed = None if body is None else message.parse(body)
        is_call = isinstance(parsed, message.Request) and parsed.method == "tools/call"
        self.called += is_call and bool(answers) and answers[0].is_rpc
        return answers

    def _exchange(self, content, *, ends):
        received = b""
        with socket.create_connection((self.door.host, self.door.port), PATIENCE) as client:
            try:
                client.sendall(content)
                if ends:
                    client.shutdown(socket.SHUT_WR)
                while piece := client.recv(65536):
                    received += piece
            except ConnectionError:  # the rest of a refused request was not read
                return received
        return received


@pytest.fixture
def target(open_http, workspace):
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("needle = 1\n")
    kaiza = [sys.executable, "-m", "kaiza"]
    door = open_http([*kaiza, "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0"])
    return Target(door, workspace, make_token(kaiza, workspace))


def make_token(kaiza, workspace):
    words = [*kaiza, "token", "new", "ann", "--workspace", str(workspace)]
    return subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip()


@pytest.mark.long
@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
@given(st.lists(requests, min_size=40, max_size=60))
def test_generated_requests_are_answered_by_the_registry_or_refused_and_every_call_is_recorded(target, sent):
    for each in sent:
        for answer in target.send(each):
            assert answer.status in ({expected_status(answer)} if answer.is_rpc else REFUSALS), each

    assert target.door.post("/rpc", request(1, "ping"), **target.authorization).status == 200
    assert sum(record["kind"] == "call" for record in records(target.workspace)) == target.called
    assert verify_log(str(target.workspace)).verdict == "intact"
