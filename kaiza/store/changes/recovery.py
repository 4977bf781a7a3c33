"""Recovery of abandoned transactions: committed ones are completed, all others are rolled back.

Files that were changed since the crash are left alone and reported. A journal says how far a transaction came; what it
is, the log says. Recovery acts on operations only where they are exactly those of the intent: valid codes alone do not
prove that a change was judged and recorded.
"""

import errno
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import Any, Literal

from kaiza.domain import errors
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes import path_locks
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.changes.journal import AbandonedJournal, JournalStore, TransactionJournal
from kaiza.store.changes.journal_lines import JournalLine
from kaiza.store.changes.operation import CHANGED_SINCE, ActiveOperation, Operation, store_and_unlink
from kaiza.store.disk.atomic_rename import BACKUP_SUFFIX
from kaiza.store.disk.file_metadata import inode_at, snapshot
from kaiza.store.files.confined_root import ConfinedRoot

RecoveryStatus = Literal["applied", "not_applied", "taken_back", "unknown", "set_aside", "left"]
CommitState = Literal["recorded", "committed", "taken_back"]
"""Whether the log has the outcome of a transaction, only its journal says `committed`, or it is to be rolled back."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What became of one abandoned transaction."""

    txn: str
    result: RecoveryStatus
    paths: tuple[RelPath, ...]
    unresolved: tuple[dict[str, str], ...] = ()
    """Paths that were not touched, each with the reason."""


@dataclass(frozen=True, slots=True)
class RecordedIntent:
    """What the log says of a transaction: the changes and the writer of its intent, and its outcome if it has one."""

    changes: Sequence[Mapping[str, Any]]
    liveness_id: str
    is_open: bool
    is_applied: bool
    """Whether an outcome is recorded that says the change was made."""
    is_rolled_back: bool = False
    """Whether a recovery is recorded that left nothing of it."""


OperationOutline = tuple[str, str, str | None, str | None, str | None]
"""What an intent says of an operation: its kind, path, source, hash before and hash after."""


@dataclass(frozen=True, slots=True)
class JournaledOperations:
    """The operations of a journal, the directories created for them, and how far they came."""

    operations: tuple[Operation, ...]
    created_directories: tuple[RelPath, ...]
    staged_inodes: Sequence[int | None] | None
    """Inodes of the files that the operations bring in; None where the crash came before all were staged."""

    @classmethod
    def from_lines(cls, lines: Sequence[JournalLine], txn: str) -> "JournaledOperations":
        """Parse the lines of a journal. ValueError where they are not those of a transaction."""
        head = lines[0]
        try:
            operations = tuple(Operation.from_json(value, txn, number) for number, value in enumerate(head["steps"]))
            created = tuple(RelPath(tuple(map(str, parts))) for parts in head["made"])
        except (KeyError, TypeError) as fault:
            raise ValueError("not the first line of a journal") from fault
        # A rollback removes these directories: only parents of the journal's own paths are accepted.
        parents = {
            RelPath(operation.path.parts[:depth])
            for operation in operations
            for depth in range(len(operation.path.parts))
        }
        if not parents.issuperset(created):
            raise ValueError("a directory that no operation needs")
        staged = next((line["staged"] for line in lines if "staged" in line), None)
        is_complete = isinstance(staged, list) and len(staged) == len(operations)
        return cls(operations, created, staged if is_complete else None)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that the operations change."""
        return tuple(path for each in self.operations for path in (each.path, each.source) if path is not None)

    def is_announced_by(self, changes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether these are the operations of an intent's changes: same kinds, paths and hashes, in order."""
        outlines: list[OperationOutline] = []
        for each in self.operations:
            source = None if each.source is None else str(each.source)
            outlines.append((each.kind, str(each.path), source, each.before_hash, each.after_hash))
        for change in changes:
            expected = next((each for each in _expected_outlines(change) if outlines[: len(each)] == each), None)
            if expected is None:
                return False
            del outlines[: len(expected)]
        return not outlines


