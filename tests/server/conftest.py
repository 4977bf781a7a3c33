import sys
from pathlib import Path

import pytest
from doors import Door, Fifo

FAKE_APP = Path(__file__).parent / "fake_app.py"


@pytest.fixture
def open_door():
    doors = []

    def opened(command, record=None, **options):
        doors.append(Door(command, record, **options))
        return doors[-1]

    yield opened
    for door in doors:
        door.process.kill()
        door.process.wait()
        for pipe in (door.process.stdin, door.process.stdout, door.process.stderr):
            if pipe:
                pipe.close()


@pytest.fixture
def fake(open_door, tmp_path):
    """Start the fake application with these words."""

    def start(*words, **options):
        record = tmp_path / "record"
        return open_door([sys.executable, str(FAKE_APP), str(record), *words], record, **options)

    return start


@pytest.fixture
def door(fake):
    return fake()


@pytest.fixture
def make_fifo(tmp_path):
    made = []

    def make():
        made.append(Fifo(tmp_path / f"fifo-{len(made)}"))
        return made[-1]

    yield make
    for fifo in made:
        fifo.close()


@pytest.fixture
def fifo(make_fifo):
    return make_fifo()
