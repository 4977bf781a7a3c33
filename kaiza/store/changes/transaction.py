"""Changes happen whole or not at all: prepared, applied, and either settled or taken back."""

import errno
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field

from kaiza.domain import errors
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes import path_locks, recovery
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, remove_empty
from kaiza.store.changes.journal import AbandonedJournal, JournalLine, JournalStore, TransactionJournal
from kaiza.store.changes.operation import ActiveOperation, Operation, mismatch_error
from kaiza.store.changes.preflight import Preflight
from kaiza.store.changes.recovery import CommitState, RecordedIntent, RecoveryResult
from kaiza.store.changes.staging import Staging
from kaiza.store.disk import state_dir
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.process_liveness import LivenessLock
from kaiza.store.disk.state_key import StateKey
from kaiza.store.files.confined_root import ConfinedRoot
from kaiza.store.files.os_errors import to_system_error

LOCK_SECONDS = 10.0
_REPLACED_ERRNOS = {errno.ENOENT, errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.ENOTDIR}


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """Changes that could go ahead when they were looked at. It holds nothing and may be thrown away."""

    txn: str
    changes: tuple[Change, ...]
    operations: tuple[tuple[Operation, Change | None], ...]
    """Each step, with the change whose content it brings in."""
    undone_txns: tuple[str, ...] = ()

    @property
    def original_modes(self) -> dict[str, int]:
        """The permissions of what is there before, so that they can be put back."""
        return {
            str(step.source or step.path): step.metadata.mode
            for step, _ in self.operations
            if step.metadata is not None
        }

    @property
    def paths(self) -> set[RelPath]:
        """Every path the changes alter."""
        return {path for change in self.changes for path in change.touched_paths}


@dataclass(slots=True)
class ActiveTransaction:
    """Changes under way: what they hold, and how far they are."""

    prepared: PreparedTransaction
    directories: DirectoryHandles
    resources: ExitStack
    operations: list[ActiveOperation] = field(default_factory=list)
    journal: TransactionJournal | None = None
    rollback_failed: bool = False
    """Whether something could not be taken back and waits for recovery."""

    def leave_to_recovery(self) -> None:
        """Leave the journal to recovery."""
        if self.journal is not None:
            self.journal.close()


