import sys
from pathlib import Path

import pytest

FAKE_HTTP = Path(__file__).parent / "fake_http.py"


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
def served(served_http):
    """The real application in a workspace, without tokens."""
    return served_http
