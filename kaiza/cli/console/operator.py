"""Who the person at the keyboard says they are."""

import getpass

from kaiza.store import git
from kaiza.store.config import roots


def resolve_name(given: str | None) -> str:
    """The name they give with `--as`, else git's, else the one they logged in with."""
    return given or _git_user_name() or getpass.getuser()


def _git_user_name() -> str:
    try:
        told = git.run(roots.find_nearest(".") or ".", "config", "user.name", seconds=5)
    except FileNotFoundError:  # the directory they are in is gone; what they want to say may be about another
        return ""
    return told.stdout.decode("utf-8", "replace").strip() if told else ""
