"""Files that a plan's scope matches now: listed for a review, counted for the record that seals the plan.

Paths that no plan can reach are left out, however broad the patterns: Kaiza's own files, files that may not be read,
and files that steer agents unless the plan unlocks them.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial

from kaiza.domain import errors
from kaiza.domain.paths.nested_names import possible_workspaces
from kaiza.domain.paths.protected_names import is_control_plane, is_unreadable
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.domain.plans.plan import Plan
from kaiza.domain.plans.scope import DELETE, MODIFY, MOVE, RequestedOperation, is_allowed, is_unlocked
from kaiza.store.documents.nested_workspaces import is_workspace
from kaiza.store.files import tree_walk
from kaiza.store.files.confined_root import ConfinedRoot

MAX_LISTED = 200
_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ScopePreview:
    """Number of files in scope, and the first MAX_LISTED paths. `stopped_early`: the time was up, there may be more."""

    file_count: int
    listed_paths: tuple[str, ...]
    stopped_early: bool
    operations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Operations that the scope allows, by listed path."""
    match_counts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Number of matched files, by operation and pattern."""


def match_files(plan: Plan, root: ConfinedRoot) -> ScopePreview:
    """Match every file of the workspace against the plan's scope, for a few seconds at most."""
    deadline = time.monotonic() + _SECONDS
    scope = plan.scope
    patterns = [*((MODIFY, glob) for glob in scope.modify), *((DELETE, glob) for glob in scope.delete)]
    patterns += [(MOVE, pair.source) for pair in scope.move]
    match_counts = {(operation, glob.text): 0 for operation, glob in patterns}
    listed: dict[str, tuple[str, ...]] = {}
    count = 0
    with tree_walk.TreeWalk(
        root, ROOT, include_ignored=True, over=lambda: time.monotonic() > deadline, since=""
    ) as walk:
        for path, real, operations in _files_in_scope(plan, walk, root):
            count += 1
            if count <= MAX_LISTED:
                listed[path] = operations
            for operation, glob in patterns:
                if operation in operations and glob.matches(real.parts):
                    match_counts[operation, glob.text] += 1
        return ScopePreview(count, tuple(listed), walk.stopped_early, listed, match_counts)


def count_files(plan: Plan, root: ConfinedRoot, over: Callable[[], bool]) -> int | None:
    """Number of files that the scope matches; None if `over` ended the count, or a directory could not be listed."""
    with tree_walk.TreeWalk(root, ROOT, include_ignored=True, over=over) as walk:
        count = sum(1 for _ in _files_in_scope(plan, walk, root))
        return None if walk.stopped_early or walk.unlisted_count else count


def has_more_entries(root: ConfinedRoot, most: int) -> bool:
    """Whether the workspace has more files and directories than this. Looks at no more of them, however many."""
    pending, seen = [ROOT], 0
    while pending:
        try:
            opened = root.open_directory(pending.pop(), lambda _real: None)
        except errors.SystemError:
            continue  # it cannot be listed, which `count_files` reports
        with suppress(OSError), opened as directory, os.scandir(directory.fd) as entries:
            for entry in entries:
                if tree_walk.is_skipped(entry.name):
                    continue
                seen += 1
                if seen > most:
                    return True
                if entry.is_dir(follow_symlinks=False):
                    pending.append(directory.real / entry.name)
    return False


def _files_in_scope(
    plan: Plan, walk: tree_walk.TreeWalk, root: ConfinedRoot
) -> Iterator[tuple[str, RelPath, tuple[str, ...]]]:
    # Once for each directory: a folder of plans is read whole to answer.
    is_nested = cache(partial(is_workspace, root))
    for entry in walk:
        if entry.type != "file" or any(map(is_nested, possible_workspaces(entry.real))):
            continue
        real, scope = entry.real, plan.scope
        operations = [each for each in (MODIFY, DELETE) if is_allowed(scope, RequestedOperation(each, real))]
        # A move is matched by its source alone: the destination is not known before a call names it.
        denied = any(glob.matches(real.parts) for glob in scope.deny)
        if not denied and any(pair.source.matches(real.parts) for pair in scope.move):
            operations.append(MOVE)
        # Last, because for most files there is nothing left to ask.
        if operations and not is_control_plane(real) and not is_unreadable(real) and is_unlocked(plan, real):
            yield entry.path, real, tuple(operations)


MAX_FOREGROUND_ENTRIES = 500
"""Files and directories of a workspace that is counted at once, in about ten milliseconds."""
_FOREGROUND_SECONDS = 1.0
# Between its bursts the count lets calls run: they share one interpreter.
_BURST_SECONDS = 0.002
_PAUSE_SECONDS = 0.004
_STOP_SECONDS = 1.0


class ScopeCounts:
    """File counts per plan, each whole or not there.

    A large workspace is counted once per plan, in a background thread: a million files take half a minute.
    """

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def count_if_small(self, plan: Plan) -> int | None:
        """Number of files in scope; None if the workspace is too large to count them at once."""
        if has_more_entries(self._root, MAX_FOREGROUND_ENTRIES):
            return None
        deadline = time.monotonic() + _FOREGROUND_SECONDS
        return count_files(plan, self._root, lambda: time.monotonic() > deadline)

    def start(self, plan: Plan, report: Callable[[int], object]) -> None:
        """Count, and report the number unless the count is stopped or fails."""
        thread = threading.Thread(target=self._count, args=(plan, report), name="scope-count", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        """Stop every count, so that the workspace can be closed."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_STOP_SECONDS)

    def _count(self, plan: Plan, report: Callable[[int], object]) -> None:
        try:
            count = count_files(plan, self._root, self._pause_or_stop())
            if count is not None and not self._stopped.is_set():
                report(count)
        except (OSError, errors.SystemError):
            return  # the seal goes on saying that nothing was counted

    def _pause_or_stop(self) -> Callable[[], bool]:
        """Function that says whether to stop; it pauses now and then."""
        burst_end = time.monotonic() + _BURST_SECONDS

        def pause_or_stop() -> bool:
            nonlocal burst_end
            if time.monotonic() < burst_end:
                return False
            is_stopped = self._stopped.wait(_PAUSE_SECONDS)
            burst_end = time.monotonic() + _BURST_SECONDS
            return is_stopped

        return pause_or_stop
