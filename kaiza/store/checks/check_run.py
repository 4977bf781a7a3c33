"""The checks of one call: run in a sandbox, or without one where the operator allows it and nothing must be altered."""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, Protocol

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.checks import check_runner, sandbox
from kaiza.store.checks.check_runner import CheckResult
from kaiza.store.checks.fingerprint import Fingerprint, find_differences, find_personal_records, take_fingerprint
from kaiza.store.checks.guarded_paths import GuardedPath, find_guarded
from kaiza.store.checks.sandbox import SandboxRules
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.kaiza_dir import KaizaDir

_MAX_NAMED = 20
_MAX_PATH = 500


@dataclass(frozen=True, slots=True)
class CheckedWorkspace:
    """What the checks of a workspace need to know of it."""

    root: str
    kaiza_dir: KaizaDir
    private_directories: tuple[Path, ...]
    """State and configuration, which no check may alter. The snapshot of the log's state is in the first."""
    is_governing: Callable[[RelPath], bool]
    is_unreadable: Callable[[RelPath], bool]
    seconds: int
    rules: SandboxRules


class CheckRun(Protocol):
    """The checks of one call. `finish` is called after the last one, also if one failed."""

    def run(self, argv: Sequence[str], /) -> CheckResult:
        """Run one command."""
        ...

    def finish(self) -> Sequence[Mapping[str, str]]:
        """Set new files that would govern the agent aside; each with its new place."""
        ...


def begin_checks(workspace: CheckedWorkspace, *, unsandboxed: bool) -> CheckRun:
    """Prepare to run checks. INSUFFICIENT_PERMISSIONS without a sandbox, unless `unsandboxed` allows that.

    FILE_WRITE_FAILED while other checks of the workspace run.
    """
    with ExitStack() as held:
        held.callback(_lock_checks(workspace.kaiza_dir).close)
        checks = _prepare_checks(workspace, unsandboxed=unsandboxed)
        return ExclusiveChecks(checks, held.pop_all())


def _prepare_checks(workspace: CheckedWorkspace, *, unsandboxed: bool) -> CheckRun:
    program = sandbox.find_bubblewrap(workspace.root)
    if program is not None:
        return SandboxedChecks(workspace, program)
    if not unsandboxed:
        raise errors.SystemError.tool_failure(
            "INSUFFICIENT_PERMISSIONS",
            human_message="Checks run only in a sandbox, and bubblewrap is missing or does not work here. "
            "Ask a person to install it, or to start the server with --allow-unsandboxed-checks.",
            cause={"reason": "no_sandbox"},
        )
    return UnsandboxedChecks(workspace)


