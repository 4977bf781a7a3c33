import sys
from pathlib import Path

import pytest
from http_doors import HttpDoor

FAKE_HTTP = Path(__file__).parent / "fake_http.py"


@pytest.fixture
def open_http():
    doors = []

    def open_one(command, record=None, **options):
        doors.append(HttpDoor(command, record, **options))
        return doors[-1]

    yield open_one
    for door in doors:
        door.process.kill()
        door.process.wait()
        door.process.stderr.close()


@pytest.fixture
def fake(open_http, tmp_path):
    """Start the HTTP server with the fake application."""

    def start(*options):
        record = tmp_path / "record"
        return open_http([sys.executable, str(FAKE_HTTP), str(record), *options], record)

    return start


@pytest.fixture
def door(fake):
    """A server that asks for no token."""
    return fake("no-auth")


@pytest.fixture
def served(open_http, workspace):
    """The real application in a workspace, without tokens."""
    return open_http(
        [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0", "--no-auth"]
    )