@dataclass(frozen=True, slots=True)
class JournalRecovery:
    """Decides what to do about each abandoned journal, and does it.

    It acts on a journal only where every line's code is valid, the log has its intent, the operations are exactly the
    intent's changes, no path is protected, its writer is dead or recorded the outcome, and no recovery of it is
    recorded. That the log itself is sound is checked by the caller.
    """

    files: ConfinedRoot
    blobs: BlobStore
    journals: JournalStore
    is_dead: Callable[[str], bool]
    lock_seconds: float

    def run(self, find_intent: Callable[[str], RecordedIntent | None], first: Sequence[str]) -> list[RecoveryResult]:
        """Recover every abandoned journal; a failure with one is reported and does not stop the others."""
        results = []
        for abandoned in self.journals.find_abandoned(first):
            try:
                result = self._recover_journal(abandoned, find_intent)
            except (OSError, errors.SystemError) as error:
                result = _left_in_place(abandoned, type(error).__name__)
            finally:
                if abandoned.journal is not None:
                    abandoned.journal.close()
            if result is not None:
                results.append(result)
        return results

    def _recover_journal(
        self, abandoned: AbandonedJournal, find_intent: Callable[[str], RecordedIntent | None]
    ) -> RecoveryResult | None:
        # Another state directory may still need its journal, for instance where this workspace is a copy.
        if abandoned.origin in ("foreign", "unreadable"):
            return _left_in_place(abandoned, abandoned.origin)
        if abandoned.journal is None or not abandoned.lines:
            return self._set_aside(abandoned, "malformed")
        intent = find_intent(abandoned.name)
        liveness_id = intent.liveness_id if intent is not None else str(abandoned.lines[0].get("live", ""))
        # A free lock is not enough: a living writer whose rollback failed has released it, but not yet recorded the
        # outcome. Once that is recorded, the writer does not touch the journal again.
        if (intent is None or intent.is_open) and not self.is_dead(liveness_id):
            return None
        if intent is None:
            return self._set_aside(abandoned, "not_announced")
        # An older copy of the journal was put back. The same change may have been made again since: leave that alone.
        if intent.is_rolled_back:
            return self._set_aside(abandoned, "taken_back_before")
        try:
            journaled = JournaledOperations.from_lines(abandoned.lines, abandoned.name)
        except ValueError:
            return self._set_aside(abandoned, "malformed")
        if not journaled.is_announced_by(intent.changes) or any(map(is_control_plane, journaled.paths)):
            return self._set_aside(abandoned, "not_as_announced")
        state = _commit_state(abandoned.lines, is_recorded=intent.is_applied)
        return self._recover_transaction(abandoned.journal, journaled, state)

    def _set_aside(self, abandoned: AbandonedJournal, reason: str) -> RecoveryResult:
        moved_to = self.journals.set_aside(abandoned.name)
        if moved_to is None:
            return _left_in_place(abandoned, reason)
        return RecoveryResult(abandoned.name, "set_aside", (), ({"path": moved_to, "reason": reason},))

    def _recover_transaction(
        self, journal: TransactionJournal, journaled: JournaledOperations, state: CommitState
    ) -> RecoveryResult:
        paths = tuple(operation.path for operation in journaled.operations)
        locks = path_locks.acquire(self.blobs.kaiza_dir, paths, self.lock_seconds)
        with locks, closing(DirectoryHandles(self.files)) as directories:
            operations, lost = _reconstruct_operations(journaled, directories, self.blobs, state)
            if state == "taken_back":
                result, left = _abort_transaction(operations, directories, journal, journaled.created_directories)
            else:
                result, left, is_complete = _complete_transaction(operations, state)
                if is_complete:
                    journal.retire(journaled.operations, are_modes_recorded=False)
        left += [{"path": str(path), "reason": "directory_is_gone"} for path in lost]
        return RecoveryResult(journal.txn, "unknown" if left else result, paths, tuple(left))


