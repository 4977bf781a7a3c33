"""A command is carried out: whatever ends it early becomes a sentence and an exit status, never a trace."""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

from kaiza.cli import say
from kaiza.domain import errors


def carry_out(name: str, module: str, argv: Sequence[str]) -> int:
    """Parse a command's words, run it, and say how it ended."""
    _never_choke_on_a_name()
    parser = argparse.ArgumentParser(prog=f"kaiza {name}", allow_abbrev=False)
    import_module(module).add(parser)
    args, more = parser.parse_known_args(argv)
    if more:
        args.parser.error(f"unrecognized arguments: {' '.join(more)}")
    status = say.YES
    try:
        status = _run(args)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_the_reader()
    return status


def _run(args: argparse.Namespace) -> int:
    try:
        return int(args.act(args))
    except say.Stop as stop:
        say.note(f"kaiza: {stop.message}")
        return stop.status
    except errors.SystemError as error:
        say.note(f"kaiza: {error.error_code}: {error.human_message}")
        return say.UNKNOWN
    except KeyboardInterrupt:
        say.note("")
        return say.INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        where = error.filename or "the disk"
        say.note(f"kaiza: {where}: {error.strerror}. Nothing was decided; put it right and try again.")
        return say.UNKNOWN


def _never_choke_on_a_name() -> None:
    """File names may hold anything; a narrow encoding spells it out instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _forget_the_reader() -> None:
    """Whoever read our output has what they wanted; what is left goes nowhere, quietly."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
