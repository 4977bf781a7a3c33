"""The command that starts this very Kaiza, from whichever directory and environment a client starts it."""

import os
import subprocess
import sys
from pathlib import Path

from kaiza.store.clients.client import Client, Server
from kaiza.store.clients.fault import ConfigFault

_PATIENCE = 30


def program() -> tuple[str, ...]:
    """The installed `kaiza` beside this Python; else the module, never looked for in the client's directory."""
    beside = Path(sys.executable).parent / "kaiza"
    if beside.is_file() and os.access(beside, os.X_OK):
        return (str(beside),)
    return (sys.executable, "-P", "-m", "kaiza")


def server(root: Path) -> Server:
    """The server for a workspace; it looks for its state where this process does."""
    command, *args = program()
    home = os.environ.get("XDG_STATE_HOME", "")
    env = {"XDG_STATE_HOME": home} if home.startswith("/") else {}
    return Server(command, (*args, "serve", "--workspace", str(root)), env)


def check(server: Server, client: Client) -> None:
    """ConfigFault where the client could not start this."""
    words = (server.command, *server.args, *server.env.values())
    if any(not word.isprintable() or _is_odd(word) for word in words):
        raise ConfigFault("A path holds characters that a configuration cannot carry")
    if client.variables and any("$" in word for word in words):
        raise ConfigFault(f"A path holds a $, which {client.title} takes for a variable. Move it to a path without")


def works() -> bool:
    """Whether the command starts without anything that only this terminal has."""
    kept = {name: value for name, value in os.environ.items() if name in {"HOME", "PATH", "LANG"}}
    try:
        done = subprocess.run(  # noqa: S603  our own program
            [*program(), "--version"],
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
            cwd="/",
            env=kept,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0 and done.stdout.startswith(b"kaiza ")


def _is_odd(word: str) -> bool:
    return any("\ud800" <= char <= "\udfff" for char in word)
