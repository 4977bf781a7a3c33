"""Sessions to review on the command line, with the current directory in their workspace."""

import os
import signal

import pytest
from cli.conftest import Screen
from review_scenes import Scene, play_story


@pytest.fixture
def story(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    scene = play_story(tmp_path / "shop")
    scene.close()
    monkeypatch.chdir(scene.root)
    return scene


@pytest.fixture
def scene(tmp_path, monkeypatch):
    """A session with an approved plan."""
    scene = Scene(tmp_path / "shop")
    scene.begin()
    scene.approve()
    monkeypatch.chdir(scene.root)
    try:
        yield scene
    finally:
        scene.close()


@pytest.fixture
def at_terminal():
    """Starts a command at a terminal, in the current directory; it is killed if it is still running afterwards."""
    started = []

    def start(*words, **environment):
        kept = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "COLUMNS", "LINES"}}
        started.append(Screen(words, 120, kept | {"TERM": "xterm", **environment}, None, None))
        return started[-1]

    try:
        yield start
    finally:
        for screen in started:
            if screen.child.poll() is None:
                screen.child.send_signal(signal.SIGKILL)
                screen.child.wait()
