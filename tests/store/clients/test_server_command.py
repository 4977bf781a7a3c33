"""The command written for clients starts this installation, and no code from the client's working directory."""

import subprocess
import sys
from pathlib import Path

import pytest

from kaiza.store.clients import server_command

COMMANDS = {"installed": server_command.kaiza_command(), "module": (sys.executable, "-P", "-m", "kaiza")}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_kaiza_package_in_the_working_directory_is_not_imported(tmp_path, command):
    for directory in (tmp_path / "kaiza", tmp_path):
        directory.mkdir(exist_ok=True)
        for name in ("__init__", "__main__", "argparse", "orjson"):
            (directory / f"{name}.py").write_text("raise SystemExit('wrong kaiza')\n")
    process = subprocess.run(
        [*command, "--version"], cwd=tmp_path, capture_output=True, check=False, env={"HOME": str(tmp_path)}
    )

    assert (process.returncode, process.stdout[:6]) == (0, b"kaiza ")


def test_without_an_installed_script_the_module_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))

    assert server_command.kaiza_command() == (str(tmp_path / "python"), "-P", "-m", "kaiza")
    assert not server_command.can_start()


def test_an_absolute_xdg_state_home_is_passed_to_the_server(monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", "/s")
    env = server_command.for_workspace(Path("/w")).env
    monkeypatch.setenv("XDG_STATE_HOME", "relative")

    assert env == {"XDG_STATE_HOME": "/s"}
    assert server_command.for_workspace(Path("/w")).env == {}


def test_this_installation_can_start():
    assert server_command.can_start()