class TransactionManager:
    """The one place where a user's files are altered."""

    def __init__(self, workspace: ConfinedRoot, objects: BlobStore, journal: JournalStore) -> None:
        self._files = workspace
        self._blobs = objects
        self._journals = journal
        self._kaiza_dir = objects.kaiza_dir
        self._active: dict[str, ActiveTransaction] = {}
        self._liveness: LivenessLock | None = None
        self._mutex = threading.Lock()

    @classmethod
    def for_root(cls, workspace: ConfinedRoot) -> "TransactionManager":
        """Make one that keeps what it needs in the workspace's `.kaiza`, from the first change on."""
        own = KaizaDir(workspace.fd)
        return cls(workspace, BlobStore(own), JournalStore(own, StateKey(state_dir.path_of(workspace.root))))

    @property
    def liveness_id(self) -> str:
        """The name under which this process is known to be alive; intents name it."""
        return self._liveness_lock().id

    def is_dead(self, live_id: str) -> bool:
        """Whether the process that an intent names is gone."""
        return self._kaiza_dir.find_directory("live") is None or self._liveness_lock().is_dead(live_id)

    def prepare(self, txn: str, changes: Iterable[Change], *, undoes: Sequence[str] = ()) -> PreparedTransaction:
        """Check everything that can be foreseen; nothing is written and nothing is held when this returns."""
        listed = tuple(changes)
        with ExitStack() as held:
            directories = DirectoryHandles(self._files)
            held.callback(directories.close)
            steps = Preflight(self._files, self._blobs, directories, txn).plan_operations(listed)
        return PreparedTransaction(txn, listed, steps, tuple(undoes))

    def apply(self, prepared: PreparedTransaction) -> None:
        """Make the changes; they are on disk, all of them, when this returns. If it raises, files are as before.

        The intent has to be on disk before: recovery sets a journal aside that the log does not bear out.
        """
        with ExitStack() as held:
            running = ActiveTransaction(prepared, DirectoryHandles(self._files), held)
            held.callback(running.directories.close)
            try:
                self._apply_operations(running)
            except BaseException as error:
                left = self._roll_back_operations(running)
                if running.rollback_failed:
                    raise _rollback_error(left) from error
                if isinstance(error, OSError):
                    raise _write_error(error, prepared) from error
                raise
            running.resources = held.pop_all()
            self._active[prepared.txn] = running

    def roll_back(self, prepared: PreparedTransaction) -> list[dict[str, str]]:
        """Undo changes that were applied and not settled; what could not be taken back is listed with the reason."""
        running = self._active.pop(prepared.txn, None)
        if running is None:
            return []
        with running.resources:
            return self._roll_back_operations(running)

    def finalize(self, txn: str) -> None:
        """Let applied changes stand: keep what they replaced, leave no temporary, and let others have their turn.

        What cannot be cleared away now is left to recovery; the changes stand all the same.
        """
        running = self._active.pop(txn, None)
        if running is None:
            return
        with running.resources:
            try:
                self._finalize_operations(running)
            except (OSError, errors.SystemError):
                running.leave_to_recovery()

    def recover(
        self, announced: Callable[[str], RecordedIntent | None], first: Sequence[str] = ()
    ) -> list[RecoveryResult]:
        """Finish or take back what dead processes left half-done, as far as the log announced it.

        What living ones have under way is left alone. `announced` says what the log has of a change; the journals
        named in `first` are looked at before all others, the last first. A journal that is not ours is left where it
        is, one that is none, or that the log does not bear out, is set aside: neither is acted on, and neither raises.
        """
        found = []
        for journal in self._journals.find_abandoned(first):
            try:
                recovered = self._recover_journal(journal, announced)
            except (OSError, errors.SystemError) as error:
                recovered = _unrecovered(journal, type(error).__name__)
            finally:
                if journal.journal is not None:
                    journal.journal.close()
            if recovered is not None:
                found.append(recovered)
        return found

    def _recover_journal(
        self, journal: AbandonedJournal, announced: Callable[[str], RecordedIntent | None]
    ) -> RecoveryResult | None:
        """Bring one journal's change to its end; None where its writer lives."""
        if journal.origin in ("foreign", "unreadable"):
            return _unrecovered(journal, journal.origin)
        if journal.journal is None or not journal.lines:
            return self._set_journal_aside(journal, "malformed")
        said = announced(journal.name)
        live = said.liveness_id if said is not None else str(journal.lines[0].get("live", ""))
        if (said is None or said.is_open) and not self.is_dead(live):
            return None
        if said is None:
            return self._set_journal_aside(journal, "not_announced")
        if said.is_rolled_back:  # an older copy of it was put back: since then the files may have changed the same way
            return self._set_journal_aside(journal, "taken_back_before")
        try:
            plan = recovery.JournaledOperations.from_lines(journal.lines, journal.name)
        except ValueError:
            return self._set_journal_aside(journal, "malformed")
        if not plan.is_announced_by(said.changes) or plan.has_protected_path():
            return self._set_journal_aside(journal, "not_as_announced")
        fate = _commit_state(journal.lines, recorded=said.is_applied)
        return recovery.recover_transaction(self._files, self._blobs, journal.journal, plan, LOCK_SECONDS, fate)

    def _set_journal_aside(self, journal: AbandonedJournal, why: str) -> RecoveryResult:
        moved = self._journals.set_aside(journal.name)
        if moved is None:
            return _unrecovered(journal, why)
        return RecoveryResult(journal.name, "set_aside", (), ({"path": moved, "reason": why},))

    def remove_leftovers(self, txn: str, paths: Iterable[RelPath]) -> int:
        """Clear away temporaries of a change whose journal the power took; the intent names where they may be."""
        if self._journals.has_pending(txn):
            return 0
        return sum(
            recovery.remove_staged_files(self._files, self._blobs, txn, parent)
            for parent in {path.parent for path in paths}
        )

    def close(self) -> None:
        """Be gone; changes not settled are left to recovery."""
        if self._liveness is not None:
            self._liveness.close()
        self._kaiza_dir.close()

    def _liveness_lock(self) -> LivenessLock:
        with self._mutex:
            if self._liveness is None:
                self._liveness = LivenessLock(self._kaiza_dir)
            return self._liveness

    def _apply_operations(self, running: ActiveTransaction) -> None:
        prepared = running.prepared
        running.resources.enter_context(path_locks.acquire(self._kaiza_dir, prepared.paths, LOCK_SECONDS))
        for path in sorted(prepared.paths):
            running.directories.open_or_plan(path.parent)
        head = {
            "steps": [step.as_json() for step, _ in prepared.operations],
            "made": [path.parts for path in running.directories.missing],
        }
        entry = running.journal = self._journals.begin(prepared.txn, self.liveness_id, head)
        with closing(FsyncBatch(len(prepared.operations), self._files.fd)) as batch:
            staging = Staging(self._blobs, self._journals, running.directories, batch, prepared.undone_txns)
            kept = [staging.store_preimage(step) for step, _ in prepared.operations]
            running.directories.create_missing()
            for (step, change), is_kept in zip(prepared.operations, kept, strict=True):
                running.operations.append(ActiveOperation(step, running.directories, self._blobs, is_stored=is_kept))
                staging.stage_content(running.operations[-1], change)
            entry.append({"staged": [part.our_inode for part in running.operations]})
            entry.add_to_batch(batch)
            batch.sync()
        for part in running.operations:
            part.perform()
        running.directories.sync(
            {part.operation.path.parent for part in running.operations} | _source_directories(running.operations)
        )
        entry.mark_committed()

    def _finalize_operations(self, running: ActiveTransaction) -> None:
        for part in running.operations:
            part.finalize()
        self._journals.add_created_directories([str(path) for path in running.directories.created])
        if running.prepared.undone_txns:
            self._remove_empty_directories(running)
        if running.journal is not None:
            running.journal.archive()

    def _roll_back_operations(self, running: ActiveTransaction) -> list[dict[str, str]]:
        """Undo what was done, newest first; the journal goes only when nothing is left to do."""
        if running.journal is None:
            return []
        with suppress(OSError):
            running.journal.mark_rolled_back()
        left, whole = recovery.roll_back(running.operations, running.directories)
        running.rollback_failed = not whole
        if whole:
            with suppress(OSError):  # a journal of nothing is taken back once more by whoever finds it
                running.journal.delete()
        else:
            running.journal.close()
        return left

    def _remove_empty_directories(self, running: ActiveTransaction) -> None:
        """Remove directories that Kaiza made and that an undo left empty."""
        made = self._journals.created_directories()
        for step, _ in running.prepared.operations:
            path = (step.source or step.path).parent
            while path.parts and str(path) in made:
                above = DirectoryHandles(self._files)
                try:
                    if not above.open_existing(path.parent) or not remove_empty(above.descriptors[path.parent], path):
                        break
                finally:
                    above.close()
                path = path.parent


