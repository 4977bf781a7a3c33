"""A command is carried out: whatever ends it early becomes a sentence and an exit status, never a trace."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from kaiza.cli.console import output
from kaiza.domain import errors


def run(name: str, module: str, argv: Sequence[str]) -> int:
    """Parse a command's words, run it, and say how it ended."""
    _escape_unencodable_names()
    parser = argparse.ArgumentParser(prog=f"kaiza {name}", allow_abbrev=False)
    import_module(module).add(parser)
    args, more = parser.parse_known_args(argv)
    if more:
        args.parser.error(f"unrecognized arguments: {' '.join(more)}")
    status = output.SUCCESS
    try:
        status = _run_action(args)
        sys.stdout.flush()
    except BrokenPipeError:
        _discard_output()
    return status


def _run_action(args: argparse.Namespace) -> int:
    try:
        return int(args.act(args))
    except output.CommandError as stop:
        output.print_error(f"kaiza: {stop.message}")
        return stop.status
    except errors.SystemError as error:
        output.print_error(f"kaiza: {error.error_code}: {error.human_message}")
        return output.UNDETERMINED
    except KeyboardInterrupt:
        output.print_error("")
        return output.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or "the disk"
        output.print_error(f"kaiza: {where}: {error.strerror}. Nothing was decided; put it right and try again.")
        return output.UNDETERMINED


def _escape_unencodable_names() -> None:
    """File names may hold anything; a narrow encoding spells it out instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Whoever read our output has what they wanted; what is left goes nowhere, quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
