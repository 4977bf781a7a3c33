"""A person's word: asked for on the terminal itself, never on standard input, and never waived."""

import os
import termios

from kaiza.cli.say import Stop
from kaiza.render.terminal import folded

_TERMINAL = "/dev/tty"
_USUAL = 80
"""The columns of a terminal that does not say how many it has."""


def ask_word(shown: str, word: str) -> bool:
    """Whether a person at this terminal, after seeing what is at stake, typed exactly this word."""
    missing = (
        f"This needs a person's word, typed at a terminal, and there is none here. "
        f"Run the command in a terminal of your own; it will ask you to type {word}."
    )
    question = f"Type {word} to go on, anything else to leave everything as it is: "
    return _typed(f"{shown}\n\n", question, missing) == word


def ask_whether(shown: str, missing: str) -> bool:
    """Whether a person at this terminal agrees; not to is the default. For what `--yes` may waive."""
    return _typed("", f"{shown} [y/N] ", missing).lower() in {"y", "yes"}


def _typed(shown: str, question: str, missing: str) -> str:
    """The line typed at the terminal after the question; a Stop where there is no terminal."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Stop(missing) from error
    try:
        _write(terminal, "\n".join(folded(shown.split("\n"), _columns(terminal))))
        termios.tcflush(terminal, termios.TCIFLUSH)  # what was typed or pasted before the question is no answer to it
        _write(terminal, question)
        return _line(terminal).decode("utf-8", "replace").strip()
    finally:
        os.close(terminal)


def _columns(terminal: int) -> int:
    return os.get_terminal_size(terminal).columns or _USUAL


def _write(terminal: int, text: str) -> None:
    """Write all of the text; a signal may end a single write early."""
    left = text.encode(errors="backslashreplace")
    while left:
        left = left[os.write(terminal, left) :]


def _line(descriptor: int) -> bytes:
    typed = b""
    while not typed.endswith(b"\n"):
        more = os.read(descriptor, 1024)
        if not more:
            break
        typed += more
    return typed
