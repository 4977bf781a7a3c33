"""Recovery after a crash: what was committed is finished, what was not is taken back.

What was changed since is left alone. A journal says how far a change came; what the change was, the log says: a journal
whose steps are not those of an intent in the log is never acted on.
"""

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any, Literal

from kaiza.domain import errors
from kaiza.domain.audit import canonical_json
from kaiza.domain.paths.protected_names import is_control_plane
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.changes import path_locks
from kaiza.store.changes.blob_store import BlobStore
from kaiza.store.changes.directory_handles import DirectoryHandles, last_name
from kaiza.store.changes.journal import JournalLine, TransactionJournal
from kaiza.store.changes.operation import CHANGED_SINCE, ActiveOperation, Operation, store_and_unlink
from kaiza.store.disk.atomic_rename import BACKUP_SUFFIX
from kaiza.store.disk.file_metadata import inode_at, snapshot
from kaiza.store.files.confined_root import ConfinedRoot

RecoveryStatus = Literal["applied", "not_applied", "taken_back", "unknown", "set_aside", "left"]
CommitState = Literal["recorded", "committed", "taken_back"]
"""What is to become of a change: its outcome was recorded, it was only committed, or neither."""


@dataclass(frozen=True, slots=True)
class RecoveryResult:
    """What was found of one change and what was done about it."""

    txn: str
    result: RecoveryStatus
    paths: tuple[RelPath, ...]
    unresolved: tuple[dict[str, str], ...] = ()
    """Paths that were not touched, with the reason."""


@dataclass(frozen=True, slots=True)
class RecordedIntent:
    """What the log says of a change: the intent's changes, who made it, and what its outcome was, if there is one."""

    changes: Sequence[Mapping[str, Any]]
    liveness_id: str
    is_open: bool
    is_applied: bool
    """Whether an outcome is recorded that says the change was made."""
    is_rolled_back: bool = False
    """Whether a recovery is recorded after which nothing of it is left."""


@dataclass(frozen=True, slots=True)
class JournaledOperations:
    """What a journal says is to be done: the steps, the directories made for them, and how far it came."""

    operations: tuple[Operation, ...]
    created_directories: tuple[RelPath, ...]
    staged_inodes: Sequence[int | None] | None
    """The identities of the files that the steps bring in; None where the change did not come that far."""

    @classmethod
    def from_lines(cls, lines: Sequence[JournalLine], txn: str) -> "JournaledOperations":
        """Read them from a journal's lines. ValueError where the lines do not say such a thing."""
        head = lines[0]
        try:
            steps = tuple(Operation.from_json(one, txn, number) for number, one in enumerate(head["steps"]))
            made = tuple(RelPath(tuple(map(str, parts))) for parts in head["made"])
        except (KeyError, TypeError) as fault:
            raise ValueError("not the first line of a journal") from fault
        above = {place for step in steps for place in _parent_directories(step.path)}
        if not above.issuperset(made):
            raise ValueError("a directory that no step needs")
        staged = next((line["staged"] for line in lines if "staged" in line), None)
        return cls(steps, made, staged if isinstance(staged, list) and len(staged) == len(steps) else None)

    @property
    def paths(self) -> tuple[RelPath, ...]:
        """Every path that the steps touch."""
        return tuple(path for step in self.operations for path in (step.path, step.source) if path is not None)

    def is_announced_by(self, changes: Sequence[Mapping[str, Any]]) -> bool:
        """Whether the steps are those of an intent's changes: the same operations, paths and hashes, in order."""
        left = [_outline_operation(step) for step in self.operations]
        for change in changes:
            expected = next((one for one in _expected_outlines(change) if left[: len(one)] == one), None)
            if expected is None:
                return False
            del left[: len(expected)]
        return not left

    def has_protected_path(self) -> bool:
        """Whether a path belongs to what governs the agent; no change that was judged has such a path."""
        return any(is_control_plane(path) for path in self.paths)


OperationOutline = tuple[str, str, str | None, str | None, str | None]
"""A step as an intent can tell it: what is done, the path, the source, the hash before and after."""


