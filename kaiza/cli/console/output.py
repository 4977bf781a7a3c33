"""Console output: data to standard output, messages to standard error, colour only on a terminal."""

import os
import shutil
import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self, TextIO

import orjson

from kaiza.render import terminal
from kaiza.render.json_values import encode_document, escape_json_lines

SUCCESS, FAILURE, USAGE_ERROR, UNDETERMINED, INTERRUPTED = 0, 1, 2, 3, 130
_FIRST_AFTER_SECONDS, _INTERVAL_SECONDS = 1.0, 0.1
_DEFAULT_COLUMNS = 80
"""Columns of a terminal that does not say how many it has."""


class CommandError(Exception):
    """Ends the command with a message, which says what to do next, and an exit status."""

    def __init__(self, message: str, status: int = UNDETERMINED) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def print_lines(lines: Iterable[str]) -> None:
    """Print lines that already fit the terminal on standard output."""
    for line in lines:
        sys.stdout.write(f"{line}\n")


def print_sentences(lines: Iterable[str]) -> None:
    """Print Kaiza's own sentences on standard output, wrapped between words."""
    for line in lines:
        print_lines(terminal.wrap_words(line, terminal_width()))


def print_json(value: object) -> None:
    """Print one JSON document, indented."""
    write_json_bytes(encode_document(value) + b"\n")


def write_json_line(line: bytes) -> None:
    """Print a line of JSON with JSON escapes for what controls a terminal; the newline is added."""
    write_json_bytes(escape_json_lines(line) + b"\n")


def write_json_bytes(content: bytes) -> None:
    """Write JSON byte for byte; on a terminal, control characters as JSON escapes."""
    if sys.stdout.isatty():
        sys.stdout.write(escape_json_lines(content).decode())
    else:
        sys.stdout.buffer.write(content)


def print_error(message: str) -> None:
    """Print a message on standard error, wrapped between words on a terminal."""
    for line in message.split("\n"):
        for part in terminal.wrap_words(line, _columns(sys.stderr)):
            sys.stderr.write(f"{part}\n")


def terminal_width() -> int | None:
    """Columns of the terminal on standard output; None if it is not a terminal."""
    return _columns(sys.stdout)


def has_colour() -> bool:
    """Whether to use colour: standard output is a terminal that can show it, and NO_COLOR is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


class Progress:
    """Progress of long work on standard error: only on a terminal, and only after one second."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._next_update = time.monotonic() + _FIRST_AFTER_SECONDS if sys.stderr.isatty() else float("inf")
        self._is_shown = False

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` is done. Cheap enough for every step; 0 is an unknown total."""
        now = time.monotonic()
        if now < self._next_update:
            return
        self._next_update, self._is_shown = now + _INTERVAL_SECONDS, True
        part = f"{100 * done // total} %" if total else f"{done:,}"
        sys.stderr.write(f"\r{self._label} {part}\x1b[K")
        sys.stderr.flush()

    def clear(self) -> None:
        """Erase the progress, so that other output can follow."""
        if self._is_shown:
            self._is_shown = False
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.clear()


def format_fields(fields: Iterable[tuple[str, Any]]) -> Iterable[str]:
    """Names and values in two columns, without nulls; long values are folded and marked."""
    shown = [(name, value) for name, value in fields if value is not None]
    room = max((len(name) for name, _ in shown), default=0)
    for name, value in shown:
        text = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield from terminal.wrap([f"{name.ljust(room)}  {terminal.escape(text)}"], terminal_width())


def _columns(stream: TextIO) -> int | None:
    if not stream.isatty():
        return None
    size = os.get_terminal_size(stream.fileno())
    return shutil.get_terminal_size(size).columns or _DEFAULT_COLUMNS
