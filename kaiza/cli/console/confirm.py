"""Confirmation by a person: read from the terminal itself, never from standard input, where an agent could type."""

import os
import termios
from collections.abc import Callable

from kaiza.domain.refusal import UndeterminedError
from kaiza.render.terminal import display_width, escape, wrap

_TTY_PATH = "/dev/tty"
_DEFAULT_COLUMNS = 80
"""Columns of a terminal that does not say how many it has."""
_NO_TERMINAL = (
    "This needs a person's confirmation at a terminal, and there is none here. "
    "Run the command in your own terminal; it will ask you there."
)


def confirm(facts: str, question: str, *, word: str | None = None, missing: str = _NO_TERMINAL) -> bool:
    """Show the facts and ask; whether the person said yes. No is the default.

    If `word` is given, it has to be typed instead, exactly. `missing` is the message where there is no terminal.
    """
    if word is None:
        short, long = f"{question} [y/N] ", f"{question}\n[y/N] "
    else:
        # A long word has a line of its own, so that it can be copied.
        short = f"Type {word} to confirm, anything else to cancel: "
        long = f"Type this to confirm, anything else to cancel:\n{word}\n> "
    typed = _prompt(facts, lambda columns: short if display_width(short) < columns else long, missing)
    return typed == word if word else typed.lower() in ("y", "yes")


def ask_line(question: str, default: str, missing: str) -> str:
    """What the person types; the default for an empty line."""
    return _prompt("", lambda _columns: f"{question} [{escape(default)}]: ", missing) or default


def _prompt(facts: str, question: Callable[[int], str], missing: str) -> str:
    """The line typed after the question, which may depend on the terminal's columns; refused with `missing`."""
    # Standard input may be a pipe that an agent controls, so the terminal itself is opened. O_NOCTTY: opening a
    # terminal must never make it the controlling one of a process that had none.
    try:
        terminal = os.open(_TTY_PATH, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise UndeterminedError(missing) from error
    try:
        columns = os.get_terminal_size(terminal).columns or _DEFAULT_COLUMNS
        _write_all(terminal, "".join(f"{line}\n" for line in wrap(facts.split("\n"), columns)) + "\n" if facts else "")
        # Discard what was typed or pasted before the question: it cannot be an answer to it.
        termios.tcflush(terminal, termios.TCIFLUSH)
        _write_all(terminal, question(columns))
        return _read_line(terminal).decode("utf-8", "replace").strip()
    finally:
        os.close(terminal)


def _write_all(terminal: int, text: str) -> None:
    """Write all of the text; a signal may end a single write early."""
    rest = text.encode(errors="backslashreplace")
    while rest:
        rest = rest[os.write(terminal, rest) :]


def _read_line(descriptor: int) -> bytes:
    typed = b""
    while not typed.endswith(b"\n"):
        more = os.read(descriptor, 1024)
        if not more:
            break
        typed += more
    return typed
