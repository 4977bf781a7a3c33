"""Kaiza's state is out of every agent's reach: a server does not start where a workspace holds it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scenes import make_ready

from kaiza.store.disk import state_dir


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return make_ready(tmp_path / "project")


def run(root, *words, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *words],
        cwd=root, input=b"", capture_output=True, check=False, timeout=60,
        env={name: value for name, value in env.items() if value is not None},
    )  # fmt: skip


def below(root, tmp_path):
    return {"XDG_STATE_HOME": str(root / "state")}


def the_root_itself(root, tmp_path):
    """The root is the very directory that would hold this workspace's state."""
    (tmp_path / "kaiza").symlink_to(root)
    return {"XDG_STATE_HOME": str(tmp_path)}


def by_a_link_to_it(root, tmp_path):
    (tmp_path / "link").symlink_to(root / "deep")
    (root / "deep").mkdir()
    return {"XDG_STATE_HOME": str(tmp_path / "link")}


def by_a_dangling_link(root, tmp_path):
    (tmp_path / "link").symlink_to(root / "not-there-yet")
    return {"XDG_STATE_HOME": str(tmp_path / "link")}


def by_a_link_further_down(root, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/kaiza").symlink_to(root)
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def by_its_own_link(root, tmp_path):
    place = state_dir.path_of(str(root))
    place.parent.mkdir(parents=True)
    place.symlink_to(root / "deep")
    return {}


def by_a_link_to_the_root(root, tmp_path):
    place = state_dir.path_of(str(root))
    place.parent.mkdir(parents=True)
    place.symlink_to(root)
    return {}


def at_home(root, tmp_path):
    return {"XDG_STATE_HOME": None, "HOME": str(root)}


def by_a_relative_setting(root, tmp_path):
    return {"XDG_STATE_HOME": "../state", "HOME": str(root)}


INSIDE = [below, the_root_itself, by_a_link_to_it, by_a_dangling_link, by_a_link_further_down, by_its_own_link, at_home,
          by_a_relative_setting, by_a_link_to_the_root]  # fmt: skip


@pytest.fixture(params=INSIDE, ids=lambda place: place.__name__)
def inside(request, root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return request.param(root, tmp_path)


@pytest.mark.parametrize("settings", [True, False], ids=["settings", "none"])
def test_a_server_does_not_start_and_says_which_line_moves_it(root, inside, settings):
    if settings:
        (root / "kaiza.toml").write_text("")
    told = run(root, "serve", "--workspace", str(root), **inside)
    envelope = json.loads(told.stderr)

    assert (told.returncode, told.stdout) == (3, b"")
    assert envelope["error_code"] == "BOOTSTRAP_FAILURE"
    assert "export XDG_STATE_HOME=" in envelope["human_message"]
    assert str(root) not in told.stderr.decode()


def test_the_line_does_move_it(root, inside):
    told = run(root, "serve", "--workspace", str(root), **inside)
    line = re.search(r"export XDG_STATE_HOME=\S+", json.loads(told.stderr)["human_message"])[0]
    env = {name: value for name, value in {**os.environ, **inside}.items() if value is not None}
    again = subprocess.run(
        ["sh", "-c", f'{line}; exec "$0" -m kaiza serve --workspace "$1"', sys.executable, root],
        input=b"", capture_output=True, check=False, env=env, timeout=60,
    )  # fmt: skip

    assert (again.returncode, again.stderr) == (0, b"")


def test_doctor_calls_it_a_problem_with_the_same_line(root, inside):
    served = json.loads(run(root, "serve", "--workspace", str(root), **inside).stderr)
    told = run(root, "doctor", "--json", **inside)
    (state,) = [one for one in json.loads(told.stdout)["checks"] if one["check"] == "state"]

    assert (told.returncode, state["verdict"]) == (1, "problem")
    assert state["todo"] == served["human_message"]


def test_the_state_of_one_workspace_may_not_be_inside_another(root, tmp_path):
    other = make_ready(tmp_path / "other")
    place = state_dir.path_of(str(root))
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(other / "deep")
    told = run(root, "serve", "--workspace", str(root), "--workspace", str(other))

    assert json.loads(told.stderr)["error_code"] == "BOOTSTRAP_FAILURE"


def test_where_nothing_is_outside_a_narrower_workspace_is_asked_for(root):
    told = run(root, "serve", "--workspace", "/")
    envelope = json.loads(told.stderr)

    assert (told.returncode, envelope["error_code"]) == (3, "BOOTSTRAP_FAILURE")
    assert "narrower" in envelope["human_message"]


@pytest.mark.parametrize("place", ["project-state", "projec", "state"])
def test_beside_a_workspace_is_not_inside(root, tmp_path, place):
    told = run(root, "serve", "--workspace", str(root), XDG_STATE_HOME=str(tmp_path / place))

    assert (told.returncode, told.stderr) == (0, b"")
    assert sorted(path.name for path in Path(root).iterdir()) == ["audit", "plans"]


def test_a_freeze_needs_no_better_place(root):
    assert run(root, "freeze", "now", XDG_STATE_HOME=str(root / "state")).returncode == 0
