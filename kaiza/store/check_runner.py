"""Runs a plan's own checks, and sees afterwards whether they reached for what governs the agent.

A check runs with the operator's rights: this is no sandbox. What is promised is that it ends, with everything it
started, that its output stays small, that it is given no secret of the server's, and that meddling is found out.
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
"""So much of a check's output is kept, the end of it."""

_INHERITED_VARIABLES = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "VIRTUAL_ENV")
_GOVERNING_GIT = ("hooks", "config", "info")
_PR_SET_CHILD_SUBREAPER = 36
_RUN_MUTEX = threading.Lock()
"""Whatever is left of a check is ended with it, so no other may be under way."""
_BLOCK_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What one command came to; no exit status means that its time was up."""

    argv: tuple[str, ...]
    exit_code: int | None
    duration_ms: int
    output: str
    truncated: bool


@dataclass(frozen=True, slots=True)
class ProtectedSnapshot:
    """What governs the agent, as it was at one moment: a fingerprint a file, and the log up to its length then."""

    files: Mapping[str, str]
    log_size: int
    log_hash: str


def run(argv: Sequence[str], root: str, seconds: float) -> CheckResult:
    """Run one command in the workspace, without a shell, for at most so long; nothing it started is left after it."""
    with _RUN_MUTEX:
        return _run_exclusively(argv, root, seconds)


def _run_exclusively(argv: Sequence[str], root: str, seconds: float) -> CheckResult:
    _adopt_orphans()
    ours = _child_pids(os.getpid())
    began = time.monotonic()
    try:
        process = subprocess.Popen(  # noqa: S603  the command stands in the plan that a person approved
            list(argv),
            cwd=root,
            env=environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as refused:
        return CheckResult(tuple(argv), 127, 0, f"{argv[0]}: {os.strerror(refused.errno or 0)}\n", truncated=False)
    kept = _OutputTail()
    reader = threading.Thread(target=kept.drain, args=(process.stdout,), name="kaiza-check", daemon=True)
    reader.start()
    exit_code: int | None = None
    with suppress(subprocess.TimeoutExpired):
        exit_code = process.wait(seconds)
    _kill_process(process, ours)
    reader.join(5)
    if process.stdout is not None and not reader.is_alive():
        process.stdout.close()
    taken = int((time.monotonic() - began) * 1000)
    return CheckResult(tuple(argv), exit_code, taken, kept.text(), truncated=kept.truncated)


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """What a check is given of the environment: where programs are, who and in which language; no secret."""
    return {
        name: value
        for name, value in inherited.items()
        if name in _INHERITED_VARIABLES or name.startswith("LC_") or name == "LANG"
    }


def snapshot_protected(workspace: ConfinedRoot) -> ProtectedSnapshot:
    """Look at everything that governs the agent, and at the log."""
    log = Path(workspace.root) / "audit" / "audit-log.jsonl"
    size = log.stat().st_size if log.is_file() else 0
    return ProtectedSnapshot(dict(_protected_files(Path(workspace.root))), size, _hash_file(log, size))


def changed_protected(before: ProtectedSnapshot, workspace: ConfinedRoot) -> list[str]:
    """What was altered of it meanwhile, by path; a log that only grew is as it was."""
    after = dict(_protected_files(Path(workspace.root)))
    changed = {path for path in before.files.keys() | after.keys() if before.files.get(path) != after.get(path)}
    if _hash_file(Path(workspace.root) / "audit" / "audit-log.jsonl", before.log_size) != before.log_hash:
        changed.add("audit/audit-log.jsonl")
    return sorted(changed)


class _OutputTail:
    """The end of an output, however much there is of it."""

    def __init__(self) -> None:
        self._blocks: deque[bytes] = deque()
        self._size = 0
        self.truncated = False

    def drain(self, stream: object) -> None:
        """Read to the end, keeping little."""
        while block := stream.read1(_BLOCK_BYTES):  # type: ignore[attr-defined]
            self._blocks.append(block)
            self._size += len(block)
            while self._size - len(self._blocks[0]) >= MAX_OUTPUT_BYTES:
                self._size -= len(self._blocks.popleft())
                self.truncated = True

    def text(self) -> str:
        """What was kept."""
        whole = b"".join(self._blocks)
        self.truncated = self.truncated or len(whole) > MAX_OUTPUT_BYTES
        return whole[-MAX_OUTPUT_BYTES:].decode("utf-8", "replace")


def _protected_files(root: Path) -> Iterator[tuple[str, str]]:
    """Every file that governs the agent, with what it is; the log and Kaiza's own store are looked at elsewhere."""
    for here, names, files in os.walk(root):
        where = RelPath(Path(here).relative_to(root).parts)
        names[:] = [name for name in names if _is_walked(where / name)]
        links = [name for name in names if os.path.islink(f"{here}/{name}")]  # noqa: PTH114  names may be odd
        for name in (*files, *links):
            path = where / name
            if _is_protected(path):
                yield str(path), _file_fingerprint(f"{here}/{name}")


def _is_walked(path: RelPath) -> bool:
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
    except OSError as gone:
        return f"unreadable {gone.errno}"


def _hash_file(path: Path, size: int) -> str:
    whole = hashlib.sha256()
    try:
        with path.open("rb") as file:
            while size > 0 and (block := file.read(min(size, 1 << 20))):
                whole.update(block)
                size -= len(block)
    except OSError as gone:
        return f"unreadable {gone.errno}"
    return f"{whole.hexdigest()} {size}"


def _adopt_orphans() -> None:
    """What a check leaves behind becomes our child, so that it can be found and ended."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _kill_process(process: "subprocess.Popen[bytes]", spared: set[int]) -> None:
    """End the command, its group, and whatever of it got away into a group of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(100):
        left = _descendant_pids(os.getpid()) - spared
        if not left:
            return
        for one in left:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        for one in _child_pids(os.getpid()) - spared:
            with suppress(ChildProcessError):
                os.waitpid(one, os.WNOHANG)
        time.sleep(0.01)


def _descendant_pids(pid: int) -> set[int]:
    found: set[int] = set()
    edge = {pid}
    while edge:
        edge = {child for one in edge for child in _child_pids(one)} - found
        found |= edge
    return found


def _child_pids(pid: int) -> set[int]:
    """The processes whose parent this is, read off /proc."""
    found = set()
    for name in os.listdir("/proc"):  # noqa: PTH208  names are all that is wanted
        if name.isdecimal():
            with suppress(OSError, ValueError, IndexError):
                status = Path(f"/proc/{name}/stat").read_bytes()
                if int(status[status.rindex(b")") + 2 :].split()[1]) == pid:
                    found.add(int(name))
    return found
