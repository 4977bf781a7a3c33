"""The command line as a whole: help, usage errors, and what starting the server imports."""

import argparse
import re
import subprocess
import sys
from importlib import import_module

import pytest

from kaiza.cli import dispatch


def commands_below(name):
    """A command and all its subcommands."""
    parser = argparse.ArgumentParser()
    import_module(dispatch.COMMANDS[name][0]).add(parser)
    waiting, commands = [(name, parser)], []
    while waiting:
        command, parser = waiting.pop()
        commands.append(command)
        nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        waiting += [(f"{command} {word}", below) for action in nested for word, below in action.choices.items()]
    return commands


@pytest.mark.parametrize("name", dispatch.COMMANDS)
def test_every_command_has_help_with_an_example_of_itself(kaiza, name):
    for command in commands_below(name):
        result = kaiza(*command.split(), "--help")
        example = re.search(r"\nexample:\n(.*)", result.out, re.DOTALL)

        assert (result.status, result.err) == (0, "")
        assert example
        assert f"kaiza {command}" in example[1]


def test_the_overview_lists_every_command(kaiza):
    result = kaiza("--help")

    assert result.status == 0
    assert all(re.search(rf"^  {name} ", result.out, re.MULTILINE) for name in dispatch.COMMANDS)


@pytest.mark.parametrize("words", [[], ["verify"], ["--frobnicate"], ["audit"], ["audit", "verifi"], ["caps", "x"]])
def test_a_usage_error_exits_with_2_and_is_printed_on_standard_error(kaiza, words):
    result = kaiza(*words)

    assert (result.status, result.out) == (2, "")
    assert result.err


def test_a_misspelled_command_gets_a_suggestion(kaiza):
    assert "kaiza audit" in kaiza("adit").err


def test_version_prints_the_version_of_the_package(kaiza):
    assert kaiza("--version").out == kaiza("version").out == "kaiza 0.2.0\n"
    assert "--version" in kaiza("--help").out


def test_windows_is_refused_with_a_message(kaiza, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    result = kaiza("caps")

    assert (result.status, result.out) == (3, "")
    assert "Windows" in result.err


def test_starting_the_server_imports_no_other_command_and_no_slow_module(tmp_path):
    program = (
        "import sys; from kaiza.cli import dispatch, serve; serve.parse_options(['--workspace', '.']);"
        "serve._find_roots(('.',)); import kaiza.server.serve;"
        "print(*sorted(name for name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, cwd=tmp_path)
    loaded = result.stdout.decode()

    heavy = {
        "jsonschema",
        "pydantic",
        "mcp",
        "asyncio",
        "starlette",
        "uvicorn",
        "dataclasses",
        "hypothesis",
        "kaiza.render",
    }
    assert not heavy & set(loaded.split())
    assert {name for name in loaded.split() if name.startswith("kaiza.cli.")} == {
        "kaiza.cli.dispatch",
        "kaiza.cli.console",
        "kaiza.cli.console.arguments",
        "kaiza.cli.serve",
    }


def test_names_that_the_encoding_lacks_are_escaped(write_log, body, workspace, process):
    write_log(body(arguments={"path": "文件.py"}))
    result = process("audit", "show", env={"PYTHONIOENCODING": "ascii", "PATH": "/usr/bin"}, cwd=workspace)

    assert result.returncode == 0
    assert b"\\u6587\\u4ef6.py" in result.stdout
