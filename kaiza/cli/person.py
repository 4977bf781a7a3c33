"""Who the person at the keyboard says they are."""

import getpass
import subprocess


def name(given: str | None) -> str:
    """The name they give with `--as`, else git's, else the one they logged in with."""
    return given or _in_git() or getpass.getuser()


def _in_git() -> str:
    try:
        told = subprocess.run(
            ["git", "config", "user.name"],  # noqa: S607  whichever git the person uses
            capture_output=True,
            check=False,
            timeout=5,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return told.stdout.decode("utf-8", "replace").strip()
