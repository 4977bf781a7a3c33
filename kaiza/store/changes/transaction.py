"""Atomic multi-file transactions: prepare, apply, then finalize or roll back.

`prepare` only checks. `apply` makes every change durable, or leaves the files as they were. The caller then records the
outcome in the log: with the record on disk it calls `finalize`, without it `roll_back`.
"""

import errno
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.change import USUAL_MODE, Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.plain_values import describe_exception
from kaiza.store.changes import path_locks, recovery
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import (
    DirectoryHandles,
    read_created,
    record_created,
    remove_empty,
)
from kaiza.store.changes.journal import JournalStore, TransactionJournal
from kaiza.store.changes.operation import ActiveOperation, Operation, mismatch_error
from kaiza.store.changes.preflight import Preflight
from kaiza.store.changes.recovery import JournalRecovery, RecordedIntent, RecoveryResult
from kaiza.store.changes.staging import Staging, UndoSources
from kaiza.store.disk import lock_timeouts, process_liveness
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.process_liveness import LivenessLock
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.os_errors import to_system_error

# What a rename or open reports where another process replaced the file or its directory: not a failure of the disk.
_REPLACED_ERRNOS = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """Changes that passed the preflight. It holds no resources and may be dropped."""

    txn: str
    changes: tuple[Change, ...]
    operations: tuple[tuple[Operation, Change | None], ...]
    """Each operation, with the change whose content it writes."""
    undone_txns: tuple[str, ...] = ()

    @property
    def original_modes(self) -> dict[str, int]:
        """Modes of the files before the change, by path."""
        return {
            str(operation.source or operation.path): operation.metadata.mode
            for operation, _ in self.operations
            if operation.metadata is not None
        }

    @property
    def holders(self) -> dict[str, Operation]:
        """The operations on existing files, by the content that these have before any of them is performed."""
        return {
            operation.before_hash: operation for operation, _ in self.operations if operation.before_hash is not None
        }

    @property
    def paths(self) -> set[RelPath]:
        """Every path that is changed."""
        return {path for change in self.changes for path in change.touched_paths}


@dataclass(slots=True)
class ActiveTransaction:
    """A transaction that is being applied or waits to be finalized; it holds the path locks."""

    prepared: PreparedTransaction
    directories: DirectoryHandles
    resources: ExitStack
    operations: list[ActiveOperation] = field(default_factory=list)
    journal: TransactionJournal | None = None
    rollback_failed: bool = False
    """Whether a rollback was incomplete; recovery continues it."""


