"""The sandbox of a check: programs installed below the home directory run in it, and nothing else there is seen."""

import os

import pytest
from agents import checking

from kaiza.store.checks import sandbox

pytestmark = pytest.mark.skipif(
    sandbox.find_bubblewrap("/dev/null/none") is None, reason="bubblewrap is missing, or cannot make a sandbox here"
)


def install(directory, name):
    directory.mkdir(parents=True)
    (directory / name).write_text(f"#!/bin/sh\necho {name} runs\n")
    (directory / name).chmod(0o755)


def test_programs_below_the_home_directory_run_but_nothing_else_of_it_is_seen(
    make_app, workspace, tmp_path, monkeypatch
):
    home = tmp_path / "home"
    install(home / ".cargo" / "bin", "cargo-tool")
    install(home / "opt" / "bin", "own-tool")
    (home / ".cargo" / "credentials.toml").write_text("secret")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{home}/opt/bin:{home}/.cargo/bin:{os.environ['PATH']}")
    script = """
import os, subprocess
for name in ("cargo-tool", "own-tool"):
    print(subprocess.run([name], capture_output=True, text=True).stdout.strip())
home = os.environ["HOME"]
print(sorted(os.listdir(home)), os.listdir(home + "/.cargo"), os.listdir(home + "/opt"))
"""
    output = checking(make_app(workspace, allowed=("allow_checks",)), workspace)(script).output
    lines = output["results"][0]["output"].splitlines()

    assert lines == ["cargo-tool runs", "own-tool runs", "['.cargo', 'opt'] ['bin'] ['bin']"]
