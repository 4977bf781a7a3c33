"""Runs a few read-only git commands that start no other program and use no network.

A repository may be hostile: its configuration can name programs for git to run, and it can contain a program `git`.
"""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator

from kaiza.store.disk.git_directory import is_readable_repository

ALLOWED_COMMANDS = (
    "cat-file",
    "check-attr",
    "check-ignore",
    "config",
    "grep",
    "hash-object",
    "ls-files",
    "rev-list",
    "rev-parse",
    "show-ref",
)
# `config` without --get could write; `hash-object` without --no-filters runs the clean filter of the configuration.
# `ls-files` could compare contents, which runs filters; with --debug or --unmerged it prints the index.
_REQUIRED_OPTIONS = {
    "config": ("--get",),
    "grep": ("--no-textconv", "--no-recurse-submodules", "--no-color", "--full-name", "--text", "-z", "-l"),
    "hash-object": ("--no-filters",),
    "ls-files": ("-z",),
}
_REQUIRED_FIRST = {"ls-files": ("--debug", "--unmerged")}
# With these, `cat-file` and `grep` run programs of the configuration.
_FILTER_OPTIONS = frozenset({"--filters", "--textconv", "--open-files-in-pager"})
# Options on the command line override the repository's configuration.
_SAFE_SETTINGS = (
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    # Questions about a repository of another user are answered too, as nothing of it is executed.
    "safe.directory=*",
    "safe.bareRepository=explicit",  # a tree with HEAD, objects/ and refs/ is not a repository
)
_SAFE_OPTIONS = ("--no-pager", *(word for setting in _SAFE_SETTINGS for word in ("-c", setting)))
_ENVIRONMENT = {
    # A partial clone would fetch a missing object, and with it run ssh or a credential helper.
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",  # `git replace` would show another content for a hash
    "GIT_OPTIONAL_LOCKS": "0",  # no write to the index
    "GIT_TERMINAL_PROMPT": "0",
}
# These name the user's own configuration. Any other GIT_ variable, such as GIT_DIR, may mean another repository.
_KEPT_VARIABLES = frozenset({"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM"})
_MAX_BRANCH = 200
_SECONDS = 5.0
_PAUSE_SECONDS = 30.0
"""How long a command is not started again in a directory in which it did not finish in time."""
_unfinished: dict[tuple[str, str], float] = {}


def run(
    directory: str, command: str, *arguments: str, stdin: bytes = b"", seconds: float = _SECONDS
) -> "subprocess.CompletedProcess[bytes] | None":
    """Run git in a directory; None where git is not installed, or the repository would keep it waiting."""
    is_complete = command not in _REQUIRED_FIRST or (arguments and arguments[0] in _REQUIRED_FIRST[command])
    if command not in ALLOWED_COMMANDS or not is_complete or not _FILTER_OPTIONS.isdisjoint(arguments):
        raise ValueError(f"git {command} is not allowed with these arguments")
    path = os.pathsep.join(trusted_path(directory))
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT_VARIABLES}
    program = shutil.which("git", path=path)
    if program is None or time.monotonic() < _unfinished.get((directory, command), 0.0):
        return None
    # git opens its files as they come, and would wait for ever for the other end of a FIFO.
    if not is_readable_repository(directory):
        return None
    try:
        return subprocess.run(  # noqa: S603  a fixed list of commands, and no shell
            [program, *_SAFE_OPTIONS, command, *_REQUIRED_OPTIONS.get(command, ()), *arguments],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=directory,
            env={**kept, **_ENVIRONMENT, "PATH": path},
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        _unfinished[directory, command] = time.monotonic() + _PAUSE_SECONDS
        return None
    except OSError:
        return None


def read_head(directory: str) -> dict[str, str] | None:
    """Commit of the checkout, and its branch unless it is detached; None without a repository, commit or git."""
    result = run(directory, "rev-parse", "HEAD", "--symbolic-full-name", "HEAD")
    lines = result.stdout.decode("utf-8", "replace").splitlines() if result and result.returncode == 0 else []
    if len(lines) != 2:  # noqa: PLR2004  the commit and the name
        return None
    commit, name = lines
    branch = name.removeprefix("refs/heads/")
    return {"commit": commit} if branch == name else {"commit": commit, "branch": branch[:_MAX_BRANCH]}


def trusted_path(directory: str) -> Iterator[str]:
    """The directories of PATH without relative ones and those inside a directory, which may contain a `git`."""
    repository = os.path.realpath(directory).rstrip("/") + "/"
    for entry in os.environ.get("PATH", os.defpath).split(os.pathsep):
        if entry.startswith("/") and not f"{os.path.realpath(entry)}/".startswith(repository):
            yield entry
