"""Drives a server process over HTTP: whole requests through `post`, hostile bytes through a socket."""

import http.client
import json
import re
import socket
import subprocess
from contextlib import contextmanager

from doors import PATIENCE

from kaiza.domain.error_codes import SYSTEM_ERROR_CODES

JSON = {"Content-Type": "application/json"}
V0_CODES = {
    "cache_missing": "CONTEXT_CACHE_MISSING",
    "cache_invalid": "CONTEXT_CACHE_INVALID",
    "invalid_query": "CONTEXT_QUERY_INVALID",
    "invalid_budget": "CONTEXT_BUDGET_INVALID",
    "io_error": "CONTEXT_IO_ERROR",
    "internal_error": "INTERNAL_ERROR",
}
MODERN = "2026-07-28"


class Answer:
    """Status, headers and body of a response."""

    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    @property
    def value(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.value["error"]


class HttpDoor:
    """A server process that listens on a loopback port."""

    def __init__(self, command, record=None, **options):
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options)
        self.record = record
        line = self.process.stderr.readline().decode()
        listening = re.fullmatch(r"listening on (https?)://(?:\[(.+)\]|(.+)):(\d+)\n", line)
        if not listening:
            self.process.kill()  # else it would go on listening
        assert listening, line + self.process.stderr.read().decode()
        self.scheme, self.host, self.port = listening[1], listening[2] or listening[3], int(listening[4])

    @property
    def url(self):
        return f"{self.scheme}://{self.host}:{self.port}"

    def request(self, method, path, body=None, headers=JSON):
        """One request on a connection of its own."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, body, headers)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def post(self, path, message, **headers):
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.request("POST", path, body, {**JSON, **named})

    @contextmanager
    def connect(self):
        """A connected socket."""
        with socket.create_connection((self.host, self.port), PATIENCE) as client:
            yield client

    def exchange(self, *pieces):
        """Send bytes as they are; everything that the server sends until it closes, or until the first answer ends."""
        with self.connect() as client:
            for piece in pieces:
                client.sendall(piece)
            return read_answer(client)

    def records(self):
        return [json.loads(line) for line in self.record.read_text().splitlines()] if self.record.exists() else []

    def end(self):
        """Stop the server if it runs, and return its exit status."""
        self.process.terminate()
        self.process.wait(PATIENCE)
        self.process.stderr.close()
        return self.process.returncode


def read_answer(client):
    """Status and body of the next answer; status 0 if the connection ended without one."""
    response = http.client.HTTPResponse(client)
    try:
        response.begin()
        return response.status, response.read()
    except (http.client.BadStatusLine, ConnectionResetError):
        return 0, b""


def head(path="/mcp", method="POST", version="1.1", host="localhost", **headers):
    """The head of a request, as bytes. A header whose value is None is left out."""
    fields = {"Host": host, **JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    lines = [f"{method} {path} HTTP/{version}", *(f"{name}: {v}" for name, v in fields.items() if v is not None)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def modern(number, method, /, *, capabilities=None, version=MODERN, **params):
    """A request without a handshake, and the headers that go with it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
    }
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
    headers = {"MCP_Protocol_Version": version, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return message, headers


def expected_status(answer):
    """The HTTP status that the registry has for the answer's error code."""
    if not answer.body:
        return 202
    error, result = answer.value.get("error"), answer.value.get("result", {})
    if error is None and not result.get("isError"):
        return 200
    data = error["data"] if error is not None else json.loads(result["content"][0]["text"])
    details = data.get("details", {})
    v0 = data.get("error", details.get("error", {})).get("code")
    codes = (data.get("error_code"), details.get("envelope", {}).get("error_code"), details.get("reason"))
    known = [code for code in (*codes, V0_CODES.get(v0)) if code in SYSTEM_ERROR_CODES]
    return SYSTEM_ERROR_CODES[known[0] if known else {"not_found": "TOOL_NOT_FOUND"}[data["errorType"]]].http