def _commit_state(lines: Sequence[JournalLine], *, recorded: bool) -> CommitState:
    """What is to become of an abandoned change; that it is being taken back outweighs the record."""
    if any("taken_back" in line for line in lines):
        return "taken_back"
    if recorded:
        return "recorded"
    return "committed" if any("committed" in line for line in lines) else "taken_back"


def _unrecovered(journal: AbandonedJournal, why: str) -> RecoveryResult:
    """A journal that stays where it is, with the reason."""
    return RecoveryResult(journal.name, "left", (), ({"path": f".kaiza/journal/{journal.name}", "reason": why},))


def _source_directories(parts: Sequence[ActiveOperation]) -> set[RelPath]:
    return {
        part.operation.source.parent
        for part in parts
        if part.operation.kind == "move" and part.operation.source is not None
    }


def _write_error(error: OSError, prepared: PreparedTransaction) -> errors.SystemError:
    path = prepared.changes[0].path if len(prepared.changes) == 1 else RelPath(())
    if error.errno in _REPLACED_ERRNOS:
        return mismatch_error(path, None, None)
    return to_system_error(error, path, missing="FILE_WRITE_FAILED", otherwise="FILE_WRITE_FAILED")


def _rollback_error(left: Sequence[Mapping[str, str]]) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "FILE_WRITE_FAILED",
        human_message="The change failed and could not be taken back whole. The next session recovers it.",
        cause={"left": list(left)},
    )
