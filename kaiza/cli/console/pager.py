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

_DEFAULT = "less"
# F: end if all fits one screen; R: colours; X: leave the text on the screen. What git sets unless the user has set it.
_LESS_OPTIONS = "FRX"


def page_lines(lines: Iterable[str], *, wanted: bool) -> None:
    """Print lines, through a pager if one is wanted, standard output is a terminal and there is one."""
    command = _pager_command() if wanted and sys.stdout.isatty() else []
    if not command:
        for line in lines:
            sys.stdout.write(f"{line}\n")
        return
    _run_pager(command, lines)


def _pager_command() -> list[str]:
    """The pager and its arguments; empty if the user wants none or it is not installed."""
    try:
        words = shlex.split(os.environ.get("PAGER", _DEFAULT))
    except ValueError:
        return []
    is_usable = bool(words) and words != ["cat"] and shutil.which(words[0]) is not None
    return words if is_usable else []


def _run_pager(command: list[str], lines: Iterable[str]) -> None:
    # Ctrl-C is for the pager, which may be searching. A handler, unlike SIG_IGN, is not inherited by the pager.
    former = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        environment = {"LESS": _LESS_OPTIONS, "LV": "-c", **os.environ}
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