def _outline_operation(step: Operation) -> OperationOutline:
    source = None if step.source is None else _recorded_path(step.source)
    return (step.kind, _recorded_path(step.path), source, step.before_hash, step.after_hash)


def _expected_outlines(change: Mapping[str, Any]) -> Iterator[list[OperationOutline]]:
    """The ways in which a recorded change is made, each as its steps."""
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


def _recorded_path(path: RelPath) -> str:
    """A path as records spell it, where bytes that are not UTF-8 are escaped."""
    spelled, _ = canonical_json.to_recordable({"path": str(path)})
    return str(spelled["path"])


def _parent_directories(path: RelPath) -> Iterator[RelPath]:
    while path.parts:
        path = path.parent
        yield path


def roll_back(parts: Sequence[ActiveOperation], directories: DirectoryHandles) -> tuple[list[dict[str, str]], bool]:
    """Take back what was done, newest first; what stays is listed, and whether nothing is left to do is told."""
    left: list[dict[str, str]] = []
    whole = True
    for part in reversed(parts):
        try:
            why = part.roll_back() if part.is_done else None
            part.remove_temporary()
        except (OSError, errors.SystemError) as error:
            whole, why = False, type(error).__name__
        if why:
            left.append({"path": str(part.operation.path), "reason": why})
    try:
        directories.remove_created()
    except OSError:
        whole = False
    return left, whole


def recover_transaction(
    workspace: ConfinedRoot,
    objects: BlobStore,
    entry: TransactionJournal,
    plan: JournaledOperations,
    seconds: float,
    fate: CommitState,
) -> RecoveryResult:
    """Bring one abandoned change to its end; its journal goes when there is nothing left to do."""
    paths = tuple(step.path for step in plan.operations)
    with ExitStack() as held:
        held.enter_context(path_locks.acquire(objects.kaiza_dir, paths, seconds))
        directories = DirectoryHandles(workspace)
        held.callback(directories.close)
        parts, lost = _reconstruct_operations(plan, directories, objects, fate)
        if fate == "taken_back":
            result, left = _abort_transaction(parts, directories, entry, plan.created_directories)
        else:
            result, left = _complete_transaction(parts, entry, fate)
    left += [{"path": str(path), "reason": "directory_is_gone"} for path in lost]
    return RecoveryResult(entry.txn, "unknown" if left else result, paths, tuple(left))


def remove_staged_files(workspace: ConfinedRoot, objects: BlobStore, txn: str, parent: RelPath) -> int:
    """Take away what was staged for a change in one directory and never came to its place; its content is kept."""
    directories = DirectoryHandles(workspace)
    try:
        if not directories.open_existing(parent):
            return 0
        where = directories.descriptors[parent]
        found = [name for name in os.listdir(where) if name.startswith(f".kaiza-{txn}-")]  # noqa: PTH208 (of a descriptor)
        for name in found:
            store_and_unlink(objects, where, name.encode())
        return len(found)
    finally:
        directories.close()


def _reconstruct_operations(
    plan: JournaledOperations, directories: DirectoryHandles, objects: BlobStore, fate: CommitState
) -> tuple[list[ActiveOperation], list[RelPath]]:
    """Find out how far each step came; steps whose directory is gone came to nothing that could be mended."""
    made, staged = set(plan.created_directories), plan.staged_inodes
    parts, lost = [], []
    for number, step in enumerate(plan.operations):
        if not _has_directories(step, directories):
            if staged is not None and not _is_rolled_back(step, staged[number], made, directories):
                lost.append(step.path)
            continue
        part = ActiveOperation(step, directories, objects, staged[number] if staged else None)
        _complete_rename(part)
        if step.kind == "move" and fate != "recorded":  # what is recorded was a whole move: a second link is the user's
            _complete_move(part)
        part.is_done = staged is not None and _is_performed(part)
        parts.append(part)
    return parts, lost


def _has_directories(step: Operation, directories: DirectoryHandles) -> bool:
    places = [step.path.parent] + ([step.source.parent] if step.kind == "move" and step.source else [])
    try:
        return all(directories.open_existing(place) for place in places)
    except OSError as error:
        if error.errno in {errno.ENOTDIR, errno.ELOOP}:
            return False
        raise


