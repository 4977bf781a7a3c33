"""Runs one command; an error becomes a message and an exit status, never a traceback."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from kaiza.cli.console import output
from kaiza.cli.console.arguments import CommandParser
from kaiza.domain import errors
from kaiza.domain.refusal import RefusedError, UndeterminedError


def run(name: str, module: str, argv: Sequence[str]) -> int:
    """Parse the arguments, run the command, and return the exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name of a file may have characters that the output's encoding lacks.
            stream.reconfigure(errors="backslashreplace")
    parser = CommandParser(prog=f"kaiza {name}")
    import_module(module).add(parser)
    args, unknown = parser.parse_known_args(argv)
    if unknown:  # reported by the subcommand, so that the usage shown is its own
        args.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    status = output.SUCCESS
    try:
        status = _run_action(args)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader closed the pipe, and Python flushes again at exit.
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
    return status


def _run_action(args: argparse.Namespace) -> int:
    try:
        return int(args.act(args))
    except output.CommandError as stop:
        output.print_error(f"kaiza: {stop.message}")
        return stop.status
    except RefusedError as refusal:
        output.print_error(f"kaiza: {refusal.message}")
        return output.UNDETERMINED if isinstance(refusal, UndeterminedError) else output.FAILURE
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
        output.print_error(f"kaiza: {where}: {error.strerror}. Correct that, then run the command again.")
        return output.UNDETERMINED
