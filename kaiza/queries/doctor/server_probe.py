"""Probes a server: starts one as a client does, or asks the one at the address in a client's configuration."""

import http.client
import os
import subprocess
from collections.abc import Iterator
from urllib.parse import urlsplit

import orjson

from kaiza.domain.server_url import parse_url
from kaiza.queries.doctor.check import DoctorCheck, ok, problem
from kaiza.render.terminal import escape
from kaiza.store.clients.client import ServerCommand
from kaiza.wire.protocol_versions import HANDSHAKE_VERSIONS

_TIMEOUT_SECONDS = 20
_HTTP_TIMEOUT_SECONDS = 3
_MAX_HEALTH = 200
_CLIENT_ENVIRONMENT = ("HOME", "PATH", "LANG")
_SERVER_NAME = "kaiza"
_HEALTHY = b'{"status":"ok"}'
_HANDSHAKE = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": {},
            "clientInfo": {"name": "kaiza-doctor", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def check_server(fault: str | None) -> Iterator[DoctorCheck]:
    """The result of `probe_server` as a check."""
    if fault is None:
        yield ok("server", "`kaiza serve` answers a client, and lists its tools")
    else:
        message = f"`kaiza serve` does not answer a client: {fault}"
        yield problem("server", message, "Run `kaiza serve` in a terminal: it says why, or waits for input.")


def probe_server(server: ServerCommand) -> str | None:
    """Start the server and list its tools; None if it answers as a client expects, else the reason."""
    requests = b"".join(orjson.dumps(message) + b"\n" for message in _HANDSHAKE)
    environment = {name: os.environ[name] for name in _CLIENT_ENVIRONMENT if name in os.environ} | dict(server.env)
    try:
        done = subprocess.run(  # noqa: S603  our own command
            [server.command, *server.args, "--no-runs"],
            input=requests,
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {_TIMEOUT_SECONDS} seconds"
    except OSError as error:
        return f"it cannot be started: {error.strerror}"
    if not done.returncode and _is_complete(done.stdout):
        return None
    return _read_reason(done.stderr) or f"it ended with status {done.returncode}"


def probe_url(url: str) -> str | None:
    """Ask a server on this machine for its health; None if it is healthy, or on another machine."""
    try:
        server = parse_url(url)
    except ValueError:
        return None
    # An agent may have written the address: no other machine is contacted.
    if not server.is_loopback or server.is_encrypted:
        return None
    connection = http.client.HTTPConnection(urlsplit(server.url).netloc, timeout=_HTTP_TIMEOUT_SECONDS)
    try:
        connection.request("GET", "/healthz")
        answer = connection.getresponse().read(_MAX_HEALTH)
    except (OSError, http.client.HTTPException) as error:
        return escape(str(error) or type(error).__name__)
    finally:
        connection.close()
    return None if answer == _HEALTHY else "another program answers"


def _is_complete(answers: bytes) -> bool:
    """Whether the lines are Kaiza's answers: its name, and its tools."""
    try:
        opening, listing = (orjson.loads(line)["result"] for line in answers.splitlines())
        return opening["serverInfo"]["name"] == _SERVER_NAME and len(listing["tools"]) > 0
    except (LookupError, TypeError, ValueError):
        return False


def _read_reason(errors: bytes) -> str | None:
    """The message of the envelope with which a server fails to start."""
    try:
        return escape(str(orjson.loads(errors)["human_message"]))
    except (LookupError, TypeError, ValueError):
        return None