def _is_rolled_back(step: Operation, ours: int | None, made: set[RelPath], directories: DirectoryHandles) -> bool:
    """Whether a step's directory is gone because taking back had come so far."""
    if step.path.parent not in made:
        return False
    if step.kind != "move" or step.source is None:
        return True
    above = step.source.parent
    return directories.open_existing(above) and inode_at(directories.descriptors[above], last_name(step.source)) == ours


def _complete_rename(part: ActiveOperation) -> None:
    """Finish a portable rename that was cut in two."""
    backup = part.temp + BACKUP_SUFFIX
    if inode_at(part.directory_fd, backup) is not None:
        if inode_at(part.directory_fd, part.temp) is None:
            os.rename(backup, part.temp, src_dir_fd=part.directory_fd, dst_dir_fd=part.directory_fd)
        else:
            os.unlink(backup, dir_fd=part.directory_fd)
    at_temp = inode_at(part.directory_fd, part.temp)
    if (
        part.operation.kind in {"put", "take"}
        and at_temp is not None
        and at_temp == inode_at(part.directory_fd, part.name)
    ):
        os.unlink(part.temp, dir_fd=part.directory_fd)


def _complete_move(part: ActiveOperation) -> None:
    """Finish a portable rename from one path to the other that was cut in two."""
    at_source = inode_at(*part.source_location)
    if at_source is not None and at_source == inode_at(part.directory_fd, part.name):
        os.unlink(part.name, dir_fd=part.directory_fd)


def _is_performed(part: ActiveOperation) -> bool:
    at_temp = inode_at(part.directory_fd, part.temp)
    if part.operation.kind == "take":
        return at_temp is not None
    if part.operation.kind == "swap":
        return at_temp is not None and at_temp != part.our_inode
    return inode_at(part.directory_fd, part.name) == part.our_inode and part.our_inode is not None


def _abort_transaction(
    parts: Sequence[ActiveOperation], directories: DirectoryHandles, entry: TransactionJournal, made: Sequence[RelPath]
) -> tuple[RecoveryStatus, list[dict[str, str]]]:
    acted = any(part.is_done for part in parts)
    for path in made:
        with suppress(OSError):
            if directories.open_existing(path) and directories.open_existing(path.parent):
                directories.created.append(path)
    left, whole = roll_back(parts, directories)
    if whole:
        entry.delete()
    else:
        entry.close()
    return ("taken_back" if acted else "not_applied"), left


def _complete_transaction(
    parts: Sequence[ActiveOperation], entry: TransactionJournal, fate: CommitState
) -> tuple[RecoveryStatus, list[dict[str, str]]]:
    """Clear away what is left of it. What was recorded may have been undone since: a move is then not made again."""
    left: list[dict[str, str]] = []
    whole = True
    for part in parts:
        try:
            again = fate == "committed" or part.operation.kind != "move"
            if again and not part.is_done and _is_lost_on_disk(part):
                if _is_as_announced(part):
                    part.perform()
                else:
                    left.append({"path": str(part.operation.path), "reason": CHANGED_SINCE})
            part.finalize()
        except (OSError, errors.SystemError) as error:
            whole = False
            left.append({"path": str(part.operation.path), "reason": type(error).__name__})
    if whole:
        entry.archive()
    else:
        entry.close()
    return "applied", left


def _is_as_announced(part: ActiveOperation) -> bool:
    """Whether what stands ready for a path still has the content that was announced for it."""
    if part.operation.kind not in {"put", "swap"}:
        return True
    seen = snapshot(part.directory_fd, part.temp)
    return seen is not None and seen.digest == part.operation.after_hash


def _is_lost_on_disk(part: ActiveOperation) -> bool:
    """Whether the disk forgot a committed step, as it may when the power goes."""
    if part.operation.kind in {"put", "swap"}:
        return inode_at(part.directory_fd, part.temp) == part.our_inode and part.our_inode is not None
    if part.operation.kind == "take":
        return False
    return inode_at(*part.source_location) == part.our_inode
