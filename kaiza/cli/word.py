"""A person's word: asked for on the terminal itself, never on standard input, and never waived."""

import os

from kaiza.cli.say import Stop

_TERMINAL = "/dev/tty"


def ask_word(shown: str, word: str) -> bool:
    """Whether a person at this terminal, after seeing what is at stake, typed exactly this word."""
    missing = (
        f"This needs a person's word, typed at a terminal, and there is none here. "
        f"Run the command in a terminal of your own; it will ask you to type {word}."
    )
    question = f"{shown}\n\nType {word} to go on, anything else to leave everything as it is: "
    return _typed(question, missing) == word


def ask_whether(shown: str, missing: str) -> bool:
    """Whether a person at this terminal agrees; not to is the default. For what `--yes` may waive."""
    return _typed(f"{shown} [y/N] ", missing).lower() in {"y", "yes"}


def _typed(question: str, missing: str) -> str:
    """The line that was typed at the terminal; a Stop where there is none."""
    try:
        terminal = os.open(_TERMINAL, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        raise Stop(missing) from error
    with open(terminal, "r+b", buffering=0) as tty:  # noqa: PTH123  a descriptor has no path
        tty.write(question.encode(errors="backslashreplace"))
        typed = _line(tty.fileno())
    return typed.decode("utf-8", "replace").strip()


def _line(descriptor: int) -> bytes:
    typed = b""
    while not typed.endswith(b"\n"):
        more = os.read(descriptor, 1024)
        if not more:
            break
        typed += more
    return typed
