"""Requests that are refused by their head or their size, in the order of the refusals."""

import gzip
import json
import os
import select
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from http_doors import JSON, HttpDoor, head, read_answer

from kaiza.server.http.admission import MAX_BODY, MAX_READ

FAKE_HTTP = Path(__file__).with_name("fake_http.py")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
MIB = 1 << 20


@pytest.fixture(scope="module")
def door():
    """One server for all tests that need no token: no request leaves anything behind."""
    door = HttpDoor([sys.executable, str(FAKE_HTTP), os.devnull, "no-auth"])
    yield door
    door.end()


def ask(door, path="/mcp", body=PING, **headers):
    return door.exchange(head(path, **{"Content_Length": len(body), **headers}) + body)


def test_health_is_answered_without_a_token_and_under_any_name(fake):
    door = fake()
    answer = door.request("GET", "/healthz", headers={"Host": "10.1.2.3"})

    assert (answer.status, answer.value) == (200, {"status": "ok"})
    assert door.request("GET", "/healthz/mcp", headers={"Host": "10.1.2.3"}).status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:9999", "[::1]", "[::1]:1"])
def test_own_names_are_allowed_with_and_without_port(door, host):
    assert ask(door, host=host)[0] == 200


@pytest.mark.parametrize(
    "host",
    [
        "",
        "localhost.evil",
        "evil.localhost",
        "localhost.",
        "localhost:",
        "localhost:x",
        "localhost:123456",
        "me@localhost",
        "localhost@evil",
        "localhost/evil",
        "localhost, evil",
        "127.0.0.1.evil",
        "127.1",
        "2130706433",
        "0.0.0.0",
        "[::1",
        "::1",
        "[::1]evil",
        "[::ffff:127.0.0.1]",
        "loc\N{CYRILLIC SMALL LETTER A}lhost".encode().decode("latin-1"),
    ],
)
def test_requests_for_other_hosts_are_refused_with_421(door, host):
    assert ask(door, host=host)[0] == 421


def test_a_named_host_and_a_named_origin_are_allowed(door):
    assert ask(door, host="kaiza.example:443")[0] == 200
    assert ask(door, Origin="https://pages.example")[0] == 200
    assert ask(door, Origin="HTTPS://Pages.Example")[0] == 200
    assert ask(door, Origin="https://kaiza.example")[0] == 200


def test_two_hosts_are_malformed_and_none_is_misdirected(door):
    two = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"

    assert door.exchange(two)[0] == 400
    assert door.exchange(b"POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n")[0] == 400
    assert door.exchange(b"POST /mcp HTTP/1.0\r\nContent-Length: 0\r\n\r\n")[0] == 421


@pytest.mark.parametrize("origin", ["http://localhost", "http://localhost:3000", "https://127.0.0.1:1", "http://[::1]"])
def test_own_origins_are_allowed(door, origin):
    assert ask(door, Origin=origin)[0] == 200


@pytest.mark.parametrize(
    "origin",
    ["null", "", "http://evil", "http://localhost.evil", "http://localhost:80/", "file://localhost",
     "localhost", "http://user@localhost", "https://pages.example.evil", "http://pages.example",
     "http://localhost http://evil"],
)  # fmt: skip
def test_other_origins_are_forbidden(door, origin):
    status, body = ask(door, Origin=origin)

    assert (status, b"--allow-origin" in body) == (403, True)


def test_two_origins_are_forbidden(door):
    lines = head(Origin="http://localhost", Content_Length=0).replace(
        b"\r\n\r\n", b"\r\nOrigin: http://localhost\r\n\r\n"
    )

    assert door.exchange(lines)[0] == 403


@pytest.mark.parametrize("path", ["/mcp", "/rpc", "/rpc/echo"])
@pytest.mark.parametrize("method", ["GET", "DELETE", "OPTIONS", "PUT", "TRACE"])
def test_other_methods_are_not_allowed(door, path, method):
    answer = door.request(method, path, headers={})

    assert (answer.status, answer.headers["Allow"]) == (405, "POST")
    assert not [name for name in answer.headers if name.lower().startswith("access-control")]


