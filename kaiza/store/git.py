"""git, asked what it knows about a directory: a few commands that run nothing and fetch nothing, and change nothing.

A repository may be hostile: its configuration names programs, and its path may hold a `git` of its own.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence

ALLOWED_COMMANDS = ("cat-file", "check-ignore", "config", "hash-object", "rev-parse")
_REQUIRED_OPTIONS = {"config": ("--get",), "hash-object": ("--no-filters",)}
_FILTER_OPTIONS = frozenset({"--filters", "--textconv"})
_SAFE_OPTIONS = ("--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_KEPT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"})
"""Where the person keeps their own configuration; every other GIT_ variable may be about another repository."""


def run(
    directory: str, command: str, *arguments: str, stdin: bytes = b"", seconds: float = 10
) -> "subprocess.CompletedProcess[bytes] | None":
    """Ask git in a directory; None where there is no git, or none that answers in time."""
    if command not in ALLOWED_COMMANDS or not _FILTER_OPTIONS.isdisjoint(arguments):
        raise ValueError(f"git is not asked for {command} like that")
    path = os.pathsep.join(_trusted_path(directory))
    program = shutil.which("git", path=path)
    if program is None:
        return None
    try:
        return subprocess.run(  # noqa: S603  a fixed list of commands, and no shell
            [program, *_SAFE_OPTIONS, command, *_REQUIRED_OPTIONS.get(command, ()), *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=directory,
            env=_safe_environment(path),
            timeout=seconds,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _safe_environment(path: str) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    return {**own, **_ENVIRONMENT, "PATH": path}


def _trusted_path(directory: str) -> Iterator[str]:
    """The directories in which programs are looked for, without those that the repository could hold."""
    inside = os.path.realpath(directory).rstrip("/") + "/"
    for place in _search_path():
        if place.startswith("/") and not f"{os.path.realpath(place)}/".startswith(inside):
            yield place


def _search_path() -> Sequence[str]:
    return os.environ.get("PATH", os.defpath).split(os.pathsep)
