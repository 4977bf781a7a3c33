"""Runs a plan's verify commands, and detects whether they changed files that govern the agent.

Not a sandbox: commands run with the operator's rights. Guaranteed are that a command and all its descendants end, that
its output is bounded, that its environment holds no secrets of the server, and that tampering is detected.
"""

import ctypes
import hashlib
import os
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kaiza.domain.paths import protected_names
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.files.confined_root import ConfinedRoot

MAX_OUTPUT_BYTES = 16 * 1024
"""Bytes kept of a command's output, from its end: that is where errors are."""

_INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "VIRTUAL_ENV")
# The parts of .git through which a change makes git run a command or ignore a file.
_GOVERNING_GIT = ("hooks", "config", "info")
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


@dataclass(frozen=True, slots=True)
class ProtectedSnapshot:
    """Fingerprints of the files that govern the agent, and the hash of the log up to its size at that moment."""

    files: Mapping[str, str]
    log_size: int
    log_hash: str


def run(argv: Sequence[str], root: str, seconds: float) -> CheckResult:
    """Run one command in the workspace, without a shell, for at most `seconds`; then kill all it has started."""
    with _RUN_MUTEX:
        return _run_exclusively(argv, root, seconds)


def _run_exclusively(argv: Sequence[str], root: str, seconds: float) -> CheckResult:
    _adopt_orphans()
    earlier_children = _child_pids(os.getpid())
    started = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603  the command is in a plan that a person approved
            list(argv),
            cwd=root,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return CheckResult(tuple(argv), 127, 0, f"{argv[0]}: {os.strerror(error.errno or 0)}\n", truncated=False)
    output = _OutputTail()
    reader = threading.Thread(target=output.drain, args=(process.stdout,), name="kaiza-check", daemon=True)
    reader.start()
    exit_code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        exit_code = process.wait(seconds)
    _kill_descendants(process, earlier_children)
    # With all writers dead the pipe ends. Bounded, because the pipe may have been passed to a foreign process.
    reader.join(5)
    if process.stdout is not None and not reader.is_alive():
        process.stdout.close()
    duration_ms = int((time.monotonic() - started) * 1000)
    return CheckResult(tuple(argv), exit_code, duration_ms, output.text(), truncated=output.truncated)


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """Environment of a command: an allowlist, because any other variable may hold a secret."""
    return {
        name: value
        for name, value in inherited.items()
        if name in _INHERITED_VARIABLES or name.startswith("LC_") or name == "LANG"
    }


def snapshot_protected(workspace: ConfinedRoot) -> ProtectedSnapshot:
    """Fingerprint every file that governs the agent, and hash the log."""
    log = Path(workspace.root) / "audit" / "audit-log.jsonl"
    size = log.stat().st_size if log.is_file() else 0
    return ProtectedSnapshot(dict(_protected_files(Path(workspace.root))), size, _hash_file(log, size))


def changed_protected(before: ProtectedSnapshot, workspace: ConfinedRoot) -> list[str]:
    """Paths that were changed, added or removed since the snapshot; a log that has only grown is unchanged."""
    after = dict(_protected_files(Path(workspace.root)))
    changed = {path for path in before.files.keys() | after.keys() if before.files.get(path) != after.get(path)}
    if _hash_file(Path(workspace.root) / "audit" / "audit-log.jsonl", before.log_size) != before.log_hash:
        changed.add("audit/audit-log.jsonl")
    return sorted(changed)


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


def _protected_files(root: Path) -> Iterator[tuple[str, str]]:
    """Paths and fingerprints of all files that govern the agent."""
    for directory, names, files in os.walk(root):
        parent = RelPath(Path(directory).relative_to(root).parts)
        names[:] = [name for name in names if _is_walked(parent / name)]
        links = [name for name in names if os.path.islink(f"{directory}/{name}")]  # noqa: PTH114  names may be odd
        for name in (*files, *links):
            path = parent / name
            if _is_protected(path):
                yield str(path), _file_fingerprint(f"{directory}/{name}")


def _is_walked(path: RelPath) -> bool:
    # The log is compared by its hash; what .kaiza holds is authenticated or recomputed when it is used.
    if path.parts[0] in ("audit", ".kaiza"):
        return False
    if ".git" in path.parts:
        below = path.parts[path.parts.index(".git") + 1 :]
        return not below or below[0] in _GOVERNING_GIT
    return True


def _is_protected(path: RelPath) -> bool:
    if ".git" in path.parts:
        below = path.parts[path.parts.index(".git") + 1 :]
        return bool(below) and below[0] in _GOVERNING_GIT
    return protected_names.is_control_plane(path) or protected_names.find_steering_part(path) is not None


def _file_fingerprint(path: str) -> str:
    try:
        status = os.lstat(path)
        if os.path.islink(path):  # noqa: PTH114  names may be odd
            return f"link {os.readlink(path)}"  # noqa: PTH115  as above
        return f"{status.st_mode:o} {_hash_file(Path(path), status.st_size)}"
    except OSError as error:
        return f"unreadable {error.errno}"


def _hash_file(path: Path, size: int) -> str:
    digest = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while size > 0 and (block := file.read(min(size, 1 << 20))):
                digest.update(block)
                size -= len(block)
    except OSError as error:
        return f"unreadable {error.errno}"
    return f"{digest.hexdigest()} {size}"


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
        for pid in _child_pids(os.getpid()) - spared:
            with suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
        time.sleep(0.01)


def _descendant_pids(pid: int) -> set[int]:
    descendants: set[int] = set()
    generation = {pid}
    while generation:
        generation = {child for parent in generation for child in _child_pids(parent)} - descendants
        descendants |= generation
    return descendants


def _child_pids(pid: int) -> set[int]:
    children = set()
    for name in os.listdir("/proc"):  # noqa: PTH208  only names are needed
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{name}/stat").read_bytes()
                # A program's name, in parentheses, may itself contain parentheses and blanks.
                if int(status[status.rindex(b")") + 2 :].split()[1]) == pid:
                    children.add(int(name))
    return children
