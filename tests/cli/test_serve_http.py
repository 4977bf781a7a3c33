"""`kaiza serve --http`: addresses, certificates, and what protects them."""

import json
import resource
import socket
import ssl
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from doors import until

from kaiza.server.http.connection import MAX_SOCKETS


@pytest.fixture
def open_server(open_http, workspace):
    return lambda *words: open_http([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), *words])


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Files of a self-signed certificate for localhost and of its key, clear and encrypted."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + timedelta(days=1))
    names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
    signed = builder.add_extension(names, critical=True).sign(key, hashes.SHA256())
    directory = tmp_path_factory.mktemp("tls")
    (directory / "cert.pem").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    for file, how in (
        ("key.pem", serialization.NoEncryption()),
        ("locked.pem", serialization.BestAvailableEncryption(b"secret")),
    ):
        form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, how)
        (directory / file).write_bytes(key.private_bytes(*form))
    return directory


def test_the_server_prints_its_url_and_stops_with_0(open_server):
    door = open_server("--http", "localhost:0", "--no-auth")

    assert door.port > 0
    assert b"No token" in door.process.stderr.readline()
    assert door.end() == 0


def test_every_name_of_the_command_line_is_allowed(open_server):
    door = open_server("--http", "127.0.0.1:0", "--allow-host", "Box.example:80", "--allow-origin", "https://a.example")
    headers = {"Host": "box.example", "Origin": "https://A.example"}

    assert door.request("POST", "/mcp", b"", headers).status == 401
    assert door.request("POST", "/mcp", b"", {**headers, "Origin": "https://b.example"}).status == 403


def test_a_server_behind_a_proxy_listens_everywhere_and_asks_for_tokens(open_server):
    door = open_server("--http", "0.0.0.0:0", "--behind-tls-proxy")

    assert door.post("/mcp", b"").status == 421
    assert door.request("POST", "/mcp", b"", {"Host": "localhost"}).status == 401


def open_tls(open_server, certificate):
    files = ["--tls-cert", str(certificate / "cert.pem"), "--tls-key", str(certificate / "key.pem")]
    return open_server("--http", "127.0.0.1:0", "--no-auth", *files)


def exchange_tls(door, certificate, sent):
    """Send bytes over TLS; the first part of the answer."""
    trusting = ssl.create_default_context(cafile=certificate / "cert.pem")
    with (
        socket.create_connection(("127.0.0.1", door.port), 20) as plain,
        trusting.wrap_socket(plain, server_hostname="localhost") as client,
    ):
        client.sendall(sent)
        return client.recv(1000)


def test_tls_is_spoken_with_a_certificate(open_server, certificate):
    door = open_tls(open_server, certificate)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}' + b" " * 900_000
    request = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    answer = exchange_tls(door, certificate, request % len(body) + body)

    assert door.scheme == "https"
    assert answer.startswith(b"HTTP/1.1 200")
    assert door.end() == 0


def test_tls_handshakes_that_are_never_completed_do_not_use_up_the_descriptors(open_server, certificate):
    door = open_tls(open_server, certificate)
    descriptors = Path(f"/proc/{door.process.pid}/fd")
    with ExitStack() as stack:
        for number in range(MAX_SOCKETS + 50):
            stack.enter_context(socket.create_connection(("127.0.0.1", door.port), 20))
            until(lambda number=number: len(list(descriptors.iterdir())) > min(number, MAX_SOCKETS))
        most = len(list(descriptors.iterdir()))
    until(lambda: len(list(descriptors.iterdir())) < MAX_SOCKETS // 2)

    assert most < MAX_SOCKETS + 40
    assert exchange_tls(door, certificate, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(
        b"HTTP/1.1 200"
    )


GET_HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
SILENT = 600


def open_silent(door, stack):
    """Connections that send nothing."""
    for _ in range(SILENT):
        stack.enter_context(socket.create_connection(("127.0.0.1", door.port), 20))


def open_wordless(door, stack):
    """Connections that open TLS and then send nothing."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    for _ in range(SILENT):
        plain = socket.create_connection(("127.0.0.1", door.port), 20)
        stack.enter_context(trusting.wrap_socket(plain, server_hostname="localhost"))


def open_unclosed(door, stack):
    """Connections that got their answer and do not close TLS."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    for _ in range(SILENT):
        plain = socket.create_connection(("127.0.0.1", door.port), 20)
        client = stack.enter_context(trusting.wrap_socket(plain, server_hostname="localhost"))
        client.sendall(GET_HEALTH)


@pytest.mark.parametrize("open_idle", [open_silent, open_wordless, open_unclosed])
def test_requests_over_tls_are_answered_beside_any_number_of_idle_connections(open_server, certificate, open_idle):
    door = open_tls(open_server, certificate)
    own, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(own, min(2 * SILENT, most)), most))
    try:
        with ExitStack() as stack:
            open_idle(door, stack)
            answers = [exchange_tls(door, certificate, GET_HEALTH) for _ in range(48)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (own, most))

    assert [answer[:12] for answer in answers] == [b"HTTP/1.1 200"] * 48
    assert door.end() == 0


@pytest.mark.parametrize(
    "words",
    [
        ["--http", "0.0.0.0:0"],
        ["--http", "[::]:0"],
        ["--http", "0.0.0.0:0", "--no-auth"],
        ["--http", "0.0.0.0:0", "--no-auth", "--behind-tls-proxy"],
        ["--http", "0.0.0.0:0", "--no-auth", "--tls-cert", "{cert}", "--tls-key", "{key}"],
        ["--http", "0.0.0.0:0", "--behind-tls-proxy", "--deterministic"],
        ["--http", "127.0.0.1:0", "--tls-cert", "{cert}", "--tls-key", "{locked}"],
        ["--http", "127.0.0.1:0", "--tls-cert", "{cert}", "--tls-key", "{cert}"],
        ["--http", "127.0.0.1:0", "--tls-cert", "/nothing", "--tls-key", "{key}"],
        ["--http", "127.0.0.1:0", "--allow-host", "https://box.example"],
        ["--http", "127.0.0.1:0", "--allow-host", ""],
        ["--http", "127.0.0.1:0", "--allow-origin", "box.example"],
        ["--http", "127.0.0.1:0", "--allow-origin", "https://box.example/"],
        ["--http", "127.0.0.1:0", "--allow-origin", "null"],
        ["--http", "127.0.0.1:{used}", "--no-auth"],
        ["--http", "no.such.name.invalid:0"],
    ],
)
def test_a_server_that_would_not_be_protected_or_reached_does_not_start(workspace, certificate, words):
    with socket.create_server(("127.0.0.1", 0)) as used:
        files = {"cert": certificate / "cert.pem", "key": certificate / "key.pem", "locked": certificate / "locked.pem"}
        named = [word.format(used=used.getsockname()[1], **files) for word in words]
        command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), *named]
        ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)

    assert ended.returncode == 3
    assert json.loads(ended.stderr)["error_code"] == "BOOTSTRAP_FAILURE"


def test_an_application_that_cannot_be_built_is_a_failed_start(open_server, workspace):
    door = open_server("--http", "127.0.0.1:0", "--no-auth")
    begin = {"name": "begin_session", "arguments": {"role": "WINDSURF"}}
    door.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": begin})
    door.end()
    words = ["--workspace", str(workspace), "--http", "127.0.0.1:0", "--no-auth", "--deterministic"]
    command = [sys.executable, "-m", "kaiza", "serve", *words]
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60)

    assert ended.returncode == 3
    assert json.loads(ended.stderr)["error_code"] == "BOOTSTRAP_FAILURE"
