"""Runs a program that may hang, print without end or leave processes behind, and keeps the beginning of its output."""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

_MAX_BYTES = 64 * 1024
_BLOCK_BYTES = 8 * 1024


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