def _lock_checks(kaiza_dir: KaizaDir) -> FileLock:
    """The lock of the workspace's checks: while others run, names may change between their listing and their use."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = FileLock(os.open("checks", flags, 0o600, dir_fd=kaiza_dir.open_directory("locks")))
    if lock.try_acquire():
        return lock
    lock.close()
    raise errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="Other checks of this workspace are running. Try again when they have ended.",
        cause={"reason": "checks_running"},
    )


@dataclass(frozen=True, slots=True)
class ExclusiveChecks:
    """Checks that hold the lock of their workspace until they have finished."""

    checks: CheckRun
    held: ExitStack

    def run(self, argv: Sequence[str]) -> CheckResult:
        """Run one command."""
        return self.checks.run(argv)

    def finish(self) -> Sequence[Mapping[str, str]]:
        """Finish, and release the lock."""
        with self.held:
            return self.checks.finish()


class SandboxedChecks:
    """Checks in a sandbox."""

    def __init__(self, workspace: CheckedWorkspace, program: str) -> None:
        # Made now, because a check could otherwise make a `.kaiza` of its own.
        workspace.kaiza_dir.open_directory("set-aside")
        self._workspace = workspace
        self._program = program
        self._before = self._find_guarded()

    def run(self, argv: Sequence[str]) -> CheckResult:
        """Run one command in the sandbox."""
        workspace = self._workspace
        # Listed for every command: the one before may have moved a guarded file with its directory.
        with tempfile.NamedTemporaryFile(prefix="kaiza-empty-") as empty:
            built = sandbox.build_sandbox(
                self._program, workspace.root, workspace.rules, self._find_guarded(), empty.name
            )
            return check_runner.run_sandboxed(argv, built, workspace.seconds)

    def finish(self) -> Sequence[Mapping[str, str]]:
        """Set new files that would govern the agent aside; each with its new place."""
        known = {guarded.path: guarded.identity for guarded in self._before if guarded.governs}
        # Listed before the first is moved. A path whose directory was replaced is new, although its name is not.
        made = [
            guarded
            for guarded in self._find_guarded()
            if guarded.governs and known.get(guarded.path) != guarded.identity
        ]
        moved = self._set_aside(made)
        self._restore_links()
        left = [str(guarded.path) for guarded in made if guarded not in moved]
        if left:
            raise _meddled_error(left)
        return [{"path": _shown_path(str(guarded.path)), "moved_to": place} for guarded, place in moved.items()]

    def _restore_links(self) -> None:
        """Restore links in the root, which no mount can protect."""
        for guarded in self._before:
            if guarded.governs and guarded.link_target is not None and len(guarded.path.parts) == 1:
                with suppress(FileExistsError):
                    os.symlink(guarded.link_target, f"{self._workspace.root}/{guarded.path}")  # noqa: PTH211  names may be odd

    def _find_guarded(self) -> Sequence[GuardedPath]:
        workspace = self._workspace
        try:
            return tuple(find_guarded(workspace.root, workspace.is_governing, workspace.is_unreadable))
        except OSError as refused:
            raise _meddled_error(["."]) from refused

    def _set_aside(self, made: Sequence[GuardedPath]) -> Mapping[GuardedPath, str]:
        """Move files aside; the new place of each that could be moved."""
        aside_fd = self._workspace.kaiza_dir.open_directory("set-aside")
        used = set(os.listdir(aside_fd))  # noqa: PTH208 (of a descriptor)
        # Names of our own: what the check chose may be any bytes.
        names = (name for name in map("check-{}".format, count(1)) if name not in used)
        moved = {}
        for guarded, name in zip(made, names, strict=False):
            with suppress(OSError):
                os.rename(f"{self._workspace.root}/{guarded.path}", name, dst_dir_fd=aside_fd)
                moved[guarded] = f".kaiza/set-aside/{name}"
        return moved


class UnsandboxedChecks:
    """Checks with the rights of this process. They can alter anything; what they alter here is detected."""

    def __init__(self, workspace: CheckedWorkspace) -> None:
        self._workspace = workspace
        self._before = self._take_fingerprint()

    def run(self, argv: Sequence[str]) -> CheckResult:
        """Run one command."""
        return check_runner.run_unsandboxed(argv, self._workspace.root, self._workspace.seconds)

    def finish(self) -> Sequence[Mapping[str, str]]:
        """INVARIANT_VIOLATION if a file that governs the agent was altered, or a person's decision was recorded."""
        root, (state_directory, *_) = self._workspace.root, self._workspace.private_directories
        # A check can read the key that authenticates the snapshot. Without one, the state is computed from the log.
        (state_directory / "index.json").unlink(missing_ok=True)
        altered = find_differences(self._before, self._take_fingerprint(), root)
        records = find_personal_records(self._before, root)
        if altered or records:
            raise _meddled_error(altered, records)
        return ()

    def _take_fingerprint(self) -> Fingerprint:
        workspace = self._workspace
        return take_fingerprint(workspace.root, workspace.private_directories, workspace.is_governing)


def _shown_path(path: str) -> str:
    """The path as text that JSON can hold, of bounded length: a check may choose any bytes for a name."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return text if len(text) <= _MAX_PATH else f"{text[:_MAX_PATH]}…"


def _meddled_error(paths: Sequence[str], records: Sequence[int] = ()) -> errors.SystemError:
    cause: dict[str, Any] = {"paths": list(map(_shown_path, paths[:_MAX_NAMED])), "count": len(paths)}
    if records:
        cause["records"] = list(records[:_MAX_NAMED])
    return errors.SystemError.invariant_violation(
        "CHECKS_MEDDLED",
        human_message="Files that govern the agent, or decisions in the log, changed while checks ran. "
        "Ask a person to review them, then to run kaiza session unlock.",
        cause=cause,
    )
