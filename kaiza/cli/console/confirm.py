"""A person's word: asked for on the terminal itself, never on standard input, and never waived."""

import os
import termios

from kaiza.cli.console.output import CommandError
from kaiza.render.terminal import wrap

_TTY_PATH = "/dev/tty"
_DEFAULT_COLUMNS = 80
"""The columns of a terminal that does not say how many it has."""


def confirm_by_typing(shown: str, word: str) -> bool:
    """Whether a person at this terminal, after seeing what is at stake, typed exactly this word."""
    missing = (
        f"This needs a person's word, typed at a terminal, and there is none here. "
        f"Run the command in a terminal of your own; it will ask you to type {word}."
    )
    question = f"Type {word} to go on, anything else to leave everything as it is: "
    return _prompt_line(f"{shown}\n\n", question, missing) == word


def confirm_yes_no(shown: str, missing: str) -> bool:
    """Whether a person at this terminal agrees; not to is the default. For what `--yes` may waive."""
    return _prompt_line("", f"{shown} [y/N] ", missing).lower() in {"y", "yes"}


def _prompt_line(shown: str, question: str, missing: str) -> str:
    """The line typed at the terminal after the question; a Stop where there is no terminal."""
    try:
        terminal = os.open(_TTY_PATH, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise CommandError(missing) from error
    try:
        _write_all(terminal, "\n".join(wrap(shown.split("\n"), _column_count(terminal))))
        termios.tcflush(terminal, termios.TCIFLUSH)  # what was typed or pasted before the question is no answer to it
        _write_all(terminal, question)
        return _read_line(terminal).decode("utf-8", "replace").strip()
    finally:
        os.close(terminal)


def _column_count(terminal: int) -> int:
    return os.get_terminal_size(terminal).columns or _DEFAULT_COLUMNS


def _write_all(terminal: int, text: str) -> None:
    """Write all of the text; a signal may end a single write early."""
    left = text.encode(errors="backslashreplace")
    while left:
        left = left[os.write(terminal, left) :]


def _read_line(descriptor: int) -> bytes:
    typed = b""
    while not typed.endswith(b"\n"):
        more = os.read(descriptor, 1024)
        if not more:
            break
        typed += more
    return typed
