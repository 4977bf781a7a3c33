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


def state_in_the_root(root, tmp_path):
    return {"XDG_STATE_HOME": str(root / "state")}


def state_is_the_root(root, tmp_path):
    """The root is the directory that would hold this workspace's state directory."""
    (tmp_path / "kaiza").symlink_to(root)
    return {"XDG_STATE_HOME": str(tmp_path)}


def link_into_the_root(root, tmp_path):
    (tmp_path / "link").symlink_to(root / "deep")
    (root / "deep").mkdir()
    return {"XDG_STATE_HOME": str(tmp_path / "link")}


def dangling_link_into_the_root(root, tmp_path):
    (tmp_path / "link").symlink_to(root / "not-there-yet")
    return {"XDG_STATE_HOME": str(tmp_path / "link")}


def link_of_kaiza_directory(root, tmp_path):
    (tmp_path / "state").mkdir()
    (tmp_path / "state/kaiza").symlink_to(root)
    return {"XDG_STATE_HOME": str(tmp_path / "state")}


def link_of_state_directory(root, tmp_path):
    directory = state_dir.path_of(str(root))
    directory.parent.mkdir(parents=True)
    directory.symlink_to(root / "deep")
    return {}


def link_of_state_directory_to_the_root(root, tmp_path):
    directory = state_dir.path_of(str(root))
    directory.parent.mkdir(parents=True)
    directory.symlink_to(root)
    return {}


def root_is_the_home(root, tmp_path):
    return {"XDG_STATE_HOME": None, "HOME": str(root)}


def configuration_in_the_root(root, tmp_path):
    return {"XDG_CONFIG_HOME": str(root / "configuration")}


def link_of_configuration_into_the_root(root, tmp_path):
    (tmp_path / "configuration").mkdir()
    (tmp_path / "configuration/kaiza").symlink_to(root / "deep")
    return {"XDG_CONFIG_HOME": str(tmp_path / "configuration")}


def configuration_is_in_the_home(root, tmp_path):
    return {"XDG_CONFIG_HOME": None, "HOME": str(root)}


def both_are_in_the_home(root, tmp_path):
    return {"XDG_CONFIG_HOME": None, "XDG_STATE_HOME": None, "HOME": str(root)}


def relative_setting_and_root_is_the_home(root, tmp_path):
    return {"XDG_STATE_HOME": "../state", "HOME": str(root)}


CONFIGURATION_LAYOUTS = [
    configuration_in_the_root,
    link_of_configuration_into_the_root,
    configuration_is_in_the_home,
    both_are_in_the_home,
]
LAYOUTS = [
    state_in_the_root,
    state_is_the_root,
    link_into_the_root,
    dangling_link_into_the_root,
    link_of_kaiza_directory,
    link_of_state_directory,
    root_is_the_home,
    relative_setting_and_root_is_the_home,
    link_of_state_directory_to_the_root,
    *CONFIGURATION_LAYOUTS,
]


@pytest.fixture(params=LAYOUTS, ids=lambda layout: layout.__name__)
def inside(request, root, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return request.param(root, tmp_path)


@pytest.mark.parametrize("settings", [True, False], ids=["settings", "none"])
def test_a_server_whose_state_is_inside_the_workspace_does_not_start_and_prints_the_fix(root, inside, settings):
    if settings:
        (root / "kaiza.toml").write_text("")
    ended = run(root, "serve", "--workspace", str(root), **inside)
    envelope = json.loads(ended.stderr)

    assert (ended.returncode, ended.stdout) == (3, b"")
    assert envelope["error_code"] == "BOOTSTRAP_FAILURE"
    assert "export XDG_" in envelope["human_message"]
    assert str(root) not in ended.stderr.decode()


def test_the_printed_fix_works(root, inside):
    ended = run(root, "serve", "--workspace", str(root), **inside)
    line = re.search(r"export XDG_.*", json.loads(ended.stderr)["human_message"])[0]
    env = {name: value for name, value in {**os.environ, **inside}.items() if value is not None}
    again = subprocess.run(
        ["sh", "-c", f'{line}; exec "$0" -m kaiza serve --workspace "$1"', sys.executable, root],
        input=b"", capture_output=True, check=False, env=env, timeout=60,
    )  # fmt: skip

    assert (again.returncode, again.stderr) == (0, b"")


def test_doctor_reports_the_problem_with_the_same_fix(root, inside):
    served = json.loads(run(root, "serve", "--workspace", str(root), **inside).stderr)
    doctor = run(root, "doctor", "--json", **inside)
    places = [check for check in json.loads(doctor.stdout)["checks"] if check["check"] in ("state", "configuration")]
    todos = [check["todo"] for check in places if check["verdict"] == "problem"]

    assert doctor.returncode == 1
    assert set(todos) == {served["human_message"]}


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