def roll_back(
    operations: Sequence[ActiveOperation], directories: DirectoryHandles
) -> tuple[list[dict[str, str]], bool]:
    """Roll back, newest first. Returns the paths that were left with the reason, and whether nothing remains to do."""
    left: list[dict[str, str]] = []
    is_complete = True
    for active in reversed(operations):
        try:
            reason = active.roll_back() if active.is_done else None
            active.remove_temporary()
        except (OSError, errors.SystemError) as error:
            is_complete, reason = False, type(error).__name__
        if reason:
            left.append({"path": str(active.operation.path), "reason": reason})
    try:
        directories.remove_created()
    except OSError:
        is_complete = False
    return left, is_complete


def remove_staged_files(workspace: ConfinedRoot, blobs: BlobStore, txn: str, parent: RelPath) -> int:
    """Remove a transaction's temporary files in one directory, storing their contents; how many there were."""
    with closing(DirectoryHandles(workspace)) as directories:
        if not directories.open_existing(parent):
            return 0
        dir_fd = directories.descriptors[parent]
        names = [name for name in os.listdir(dir_fd) if name.startswith(f".kaiza-{txn}-")]  # noqa: PTH208 (of a descriptor)
        for name in names:
            store_and_unlink(blobs, dir_fd, name.encode())
        return len(names)


def _left_in_place(abandoned: AbandonedJournal, reason: str) -> RecoveryResult:
    return RecoveryResult(abandoned.name, "left", (), ({"path": f".kaiza/journal/{abandoned.name}", "reason": reason},))


def _commit_state(lines: Sequence[JournalLine], *, is_recorded: bool) -> CommitState:
    # A rollback that had begun overrules the log: its outcome may have been written although the append failed.
    if any("taken_back" in line for line in lines):
        return "taken_back"
    # The `committed` line is not synced; after a power cut the recorded outcome stands in for it.
    if is_recorded:
        return "recorded"
    return "committed" if any("committed" in line for line in lines) else "taken_back"


def _reconstruct_operations(
    journaled: JournaledOperations, directories: DirectoryHandles, blobs: BlobStore, state: CommitState
) -> tuple[list[ActiveOperation], list[RelPath]]:
    """Find out from the disk how far each operation came. Returns them, and the paths whose directory is gone."""
    created, staged = set(journaled.created_directories), journaled.staged_inodes
    reconstructed, lost = [], []
    for number, operation in enumerate(journaled.operations):
        if not _has_directories(operation, directories):
            if staged is not None and not _is_rolled_back(operation, staged[number], created, directories):
                lost.append(operation.path)
            continue
        active = ActiveOperation(operation, directories, blobs, staged[number] if staged else None)
        _complete_rename(active)
        # A recorded move was complete: a second link made since is the user's.
        if operation.kind == "move" and state != "recorded":
            # A portable move links and then unlinks: undo the link where the crash came between them.
            source_inode = inode_at(*active.source_location)
            if source_inode is not None and source_inode == inode_at(active.directory_fd, active.name):
                os.unlink(active.name, dir_fd=active.directory_fd)
        active.is_done = staged is not None and _is_performed(active)
        reconstructed.append(active)
    return reconstructed, lost


def _has_directories(operation: Operation, directories: DirectoryHandles) -> bool:
    parents = [operation.path.parent]
    if operation.kind == "move" and operation.source:
        parents.append(operation.source.parent)
    try:
        return all(directories.open_existing(parent) for parent in parents)
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            return False
        raise


def _is_rolled_back(
    operation: Operation, our_inode: int | None, created: set[RelPath], directories: DirectoryHandles
) -> bool:
    """Whether an earlier rollback removed the operation's directory, and was then killed."""
    if operation.path.parent not in created:
        return False
    if operation.kind != "move" or operation.source is None:
        return True
    parent, name = operation.source.parent, last_name(operation.source)
    return directories.open_existing(parent) and inode_at(directories.descriptors[parent], name) == our_inode