class TransactionManager:
    """Applies an agent's changes to the user's files. No other code does."""

    def __init__(self, workspace: ConfinedRoot, blobs: BlobStore, journals: JournalStore) -> None:
        self._files = workspace
        self._blobs = blobs
        self._journals = journals
        self._kaiza_dir = blobs.kaiza_dir
        self._active: dict[str, ActiveTransaction] = {}
        self._liveness: LivenessLock | None = None
        self._mutex = threading.Lock()

    @property
    def liveness_id(self) -> str:
        """Id of this process's liveness lock, which its intents name."""
        with self._mutex:
            if self._liveness is None:
                self._liveness = LivenessLock(self._kaiza_dir)
            return self._liveness.id

    def is_dead(self, live_id: str) -> bool:
        """Whether the process with this liveness id has ended, and is not this one."""
        liveness = self._liveness
        return (liveness is None or live_id != liveness.id) and process_liveness.is_dead(self._kaiza_dir, live_id)

    def prepare(self, txn: str, changes: Iterable[Change], *, undoes: Sequence[str] = ()) -> PreparedTransaction:
        """Check the changes; raises for the first that cannot be made. Nothing is written and nothing stays open."""
        listed = tuple(changes)
        with closing(DirectoryHandles(self._files)) as directories:
            preflight = Preflight(self._files, self._blobs, directories, txn, is_undo=bool(undoes))
            operations = preflight.plan_operations(listed)
        return PreparedTransaction(txn, listed, operations, tuple(undoes))

    def apply(self, prepared: PreparedTransaction) -> None:
        """Make the changes; all of them are on disk when this returns. If it raises, the files are as before.

        The intent must be on disk before this is called: recovery ignores a journal without an intent in the log.
        """
        with ExitStack() as stack:
            active = ActiveTransaction(prepared, DirectoryHandles(self._files), stack)
            stack.callback(active.directories.close)
            try:
                self._apply_operations(active)
            except BaseException as error:
                left = self._roll_back_operations(active)
                if active.rollback_failed:
                    sentence = (
                        "The change failed and could not be rolled back completely. The next session recovers it."
                    )
                    cause = {**describe_exception(error), "left": left}
                    raise errors.SystemError.tool_failure(
                        "FILE_WRITE_FAILED", human_message=sentence, cause=cause
                    ) from error
                if not isinstance(error, OSError):
                    raise
                path = prepared.changes[0].path if len(prepared.changes) == 1 else RelPath(())
                if error.errno in _REPLACED_ERRNOS:
                    raise mismatch_error(path, None, None) from error
                raise to_system_error(
                    error, path, missing="FILE_WRITE_FAILED", otherwise="FILE_WRITE_FAILED"
                ) from error
            # The path locks are kept until the outcome is recorded: no other change may build on one that could
            # still be rolled back.
            active.resources = stack.pop_all()
            self._active[prepared.txn] = active

    def roll_back(self, prepared: PreparedTransaction) -> list[dict[str, str]]:
        """Roll back an applied transaction. Returns the paths that were left because they changed since, and why."""
        active = self._active.pop(prepared.txn, None)
        if active is None:
            return []
        with active.resources:
            return self._roll_back_operations(active)

    def created_mode(self, txn: str) -> int | None:
        """Mode of the files that an applied transaction created without naming one; None where they have several."""
        operations = self._active[txn].operations if txn in self._active else ()
        modes = {each.created_mode for each in operations} - {None}
        return None if len(modes) > 1 else next(iter(modes), USUAL_MODE)

    def finalize(self, txn: str) -> None:
        """Store the displaced files, remove the temporary ones and release the locks.

        Never raises for a failure: the changes are made and recorded, and recovery cleans up the rest.
        """
        active = self._active.pop(txn, None)
        if active is None:
            return
        with active.resources:
            try:
                self._finalize_operations(active)
            except (OSError, errors.SystemError):
                if active.journal is not None:
                    active.journal.close()
        # What was written is stored too, so that a review can show it when something else has changed the file. It is
        # neither synced nor needed by an undo: where the disk is full, the review says that it was not kept.
        with suppress(OSError):
            for change in active.prepared.changes:
                if change.content is not None and change.after_hash is not None:
                    self._blobs.store_copy(change.after_hash, change.content)

    def recover(
        self, find_intent: Callable[[str], RecordedIntent | None], first: Sequence[str] = ()
    ) -> list[RecoveryResult]:
        """Complete or roll back what dead processes left, as far as the log announced it.

        `find_intent` returns what the log says of a transaction. The journals named in `first` are recovered before all
        others, the last one first.
        """
        return JournalRecovery(self._files, self._blobs, self._journals, self.is_dead, lock_timeouts.PATHS).run(
            find_intent, first
        )

    def remove_leftovers(self, txn: str, paths: Iterable[RelPath]) -> int:
        """Remove the temporary files beside these paths where a power cut took the transaction's journal."""
        if self._journals.has_pending(txn):
            return 0
        return sum(
            recovery.remove_staged_files(self._files, self._blobs, txn, parent)
            for parent in {path.parent for path in paths}
        )

    def close(self) -> None:
        """Close every descriptor; transactions that are not finalized are left to recovery."""
        if self._liveness is not None:
            self._liveness.close()
        self._kaiza_dir.close()

    def _apply_operations(self, active: ActiveTransaction) -> None:
        prepared = active.prepared
        active.resources.enter_context(path_locks.acquire(self._kaiza_dir, prepared.paths, lock_timeouts.PATHS))
        for path in sorted(prepared.paths):
            active.directories.open_or_plan(path.parent)
        head = {
            "steps": [operation.as_json() for operation, _ in prepared.operations],
            "made": [path.parts for path in active.directories.missing],
        }
        # The journal exists before the first directory or temporary file: whatever a killed process leaves is in it.
        journal = active.journal = self._journals.begin(prepared.txn, self.liveness_id, head)
        with closing(FsyncBatch(len(prepared.operations), self._files.fd)) as batch:
            # Contents that an undo puts in another place and that are not stored yet.
            wanted = {operation.after_hash for operation, _ in prepared.operations} if prepared.undone_txns else set()
            moved = {digest for digest in prepared.holders if digest in wanted and not self._blobs.has(digest)}
            undo = UndoSources(prepared.undone_txns, prepared.holders, moved)
            staging = Staging(self._blobs, self._journals, active.directories, batch, undo)
            stored = [staging.store_preimage(operation) for operation, _ in prepared.operations]
            active.directories.create_missing()
            for (operation, change), is_stored in zip(prepared.operations, stored, strict=True):
                active.operations.append(
                    ActiveOperation(operation, active.directories, self._blobs, is_stored=is_stored)
                )
                staging.stage_content(active.operations[-1], change)
            # With the inodes, recovery can tell the staged files from those of other processes.
            journal.append({"staged": [each.our_inode for each in active.operations]})
            journal.add_to_batch(batch)
            # Pre-images, new contents and journal are on disk before the first rename: after a power cut at any later
            # point, each file can be completed or rolled back. One batch, so that they share a flush of the disk.
            batch.sync()
        for each in active.operations:
            each.perform()
        # A rename is durable only when its directory is. After this, the outcome may be recorded.
        changed = {operation.path.parent for operation, _ in prepared.operations}
        changed |= {each.source.parent for each, _ in prepared.operations if each.kind == "move" and each.source}
        active.directories.sync(changed)
        journal.mark_committed()

    def _finalize_operations(self, active: ActiveTransaction) -> None:
        for each in active.operations:
            each.finalize()
        record_created(self._kaiza_dir, self._journals.state_key, active.directories.created)
        if active.prepared.undone_txns:
            self._remove_empty_directories(active)
        # Last: until every temporary file is gone, recovery needs the journal to find them.
        if active.journal is not None:
            operations = (operation for operation, _ in active.prepared.operations)
            active.journal.retire(operations, are_modes_recorded=True)

    def _roll_back_operations(self, active: ActiveTransaction) -> list[dict[str, str]]:
        """Roll back, newest first; the journal is deleted only when nothing remains to be done."""
        if active.journal is None:
            return []
        with suppress(OSError):
            active.journal.mark_rolled_back()
        left, is_complete = recovery.roll_back(active.operations, active.directories)
        active.rollback_failed = not is_complete
        if is_complete:
            with suppress(OSError):  # recovery then rolls back once more, and finds nothing to do
                active.journal.delete()
        else:
            active.journal.close()
        return left

    def _remove_empty_directories(self, active: ActiveTransaction) -> None:
        """Remove directories that Kaiza created and that an undo left empty, and no others."""
        created = read_created(self._kaiza_dir, self._journals.state_key)
        for operation, _ in active.prepared.operations:
            path = (operation.source or operation.path).parent
            while path.parts and str(path) in created:
                with closing(DirectoryHandles(self._files)) as directories:
                    if not directories.open_existing(path.parent):
                        break
                    if not remove_empty(directories.descriptors[path.parent], path):
                        break
                path = path.parent
