"""How the command line speaks: data to standard output, everything else to standard error, colour only if wanted."""

import os
import shutil
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

import orjson

from kaiza.render import terminal

SUCCESS, FAILURE, USAGE_ERROR, UNDETERMINED, INTERRUPTED = 0, 1, 2, 3, 130
_FIRST_AFTER_SECONDS, _INTERVAL_SECONDS = 1.0, 0.1


class CommandError(Exception):
    """The command ends here: with this status, and a sentence that says what to do next."""

    def __init__(self, message: str, status: int = UNDETERMINED) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def print_lines(told: Iterable[str]) -> None:
    """Text for a person, line by line, on standard output."""
    for line in told:
        sys.stdout.write(f"{line}\n")


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    write_json_line(orjson.dumps(value, option=orjson.OPT_INDENT_2))


def write_json_line(line: bytes) -> None:
    """A line of JSON, its newline added."""
    write_json_bytes(line + b"\n")


def write_json_bytes(told: bytes) -> None:
    """Bytes of JSON as they are; on a terminal with what could steer it written as JSON's own escapes."""
    if sys.stdout.isatty():
        parts = told.decode("utf-8", "replace").split("\n")
        sys.stdout.write("\n".join(map(terminal.escape_json, parts)))
    else:
        sys.stdout.buffer.write(told)


def print_error(message: str) -> None:
    """A sentence on standard error."""
    sys.stderr.write(f"{message}\n")


def terminal_width() -> int | None:
    """How many columns the reader has; None where nobody counts columns."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def has_colour() -> bool:
    """Whether the reader wants colour: a terminal that can, and no NO_COLOR."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Progress:
    """How far a long piece of work is, on a terminal's standard error, once it has taken a second."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._next_update = time.monotonic() + _FIRST_AFTER_SECONDS if sys.stderr.isatty() else float("inf")
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """So much is done; cheap enough to be called at every step."""
        now = time.monotonic()
        if now < self._next_update:
            return
        self._next_update, self._is_shown = now + _INTERVAL_SECONDS, True
        part = f"{100 * done // total} %" if total else f"{done:,}"
        sys.stderr.write(f"\r{self._label} {part}\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        """Make room on the terminal for something else; a line of its own follows."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()


def format_fields(told: Iterable[tuple[str, Any]]) -> Iterable[str]:
    """Names and values beside each other, the values in one column; what is null is left out."""
    kept = [(name, value) for name, value in told if value is not None]
    room = max((len(name) for name, _ in kept), default=0)
    for name, value in kept:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield f"{name.ljust(room)}  {terminal.escape(text)}"
