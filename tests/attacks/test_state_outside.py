"""State directory outside of every workspace: a server does not start if a workspace contains it."""

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


def run(root, *arguments, **environment):
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *arguments],
        cwd=root, input=b"", capture_output=True, check=False, timeout=60,
        env={name: value for name, value in env.items() if value is not None},
    )  # fmt: skip


# Links to make, each to its target; and the environment.
LAYOUTS = {
    "state in the root": ({}, {"XDG_STATE_HOME": "{root}/state"}),
    "root would hold the state directory": ({"kaiza": "{root}"}, {"XDG_STATE_HOME": "{tmp}"}),
    "link into the root": ({"link": "{root}/deep"}, {"XDG_STATE_HOME": "{tmp}/link"}),
    "link of Kaiza's directory": ({"other/kaiza": "{root}"}, {"XDG_STATE_HOME": "{tmp}/other"}),
    "link of the state directory": ({"{state}": "{root}/deep"}, {}),
    "link of the state directory to the root": ({"{state}": "{root}"}, {}),
    "root is the home": ({}, {"XDG_STATE_HOME": None, "HOME": "{root}"}),
    "relative setting, and root is the home": ({}, {"XDG_STATE_HOME": "../state", "HOME": "{root}"}),
    "configuration in the root": ({}, {"XDG_CONFIG_HOME": "{root}/configuration"}),
    "link of the configuration": ({"config/kaiza": "{root}/deep"}, {"XDG_CONFIG_HOME": "{tmp}/config"}),
    "configuration is in the home": ({}, {"XDG_CONFIG_HOME": None, "HOME": "{root}"}),
    "both are in the home": ({}, {"XDG_CONFIG_HOME": None, "XDG_STATE_HOME": None, "HOME": "{root}"}),
}


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def inside(request, root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    places = {"root": root, "tmp": tmp_path, "state": state_dir.path_of(str(root))}
    links, environment = request.param
    for link, target in links.items():
        path = tmp_path / link.format(**places)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target.format(**places))
    return {name: value and value.format(**places) for name, value in environment.items()}


def test_a_server_whose_state_is_inside_the_workspace_does_not_start_and_prints_the_fix_that_works(root, inside):
    ended = run(root, "serve", "--workspace", str(root), **inside)
    envelope = json.loads(ended.stderr)
    doctor = run(root, "doctor", "--json", **inside)
    places = [check for check in json.loads(doctor.stdout)["checks"] if check["check"] in ("state", "configuration")]
    line = re.search(r"export XDG_.*", envelope["human_message"])[0]
    env = {name: value for name, value in {**os.environ, **inside}.items() if value is not None}
    again = subprocess.run(
        ["sh", "-c", f'{line}; exec "$0" -m kaiza serve --workspace "$1"', sys.executable, root],
        input=b"", capture_output=True, check=False, env=env, timeout=60,
    )  # fmt: skip

    assert (ended.returncode, ended.stdout, envelope["error_code"]) == (3, b"", "BOOTSTRAP_FAILURE")
    assert str(root) not in ended.stderr.decode()
    assert doctor.returncode == 1
    assert {check["todo"] for check in places if check["verdict"] == "problem"} == {envelope["human_message"]}
    assert (again.returncode, again.stderr) == (0, b"")


def test_the_state_of_one_workspace_must_not_be_inside_another(root, tmp_path):
    other = make_ready(tmp_path / "other")
    directory = state_dir.path_of(str(root))
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.symlink_to(other / "deep")
    ended = run(root, "serve", "--workspace", str(root), "--workspace", str(other))

    assert json.loads(ended.stderr)["error_code"] == "BOOTSTRAP_FAILURE"


def test_a_workspace_with_no_directory_outside_of_it_is_asked_to_be_narrower(root):
    ended = run(root, "serve", "--workspace", "/")
    envelope = json.loads(ended.stderr)

    assert (ended.returncode, envelope["error_code"]) == (3, "BOOTSTRAP_FAILURE")
    assert "narrower" in envelope["human_message"]


@pytest.mark.parametrize("directory", ["project-state", "projec", "state"])
def test_a_state_directory_beside_the_workspace_is_accepted(root, tmp_path, directory):
    ended = run(root, "serve", "--workspace", str(root), XDG_STATE_HOME=str(tmp_path / directory))

    assert (ended.returncode, ended.stderr) == (0, b"")
    assert sorted(path.name for path in Path(root).iterdir()) == ["audit", "plans"]


def test_a_freeze_works_with_the_state_inside_the_workspace(root):
    assert run(root, "freeze", "now", XDG_STATE_HOME=str(root / "state")).returncode == 0
