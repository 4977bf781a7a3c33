"""Command line that starts this installation of Kaiza from any directory and environment."""

import os
import subprocess
import sys
from pathlib import Path

from kaiza.store.clients.client import Client, ConfigError, ServerCommand

_TIMEOUT_SECONDS = 30


def kaiza_command() -> tuple[str, ...]:
    """The `kaiza` script beside this Python; if there is none, `python -m kaiza`."""
    script = Path(sys.executable).parent / "kaiza"
    if script.is_file() and os.access(script, os.X_OK):
        return (str(script),)
    # -P: a `kaiza` package in the client's working directory, which an agent may have written, must not be imported.
    return (sys.executable, "-P", "-m", "kaiza")


def for_workspace(root: Path) -> ServerCommand:
    """Command that serves a workspace, with this process's state directory."""
    command, *args = kaiza_command()
    state_home = os.environ.get("XDG_STATE_HOME", "")
    # Clients start servers with an environment of their own; a relative path is invalid by the XDG specification.
    env = {"XDG_STATE_HOME": state_home} if state_home.startswith("/") else {}
    return ServerCommand(command, (*args, "serve", "--workspace", str(root)), env)


def require_startable(server: ServerCommand, client: Client) -> None:
    """ConfigError if the client could not pass these arguments on unchanged."""
    arguments = (server.command, *server.args, *server.env.values())
    if any(not argument.isprintable() for argument in arguments):
        raise ConfigError("A path has characters that a configuration file cannot hold")
    if any(sign in argument for sign in client.variable_signs for argument in arguments):
        signs = " or ".join(client.variable_signs)
        raise ConfigError(
            f"A path contains {signs}, which {client.title} expands as a variable. Move it to a path without one"
        )


def can_start() -> bool:
    """Whether the command starts outside this directory, with a minimal environment."""
    environment = {name: value for name, value in os.environ.items() if name in {"HOME", "PATH", "LANG"}}
    try:
        completed = subprocess.run(  # noqa: S603  our own program
            [*kaiza_command(), "--version"],
            capture_output=True,
            check=False,
            timeout=_TIMEOUT_SECONDS,
            cwd="/",
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return completed.returncode == 0 and completed.stdout.startswith(b"kaiza ")
