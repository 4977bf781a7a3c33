"""Records plans that were withdrawn by editing or by a commit: the state directory may be lost, or full."""

from contextlib import suppress
from functools import partial

from kaiza.clock import current_timestamp
from kaiza.domain.audit.projection import WITHDRAWAL
from kaiza.domain.audit.record import Body, new_body
from kaiza.store.workspace import Workspace

_MAX_AT_ONCE = 100


def record_withdrawals(workspace: Workspace) -> None:
    """Append a record for each withdrawal that the log does not have. AUDIT_LOG_FAILED if one cannot be written."""
    if workspace.binding.is_foreign or not (withdrawn := workspace.sights.list_withdrawn()):
        return
    state = workspace.audit_state
    missing = [] if state.is_partial else [plan_id for plan_id in withdrawn if plan_id not in state.withdrawn]
    for plan_id in missing[:_MAX_AT_ONCE]:
        workspace.begin_recording()
        with suppress(_IsRecordedError):
            workspace.log.append(partial(_compose, workspace, plan_id), durable=True)


def _compose(workspace: Workspace, plan_id: str) -> Body:
    # Under the log's lock: another process may have recorded it, or a person approved the plan again.
    status = workspace.sights.list_withdrawn().get(plan_id)
    if status is None or plan_id in workspace.audit_state.withdrawn or workspace.audit_state.is_partial:
        raise _IsRecordedError
    detail = {"result": WITHDRAWAL, "status": status}
    return new_body(
        "recovery", timestamp=current_timestamp(), workspace_root=workspace.root, plan_id=plan_id, detail=detail
    )


class _IsRecordedError(Exception):
    """The log has the withdrawal, or it does not hold any more."""
