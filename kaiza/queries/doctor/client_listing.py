"""Asks a client itself whether it uses Kaiza here, with the command that lists its servers.

A configuration says nothing about that: most clients ignore what a workspace brings until a person trusts it.
"""

import os
import re
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from pathlib import Path

import orjson

from kaiza.store import git
from kaiza.store.clients.client import SERVER_NAME, Client

SECONDS = 15.0
_MAX_BYTES = 64 * 1024
_BLOCK_BYTES = 8 * 1024
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# An answer, not a reason to talk to the vendor or to update.
_QUIET = {
    "NO_COLOR": "1",
    "DISABLE_AUTOUPDATER": "1",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
    "OPENCODE_DISABLE_MODELS_FETCH": "1",
}


class Listing(Enum):
    """What a client says about Kaiza's server in this workspace."""

    USED = "used"
    IGNORED = "ignored"
    FAILED = "failed"
    SILENT = "silent"
    NO_PROGRAM = "no program"


@dataclass(frozen=True, slots=True)
class ListCommand:
    """Arguments of the command, and how to read what it prints."""

    words: tuple[str, ...]
    judge: Callable[[str], Listing]
    starters: tuple[str, ...] = field(default=())
    """What in a workspace the command would start without having been trusted: then it is not run."""

    @property
    def command_line(self) -> str:
        """The command without options, as a person would type it."""
        return " ".join(word for word in self.words if not word.startswith("-"))


def ask_client(client: Client, root: Path) -> Listing:
    """Run the client's own command, in the workspace and with the user's environment."""
    path = os.pathsep.join(git.trusted_path(str(root)))
    program = shutil.which(client.program, path=path)
    if program is None:
        return Listing.NO_PROGRAM
    command = LIST_COMMANDS[client.name]
    try:
        output = run_bounded([program, *command.words], root, {**os.environ, **_QUIET, "PATH": path}, SECONDS)
    except OSError:
        return Listing.NO_PROGRAM
    return Listing.SILENT if output is None else command.judge(_ANSI.sub("", output.decode(errors="replace")))


def run_bounded(argv: Sequence[str], root: Path, environment: Mapping[str, str], seconds: float) -> bytes | None:
    """Output of both streams, at most 64 KiB; None if the program does not end in time. OSError if it cannot start."""
    with subprocess.Popen(  # noqa: S603  a program of the user's PATH, and no shell
        argv,
        cwd=root,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            return _read_output(process, time.monotonic() + seconds)
        finally:
            # The whole group: what the program started must not outlive the check.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _read_output(process: "subprocess.Popen[bytes]", deadline: float) -> bytes | None:
    output = b""
    pipe = process.stdout
    if pipe is None:
        return output
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while len(output) < _MAX_BYTES:
            if not selector.select(max(0.0, deadline - time.monotonic())):
                return None
            block = os.read(pipe.fileno(), _BLOCK_BYTES)
            if not block:
                break
            output += block
    return output[:_MAX_BYTES]


def _judge_line(output: str, *, ignored: str, used: str, after: str = ":") -> Listing:
    """What the line of Kaiza's server says. It begins with a mark of its state; `after` follows the name."""
    found = re.search(rf"^\W*{SERVER_NAME}{after}.*$", output, re.MULTILINE)
    if found is None or re.search(ignored, found[0]):
        return Listing.IGNORED
    return Listing.USED if found[0].rstrip().endswith(used) else Listing.FAILED


def _judge_codex(output: str) -> Listing:
    begin = re.search(r"^\[", output, re.MULTILINE)
    try:
        servers = orjson.loads(output[begin.start() :]) if begin else None
        states = {server["name"]: server["enabled"] for server in servers} if servers is not None else None
    except (ValueError, TypeError, LookupError):
        states = None
    if states is None:
        return Listing.SILENT
    return Listing.USED if states.get(SERVER_NAME) else Listing.IGNORED


LIST_COMMANDS: Mapping[str, ListCommand] = {
    "claude-code": ListCommand(
        ("mcp", "list"), partial(_judge_line, ignored="(?i)pending approval|rejected", used="Connected")
    ),
    "codex": ListCommand(("mcp", "list", "--json"), _judge_codex),
    "gemini": ListCommand(("mcp", "list"), partial(_judge_line, ignored="Disabled$", used="Connected")),
    # Without plugins: opencode has no trust, and would run those of the workspace.
    "opencode": ListCommand(
        ("mcp", "list", "--pure"),
        partial(_judge_line, ignored="disabled", used="connected", after=""),
        ("opencode.jsonc", ".opencode"),
    ),
}
