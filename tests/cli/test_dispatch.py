"""The command line as a whole: help, mistakes, and what a start costs."""

import argparse
import re
import subprocess
import sys
from importlib import import_module

import pytest

from kaiza.cli import dispatch


def commands_below(name):
    """A command and every command that its help lists below it."""
    parser = argparse.ArgumentParser()
    import_module(dispatch.COMMANDS[name][0]).add(parser)
    waiting, found = [(name, parser)], []
    while waiting:
        here, parser = waiting.pop()
        found.append(here)
        nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        waiting += [(f"{here} {word}", below) for action in nested for word, below in action.choices.items()]
    return found


@pytest.mark.parametrize("name", dispatch.COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(kaiza, name):
    for command in commands_below(name):
        told = kaiza(*command.split(), "--help")
        example = re.search(r"\nexample:\n(.*)", told.out, re.DOTALL)

        assert (told.status, told.err) == (0, "")
        assert example
        assert f"kaiza {command}" in example[1]


def test_the_commands_about_the_record_are_all_there():
    assert {f"audit {word}" for word in ("verify", "show", "tail", "head", "export", "accept")} < set(
        commands_below("audit")
    )


def test_the_overview_lists_every_command(kaiza):
    told = kaiza("--help")

    assert told.status == 0
    assert all(re.search(rf"^  {name} ", told.out, re.MULTILINE) for name in dispatch.COMMANDS)


@pytest.mark.parametrize("words", [[], ["verify"], ["--frobnicate"], ["audit"], ["audit", "verifi"], ["caps", "x"]])
def test_a_wrong_command_line_is_2_and_said_on_standard_error(kaiza, words):
    told = kaiza(*words)

    assert (told.status, told.out) == (2, "")
    assert told.err


def test_a_near_miss_gets_a_hint(kaiza):
    assert "kaiza audit" in kaiza("adit").err


def test_the_version_is_the_packages(kaiza):
    assert kaiza("--version").out == "kaiza 0.1.0\n"


def test_windows_is_refused_with_a_message(kaiza, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    told = kaiza("caps")

    assert (told.status, told.out) == (3, "")
    assert "Windows" in told.err


def test_a_start_imports_nothing_heavy_and_no_other_command(tmp_path):
    program = (
        "import sys; from kaiza.cli import dispatch, serve; serve.parse_options(['--workspace', '.']);"
        "serve._find_roots(('.',)); import kaiza.server.serve;"
        "print(*sorted(name for name in sys.modules))"
    )
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=tmp_path)
    loaded = told.stdout.decode()

    heavy = {"jsonschema", "pydantic", "mcp", "asyncio", "dataclasses", "hypothesis", "kaiza.render"}
    assert not heavy & set(loaded.split())
    assert {name for name in loaded.split() if name.startswith("kaiza.cli.")} == {
        "kaiza.cli.dispatch",
        "kaiza.cli.console.arguments",
        "kaiza.cli.serve",
    }


def test_names_that_the_locale_cannot_write_are_spelled_out(written, body, workspace, process):
    written(body(arguments={"path": "文件.py"}))
    told = process("audit", "show", env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"}, cwd=workspace)

    assert told.returncode == 0
    assert b"\\u6587\\u4ef6.py" in told.stdout