def test_a_head_request_gets_no_body(door):
    answer = door.request("HEAD", "/mcp", headers={})

    assert (answer.status, answer.body) == (405, b"")


@pytest.mark.parametrize(
    "path", ["/", "//mcp", "/mcp/", "/mcp//", "/MCP", "/mcp/../mcp", "/rpc/", "/rpc/a/b", "/healthz/", "/x", "/mcp;a"]
)
def test_other_paths_are_not_found_and_never_redirected(door, path):
    assert ask(door, path)[0] == 404


@pytest.mark.parametrize(
    "target", ["http://localhost/mcp", "http://evil/mcp", "*", "mcp", "/mcp%2f", "/%2e/mcp", "/rpc%2fecho"]
)
def test_request_targets_in_other_forms_are_not_found(door, target):
    assert ask(door, target)[0] == 404


@pytest.mark.parametrize(
    "value",
    [None, "", "sesame", "Bearer", "Bearer ", "Bearer wrong", "Basic sesame", "Bearer sesame sesame",
     "Bearer s\xe9same"],
)  # fmt: skip
def test_without_a_valid_token_nothing_is_answered(fake, value):
    door = fake()
    for path in ("/mcp", "/rpc", "/rpc/echo"):
        answer = door.request("POST", path, PING, JSON if value is None else {**JSON, "Authorization": value})

        assert (answer.status, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert door.records() == []


def test_a_token_is_taken_from_one_header_with_any_case_of_its_scheme(fake):
    door = fake()
    twice = head(Content_Length=len(PING), Authorization="Bearer sesame").replace(
        b"\r\n\r\n", b"\r\nAuthorization: Bearer sesame\r\n\r\n"
    )

    assert ask(door, Authorization="Bearer sesame")[0] == 200
    assert ask(door, Authorization="bEARER  sesame")[0] == 200
    assert door.exchange(twice + PING)[0] == 401


@pytest.mark.parametrize(
    "kind", ["application/json", "application/JSON; charset=utf-8", "application/json;profile=x", " application/json "]
)
def test_json_is_accepted_with_parameters(door, kind):
    assert ask(door, Content_Type=kind)[0] == 200


@pytest.mark.parametrize(
    "kind", [None, "", "text/plain", "application/jsonx", "application/json-rpc", "text/plain, application/json"]
)
def test_other_content_is_not_supported(door, kind):
    assert ask(door, Content_Type=kind)[0] == 415


def test_two_content_types_are_not_supported(door):
    twice = head(Content_Length=len(PING)).replace(b"\r\n\r\n", b"\r\nContent-Type: text/plain\r\n\r\n")

    assert door.exchange(twice + PING)[0] == 415


@pytest.mark.parametrize("coding", ["gzip", "br", "identity, gzip", "", "x"])
def test_encoded_bodies_are_not_supported(door, coding):
    assert ask(door, Content_Encoding=coding)[0] == 415
    assert ask(door, body=gzip.compress(PING), Content_Encoding=coding)[0] == 415


def test_a_body_that_is_not_encoded_may_say_so(door):
    assert ask(door, Content_Encoding="Identity")[0] == 200


def test_the_accept_header_is_not_required(door):
    assert ask(door, Accept="text/html")[0] == 200


@pytest.mark.rows("S3-29")
def test_a_body_of_16_mebibytes_is_read_and_a_longer_one_is_refused_under_its_id(door):
    whole = b" " * (MAX_BODY - len(PING)) + PING
    chunked = head(Transfer_Encoding="chunked") + b"%x\r\n%b\r\n0\r\n\r\n"

    assert ask(door, body=whole)[0] == 200
    assert door.exchange(chunked % (MAX_BODY, whole))[0] == 200
    for status, body in (
        ask(door, body=b" " + whole),
        door.exchange(chunked % (MAX_BODY + 1, b" " + whole)),
        ask(door, body=b" " * MAX_BODY + whole),
    ):
        answer = json.loads(body)
        assert (status, answer["id"], answer["error"]["code"]) == (400, 1, -32600)
        assert answer["error"]["data"]["details"]["cap"] == "request_bytes"


def test_a_chunked_body_without_an_end_is_cut_off(door):
    with door.connect() as client, suppress(ConnectionError):
        client.sendall(head(Transfer_Encoding="chunked"))
        sent = 0
        while sent < 8 * MAX_READ and not select.select([client], [], [], 0)[0]:
            client.sendall(b"100000\r\n" + b"x" * MIB + b"\r\n")
            sent += MIB

    assert sent < 4 * MAX_READ


def test_a_body_that_is_much_too_large_is_not_read_to_its_end(door):
    with door.connect() as client:
        client.sendall(head(Content_Length=1 << 40))
        sent = 0
        with suppress(ConnectionError):  # the server closes while more is sent
            while sent < 256 * MIB and not select.select([client], [], [], 0)[0]:
                client.sendall(b" " * MIB)
                sent += MIB
        response = client.recv(12)

    assert response == b"HTTP/1.1 413"
    assert sent < 256 * MIB


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (421, {"host": "evil"}),
        (403, {"Origin": "null"}),
        (404, {"path": "/x"}),
        (405, {"method": "PUT"}),
        (401, {"Authorization": None}),
        (415, {"Content_Type": "text/plain"}),
        (413, {"Content_Length": MAX_READ + 1}),
    ],
)
@pytest.mark.parametrize("begun", [b"", b"{"], ids=["no body", "a part of the body"])
def test_a_client_that_waits_for_the_refusal_before_it_sends_the_body_gets_it(fake, status, headers, begun):
    door = fake()
    refused = head(**{"Authorization": "Bearer sesame", "Content_Length": 50, **headers})

    assert door.exchange(refused + begun)[0] == status


