"""Undo: restore files as they were before agents changed them. Works under a freeze, on a full disk, without a plan.

A large undo is split into batches that fit into one record each; every batch is made whole or not at all.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import record
from kaiza.domain.audit.inverse_changes import invert
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undo_batches import UndoBatch, UndoneCalls, split_batches
from kaiza.domain.caps import Caps
from kaiza.domain.change import Change
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.refusal import RefusedError
from kaiza.policy.rules.readable import read_refusal
from kaiza.queries.undoable_changes import diff_changes, read_changes
from kaiza.queries.workspaces import require_sound_log
from kaiza.render.terminal import escape_name
from kaiza.store.changes.directory_handles import read_created, remove_empty_tree, restore_directories
from kaiza.store.changes.staging import store_held_content
from kaiza.store.crash_recovery import recover
from kaiza.store.disk import disk_reserve
from kaiza.store.tool_view import ToolView
from kaiza.store.workspace import Workspace
from kaiza.tools.changing.undo_plan import undo_changes_for


@dataclass(frozen=True, slots=True)
class Proposal:
    """The changes that restore files, newest first, and the files that would be left alone, each with the reason."""

    changes: Sequence[Change]
    diffs: Sequence[str]
    """One for each change; empty where so much is shown already that it is left out."""
    skipped: Sequence[dict[str, str]]
    undone_calls: UndoneCalls


@dataclass(frozen=True, slots=True)
class Decision:
    """The request ids of the undos, one for each batch. They undo the undo."""

    request_ids: Sequence[str]


@contextmanager
def prepare(workspace: Workspace) -> Iterator[Sequence[Mapping[str, Any]]]:
    """Let the undo use the space that is kept for it on a full disk, and settle what a crash left; what was settled."""
    released = disk_reserve.release_if_full(workspace.blobs.kaiza_dir)
    try:
        # A change left half done is finished or rolled back first: undo compares files with the log.
        yield recover(workspace, current_timestamp(), "kaiza undo") or ()
    finally:
        if released:
            disk_reserve.keep_if_possible(workspace.blobs.kaiza_dir)


def propose(workspace: Workspace, is_selected: Callable[[Record], bool]) -> Proposal:
    """The undo of the selected records. Refused if the log is not sound, because it says what was there before.

    The caller has waited until the whole log is verified.
    """
    require_sound_log(workspace)
    caps, now = Caps(), current_timestamp()
    view = ToolView(workspace, None, caps, {}, read_refusal, lambda: False, now, "kaiza undo")
    undone_calls = UndoneCalls()
    inverses = invert(undone_calls.note(read_changes(workspace), is_selected), is_selected)
    made = read_created(workspace.blobs.kaiza_dir, workspace.state_key)
    changes, skipped = undo_changes_for(inverses, view, made_directories=made)
    return Proposal(changes, list(diff_changes(changes, workspace, view)), skipped, undone_calls)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Restore the files, batch by batch. Refused at the first batch that cannot be made; those before it are."""
    # Contents that are in no store yet: a file has each of them until the change that displaces it.
    holders = {one.before_hash: one.touched_paths for one in proposal.changes if one.before_hash is not None}
    request_ids: list[str] = []
    workspace.begin_recording()
    for batch in split_batches(proposal.changes, proposal.undone_calls, workspace.free_bytes):
        try:
            request_ids.append(_restore_batch(workspace, batch, person, holders))
        except errors.SystemError as error:
            first = escape_name(str(batch.changes[0].path))
            raise RefusedError(
                f"{error.error_code}: {error.human_message} The batch that begins with {first} was not restored; the "
                "batches before it were. Run `kaiza undo` again to see what is left."
            ) from error
    return Decision(request_ids)


def _restore_batch(
    workspace: Workspace, batch: UndoBatch, person: str, holders: Mapping[str, Sequence[RelPath]]
) -> str:
    """Record the intent, restore the files, record the outcome; the request id. If it raises, no file is changed."""
    txn, transactions = str(uuid.uuid4()), workspace.transactions
    made = read_created(workspace.blobs.kaiza_dir, workspace.state_key)
    cleared: list[RelPath] = []
    try:
        for change in batch.changes:
            # An agent's empty directory gives way to the file that was there before.
            if change.operation in {"create", "move"} and str(change.path) in made:
                cleared += remove_empty_tree(workspace.files, change.path, made)
        own = {change.before_hash for change in batch.changes}
        for digest in (change.after_hash for change in batch.changes):
            # The file that has this content belongs to another batch, which may be made first.
            if digest is not None and digest in holders and digest not in own and not workspace.blobs.has(digest):
                store_held_content(workspace.files, workspace.blobs, digest, holders[digest])
        # Here the files are compared with what the person was shown. What can be foreseen fails before the intent.
        prepared = transactions.prepare(txn, batch.changes, undoes=batch.undone)

        changes = [change.as_record() for change in batch.changes]
        members = {"request_id": txn, "workspace_root": workspace.root}
        detail = {"action": "undo", "person": person}
        # "unlimited": counted in no plan's limits, also when recovery completes it after a crash.
        intent = {**detail, "live": transactions.liveness_id, "unlimited": True}
        _append(workspace, "intent", changes=changes, detail=intent, **members)
        try:
            transactions.apply(prepared)
        except BaseException as raised:
            error = errors.SystemError.from_unknown(raised, error_code="FILE_WRITE_FAILED")
            failure = {"outcome": "error", "error_code": error.error_code, "human_message": error.human_message}
            _append(workspace, "person", detail=detail, **failure, **members)
            raise
        done = {**detail, "undone": list(batch.undone), "modes": prepared.original_modes}
        try:
            _append(workspace, "person", outcome="ok", changes=changes, detail=done, **members)
        except BaseException:
            transactions.roll_back(prepared)  # no change without its record
            raise
        transactions.finalize(txn)
    except BaseException:
        restore_directories(workspace.files, cleared)
        raise
    return txn


def _append(workspace: Workspace, kind: str, **members: Any) -> None:
    workspace.log.append(lambda: record.new_body(kind, timestamp=current_timestamp(), **members), durable=True)