def _complete_rename(active: ActiveOperation) -> None:
    """Complete a portable rename, which takes two steps, where the crash came between them."""
    backup = active.temp + BACKUP_SUFFIX
    if inode_at(active.directory_fd, backup) is not None:
        if inode_at(active.directory_fd, active.temp) is None:
            os.rename(backup, active.temp, src_dir_fd=active.directory_fd, dst_dir_fd=active.directory_fd)
        else:
            os.unlink(backup, dir_fd=active.directory_fd)
    temp_inode = inode_at(active.directory_fd, active.temp)
    if (
        active.operation.kind in {"put", "take"}
        and temp_inode is not None
        and temp_inode == inode_at(active.directory_fd, active.name)
    ):
        os.unlink(active.temp, dir_fd=active.directory_fd)


def _is_performed(active: ActiveOperation) -> bool:
    temp_inode = inode_at(active.directory_fd, active.temp)
    if active.operation.kind == "take":
        return temp_inode is not None
    if active.operation.kind == "swap":
        return temp_inode is not None and temp_inode != active.our_inode
    return inode_at(active.directory_fd, active.name) == active.our_inode and active.our_inode is not None


def _abort_transaction(
    operations: Sequence[ActiveOperation],
    directories: DirectoryHandles,
    journal: TransactionJournal,
    created: Sequence[RelPath],
) -> tuple[RecoveryStatus, list[dict[str, str]]]:
    was_performed = any(active.is_done for active in operations)
    for path in created:
        with suppress(OSError):
            if directories.open_existing(path) and directories.open_existing(path.parent):
                directories.created.append(path)
    left, is_complete = roll_back(operations, directories)
    if is_complete:
        journal.delete()
    else:
        journal.close()  # kept: the next recovery continues
    return ("taken_back" if was_performed else "not_applied"), left


def _complete_transaction(
    operations: Sequence[ActiveOperation], state: CommitState
) -> tuple[RecoveryStatus, list[dict[str, str]], bool]:
    """Complete the operations. Returns the result, the paths that were left, and whether nothing remains to do."""
    left: list[dict[str, str]] = []
    is_complete = True
    for active in operations:
        try:
            # A recorded move may have been undone since, which looks like a lost one: it is not repeated. A lost put or
            # swap is recognized by its temporary file, which an undo does not bring back.
            may_repeat = state == "committed" or active.operation.kind != "move"
            if may_repeat and not active.is_done and _is_lost_on_disk(active):
                # Anybody may have written into the temporary file since it was staged.
                staged = snapshot(active.directory_fd, active.temp) if active.operation.after_hash else None
                if active.operation.kind == "move" or (staged and staged.digest == active.operation.after_hash):
                    active.perform()
                else:
                    left.append({"path": str(active.operation.path), "reason": CHANGED_SINCE})
            active.finalize()
        except (OSError, errors.SystemError) as error:
            is_complete = False
            left.append({"path": str(active.operation.path), "reason": type(error).__name__})
    return "applied", left, is_complete


def _is_lost_on_disk(active: ActiveOperation) -> bool:
    """Whether a power cut undid the rename of a committed operation."""
    if active.operation.kind in {"put", "swap"}:
        return inode_at(active.directory_fd, active.temp) == active.our_inode and active.our_inode is not None
    if active.operation.kind == "take":
        return False
    return inode_at(*active.source_location) == active.our_inode


def _expected_outlines(change: Mapping[str, Any]) -> Iterator[list[OperationOutline]]:
    """The possible operations of a recorded change: a move is a rename, or a new file and a deletion."""
    path, source, before, after = (change[name] for name in ("path", "source", "before_hash", "after_hash"))
    if change["operation"] == "create":
        yield [("put", path, None, None, after)]
    elif change["operation"] == "modify":
        yield [("swap", path, None, before, after)]
    elif change["operation"] == "delete":
        yield [("take", path, None, before, None)]
    elif change["operation"] == "move":
        if after in (None, before):
            yield [("move", path, source, before, None)]
        yield [("put", path, source, before, after or before), ("take", source, None, before, None)]