def test_a_client_that_pauses_before_it_sends_the_body_is_not_cut_off(door):
    with door.connect() as client:
        client.sendall(head(Content_Length=MIB, Origin="null"))
        answer = read_answer(client)
        client.sendall(b" " * MIB)

        assert answer[0] == 403
        assert client.recv(1) == b""


def test_a_body_that_would_be_refused_is_not_asked_for(door):
    with door.connect() as client:
        client.sendall(head(Content_Length=MAX_BODY + 1, Expect="100-continue"))

        assert client.recv(12) == b"HTTP/1.1 413"


def test_refusals_come_in_a_fixed_order(fake):
    door = fake()
    wrong = {
        "host": "evil",
        "Origin": "null",
        "method": "PUT",
        "Content_Type": "text/plain",
        "Content_Length": MAX_READ + 1,
        "body": PING,
    }
    right = {"host": "localhost", "Origin": None, "method": "POST", "Authorization": "Bearer sesame"}
    right |= {"Content_Type": "application/json", "Content_Length": len(PING)}
    statuses = []
    for name in right:
        statuses.append(ask(door, **wrong)[0])
        wrong[name] = right[name]
    statuses.append(ask(door, **wrong)[0])

    assert statuses == [421, 403, 405, 401, 415, 413, 200]


def test_the_connection_is_kept_after_a_refusal(door):
    body = b" " * 5000
    with door.connect() as client:
        client.sendall(head(Content_Length=len(body), Origin="null") + body + head(Content_Length=len(PING)) + PING)
        received = b""
        while received.count(b"HTTP/1.1") < 2 or not received.endswith(b"{}}\n"):
            received += client.recv(65536)

    assert [received[9:12], received[received.rindex(b"HTTP/1.1") + 9 :][:3]] == [b"403", b"200"]
