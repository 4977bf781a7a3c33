import sys
from pathlib import Path

import pytest
from doors import Door, Fifo

FAKE_APP = Path(__file__).parent / "fake_app.py"


@pytest.fixture
def open_door():
    doors = []

    def open_one(command, record=None, **options):
        doors.append(Door(command, record, **options))
        return doors[-1]

    yield open_one
    for door in doors:
        door.process.kill()
        door.process.wait()
        for pipe in (door.process.stdin, door.process.stdout, door.process.stderr):
            if pipe:
                pipe.close()


@pytest.fixture
def fake(open_door, tmp_path):
    """Start a server with the fake application."""

    def start(*arguments, **options):
        record = tmp_path / "record"
        return open_door([sys.executable, str(FAKE_APP), str(record), *arguments], record, **options)

    return start


@pytest.fixture
def door(fake):
    return fake()


@pytest.fixture
def make_fifo(tmp_path):
    fifos = []

    def make():
        fifos.append(Fifo(tmp_path / f"fifo-{len(fifos)}"))
        return fifos[-1]

    yield make
    for fifo in fifos:
        fifo.close()


@pytest.fixture
def fifo(make_fifo):
    return make_fifo()


@pytest.fixture
def served_stdio(open_door, workspace):
    """The real application in a workspace."""
    return open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)])


@pytest.fixture
def served_http(open_http, workspace):
    """The real application in a workspace, without tokens."""
    return open_http(
        [sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace), "--http", "127.0.0.1:0", "--no-auth"]
    )
