"""Records decisions of people in the audit log, and keeps the bytes of the plans they approve.

A plan withdrawn by editing or by a commit is recorded as well: the state directory may be lost, or full.
"""

from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit.projection import WITHDRAWAL
from kaiza.domain.audit.record import Body, Record, new_body
from kaiza.domain.plans.plan import MAX_BYTES, Plan
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.workspace import Workspace

Precondition = Callable[[], None]
_MAX_WITHDRAWALS_AT_ONCE = 100


def catch_up(workspace: Workspace) -> None:
    """Follow the log to its end, verifying what is new."""
    if workspace.is_recording() and not workspace.binding.is_new:
        workspace.log.catch_up()


def record_decision(
    workspace: Workspace, action: str, person: str, check: Precondition | None = None, **members: Any
) -> Record:
    """Append a record of kind `person`, durable when this returns.

    `check` runs under the log's lock, so that no other process can record anything between it and the append; if it
    raises, nothing is written. `members` are further members of the record, `detail` of its detail.
    """
    workspace.begin_recording()
    detail = {"action": action, "person": person, **members.pop("detail", {})}

    def compose() -> Body:
        if check is not None:
            check()
        return new_body(
            "person",
            timestamp=current_timestamp(),
            workspace_root=workspace.root,
            outcome="ok",
            detail=detail,
            **members,
        )

    return workspace.log.append(compose, durable=True)


def record_withdrawals(workspace: Workspace) -> None:
    """Append a record for each withdrawal that the log does not have. AUDIT_LOG_FAILED if one cannot be written."""
    if workspace.binding.is_foreign or not (withdrawn := workspace.seen_plans.list_withdrawn()):
        return
    state = workspace.audit_state
    missing = [] if state.is_partial else [plan_id for plan_id in withdrawn if plan_id not in state.withdrawn]
    for plan_id in missing[:_MAX_WITHDRAWALS_AT_ONCE]:
        workspace.begin_recording()
        with suppress(_IsRecordedError):
            workspace.log.append(partial(_compose_withdrawal, workspace, plan_id), durable=True)


def _compose_withdrawal(workspace: Workspace, plan_id: str) -> Body:
    # Under the log's lock: another process may have recorded it, or a person approved the plan again.
    status = workspace.seen_plans.list_withdrawn().get(plan_id)
    if status is None or plan_id in workspace.audit_state.withdrawn or workspace.audit_state.is_partial:
        raise _IsRecordedError
    detail = {"result": WITHDRAWAL, "status": status}
    return new_body(
        "recovery", timestamp=current_timestamp(), workspace_root=workspace.root, plan_id=plan_id, detail=detail
    )


class _IsRecordedError(Exception):
    """The log has the withdrawal, or it does not hold any more."""


def record_plan_seal(workspace: Workspace, plan_id: str, plan_hash: str, detail: Mapping[str, Any]) -> None:
    """Append the seal of a plan approved by command: from now on only these bytes are valid under its id."""
    workspace.begin_recording()
    members = {"plan_id": plan_id, "plan_hash": plan_hash, "detail": {"how": "command", **detail}}
    workspace.log.append(
        lambda: new_body("plan", timestamp=current_timestamp(), workspace_root=workspace.root, **members), durable=True
    )


def describe_count(files: int | None) -> dict[str, Any]:
    """How many files a plan's scope matches, as a seal says it; None: not counted, or not to the end."""
    return {"files": files, "counted": files is not None}


def store_approved_plan(workspace: Workspace, plan: Plan) -> None:
    """Store the bytes of a plan's file, unless it has changed since it was read."""
    stored = workspace.plans.read(plan.plan_id)
    if stored is not None and stored.parsed.plan_hash == plan.plan_hash:
        store_plan_bytes(workspace, plan.plan_hash, stored.content)


def store_plan_bytes(workspace: Workspace, plan_hash: str, content: bytes) -> None:
    """Store a plan's bytes in the blob store, durable when this returns."""
    workspace.begin_recording()
    with closing(FsyncBatch()) as batch:
        workspace.blobs.store(plan_hash, [content], pack=True, batch=batch)
        batch.sync()


def load_plan_bytes(workspace: Workspace, plan_hash: str) -> bytes | None:
    """A plan's stored bytes; None if they are missing, damaged or larger than a plan may be."""
    try:
        return b"".join(workspace.blobs.chunks(plan_hash, MAX_BYTES))
    except errors.SystemError:
        return None
