"""The command that starts this very Kaiza, from whichever directory and environment a client starts it."""

import os
import subprocess
import sys
from pathlib import Path

from kaiza.store.clients.client import Client, ServerCommand
from kaiza.store.clients.errors import ConfigError

_TIMEOUT_SECONDS = 30


def kaiza_command() -> tuple[str, ...]:
    """The installed `kaiza` beside this Python; else the module, never looked for in the client's directory."""
    beside = Path(sys.executable).parent / "kaiza"
    if beside.is_file() and os.access(beside, os.X_OK):
        return (str(beside),)
    return (sys.executable, "-P", "-m", "kaiza")


def for_workspace(root: Path) -> ServerCommand:
    """The server for a workspace; it looks for its state where this process does."""
    command, *args = kaiza_command()
    home = os.environ.get("XDG_STATE_HOME", "")
    env = {"XDG_STATE_HOME": home} if home.startswith("/") else {}
    return ServerCommand(command, (*args, "serve", "--workspace", str(root)), env)


def require_startable(server: ServerCommand, client: Client) -> None:
    """ConfigFault where the client could not start this."""
    words = (server.command, *server.args, *server.env.values())
    if any(not word.isprintable() or _has_surrogate(word) for word in words):
        raise ConfigError("A path holds characters that a configuration cannot carry")
    if client.expands_variables and any("$" in word for word in words):
        raise ConfigError(f"A path holds a $, which {client.title} takes for a variable. Move it to a path without")


def can_start() -> bool:
    """Whether the command starts without anything that only this terminal has."""
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "PATH", "LANG"}}
    try:
        done = subprocess.run(  # noqa: S603  our own program
            [*kaiza_command(), "--version"],
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
            cwd="/",
            env=kept,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith(b"kaiza ")


def _has_surrogate(word: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in word)
