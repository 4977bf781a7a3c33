"""Runs one verify command of a plan, with a time limit and a limit on its output, and ends all that it has started.

In a sandbox, the kernel ends all its processes with it. Without one, descendants are found in /proc and killed.
"""

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.store.checks.sandbox import Sandbox, sandbox_environment

MAX_OUTPUT_BYTES = 16 * 1024
"""Bytes kept of a command's output, from its end: that is where errors are."""

_INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "VIRTUAL_ENV")
_PR_SET_CHILD_SUBREAPER = 36
# One command at a time: at its end every new descendant of this process is killed, whichever command started it.
_RUN_MUTEX = threading.Lock()
_BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of one command; `exit_code` is None if it was killed at the time limit."""

    argv: tuple[str, ...]
    exit_code: int | None
    duration_ms: int
    output: str
    truncated: bool

    def as_json(self) -> dict[str, Any]:
        """The result for the answer; without an exit code if there is none."""
        members = {
            "argv": list(self.argv),
            "duration_ms": self.duration_ms,
            "output": self.output,
            "truncated": self.truncated,
        }
        return members if self.exit_code is None else {**members, "exit_code": self.exit_code}


def run_sandboxed(argv: Sequence[str], sandbox: Sandbox, seconds: float) -> CheckResult:
    """Run one command in a sandbox for at most `seconds`."""
    with sandbox.open_options() as options_fd:
        command = [sandbox.program, "--args", str(options_fd), "--", *argv]
        launch = _Launch(argv, command, "/", sandbox_environment(environment(os.environ)), (options_fd,))
        return _run(launch, seconds, _kill_sandbox)


def run_unsandboxed(argv: Sequence[str], root: str, seconds: float) -> CheckResult:
    """Run one command in the workspace for at most `seconds`, with the rights of this process."""
    with _RUN_MUTEX:
        _adopt_orphans()
        earlier_children = child_pids(os.getpid())
        launch = _Launch(argv, argv, root, environment(os.environ))
        return _run(launch, seconds, lambda process: _kill_descendants(process, earlier_children))


@dataclass(frozen=True, slots=True)
class _Launch:
    """How to start a command; `argv` is what the plan names, `command` what is executed."""

    argv: Sequence[str]
    command: Sequence[str]
    directory: str
    variables: Mapping[str, str]
    descriptors: tuple[int, ...] = ()


def _run(launch: _Launch, seconds: float, kill: "Callable[[subprocess.Popen[bytes]], None]") -> CheckResult:
    argv = tuple(launch.argv)
    started = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603  the command is in a plan that a person approved, and no shell
            list(launch.command),
            cwd=launch.directory,
            env=dict(launch.variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            pass_fds=launch.descriptors,
        )
    except OSError as error:
        return CheckResult(argv, 127, 0, f"{argv[0]}: {os.strerror(error.errno or 0)}\n", truncated=False)
    output = _OutputTail()
    reader = threading.Thread(target=output.drain, args=(process.stdout,), name="kaiza-check", daemon=True)
    reader.start()
    exit_code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        exit_code = process.wait(seconds)
    kill(process)
    # With all writers dead the pipe ends. Bounded, because the pipe may have been passed to a foreign process.
    reader.join(5)
    if process.stdout is not None and not reader.is_alive():
        process.stdout.close()
    duration_ms = int((time.monotonic() - started) * 1000)
    return CheckResult(argv, exit_code, duration_ms, output.text(), truncated=output.truncated)


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of a command: an allowlist, because any other variable may hold a secret."""
    return {
        name: value
        for name, value in inherited.items()
        if name in _INHERITED_VARIABLES or name.startswith("LC_") or name == "LANG"
    }


class _OutputTail:
    """The last MAX_OUTPUT_BYTES of a stream, in bounded memory."""

    def __init__(self) -> None:
        self._blocks: deque[bytes] = deque()
        self._size = 0
        self.truncated = False

    def drain(self, stream: object) -> None:
        """Read the stream to its end."""
        while block := stream.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
            self._blocks.append(block)
            self._size += len(block)
            while self._size - len(self._blocks[0]) >= MAX_OUTPUT_BYTES:
                self._size -= len(self._blocks.popleft())
                self.truncated = True

    def text(self) -> str:
        """The kept output."""
        content = b"".join(self._blocks)
        self.truncated = self.truncated or len(content) > MAX_OUTPUT_BYTES
        return content[-MAX_OUTPUT_BYTES:].decode("utf-8", "replace")


def _kill_sandbox(process: "subprocess.Popen[bytes]") -> None:
    """Kill the first process of the sandbox, with which the kernel kills all others, and wait for bubblewrap to end."""
    # Not bubblewrap itself: it ends only after the kernel has killed them all.
    while process.poll() is None:
        for pid in child_pids(process.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)


def _adopt_orphans() -> None:
    # A descendant whose parent has ended becomes our child instead of init's, so that it can be found and killed.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_descendants(process: "subprocess.Popen[bytes]", spared: set[int]) -> None:
    """Kill the command, its process group, and descendants that have left the group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # Repeated: a process may fork between the listing and the kill. Bounded: one in the kernel may not die.
    for _ in range(100):
        left = _descendant_pids(os.getpid()) - spared
        if not left:
            return
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in child_pids(os.getpid()) - spared:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def _descendant_pids(pid: int) -> set[int]:
    descendants: set[int] = set()
    generation = {pid}
    while generation:
        generation = {child for parent in generation for child in child_pids(parent)} - descendants
        descendants |= generation
    return descendants


def child_pids(pid: int) -> set[int]:
    """Ids of the processes that a process has started and that have not ended."""
    children = set()
    for name in os.listdir("/proc"):  # noqa: PTH208  only names are needed
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{name}/stat").read_bytes()
                # A program's name, in parentheses, may itself contain parentheses and blanks.
                if int(status[status.rindex(b")") + 2 :].split()[1]) == pid:
                    children.add(int(name))
    return children
