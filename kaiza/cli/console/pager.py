"""Output through the user's pager, as git does: `$PAGER`, else `less`, which ends by itself if all fits the screen."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import IO

from kaiza.queries.workspaces import trusted_path

_DEFAULT = "less"
# F: end if all fits one screen; R: colours; X: leave the text on the screen. What git sets unless the user has set it.
_LESS_OPTIONS = "FRX"


def page_lines(lines: Iterable[str], root: str, *, wanted: bool) -> None:
    """Print lines, through a pager if one is wanted, standard output is a terminal and there is one.

    Never by a program of the workspace `root`, which an agent may have written.
    """
    path = os.pathsep.join(trusted_path(root))
    command = _pager_command(path) if wanted and sys.stdout.isatty() else []
    if not command:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return
    _run_pager(command, path, lines)


def _pager_command(path: str) -> list[str]:
    """The pager and its arguments; empty if the user wants none or it is not installed."""
    try:
        words = shlex.split(os.environ.get("PAGER", _DEFAULT))
    except ValueError:
        return []
    program = shutil.which(words[0], path=path) if words and words != ["cat"] else None
    return [program, *words[1:]] if program else []


def _run_pager(command: list[str], path: str, lines: Iterable[str]) -> None:
    # Ctrl-C is for the pager, which may be searching. A handler, unlike SIG_IGN, is not inherited by the pager.
    former = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        environment = {"LESS": _LESS_OPTIONS, "LV": "-c", **os.environ, "PATH": path}
        with subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as pager:  # noqa: S603  the user's own
            _feed(pager.stdin, lines)
    finally:
        signal.signal(signal.SIGINT, former)


def _feed(pipe: IO[bytes] | None, lines: Iterable[str]) -> None:
    """Write the lines; a pager that was left early is no error."""
    if pipe is None:
        return
    try:
        for line in lines:
            pipe.write(f"{line}\n".encode(errors="backslashreplace"))
        pipe.close()
    except BrokenPipeError:
        # Closing flushes once more, and fails again.
        with suppress(BrokenPipeError):
            pipe.close()
