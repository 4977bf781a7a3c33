"""Clear stored contents of files that no undo, no review of recent changes and no approved plan needs."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import Progress, verify_whole_log
from kaiza.store import human_decisions
from kaiza.store.config.settings import count_days
from kaiza.store.object_cleanup import CleanupPlan, ObjectCleanup
from kaiza.store.workspace import Workspace

__all__ = ["Decision", "Proposal", "count_days", "decide", "propose"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """The objects that may be cleared now."""

    keep_days: int
    cleanup: ObjectCleanup
    found: CleanupPlan


@dataclass(frozen=True, slots=True)
class Decision:
    """The objects that were cleared."""

    cleared: CleanupPlan


def propose(workspace: Workspace, keep_days: int | None, progress: Progress) -> Proposal:
    """What nothing of the last days needs; without a number of days, as the settings say.

    Refused if the log is damaged, because it says what is needed, or if its times are not real ones.
    """
    verify_whole_log(workspace, progress)
    if workspace.audit_state.is_deterministic:
        raise RefusedError("The times of this log only count its records. Nothing was cleared.")
    days = workspace.settings.keep_days if keep_days is None else keep_days
    cleanup = ObjectCleanup(workspace, datetime.now(UTC) - timedelta(days=days))
    return Proposal(days, cleanup, cleanup.plan())


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the cleanup, then remove each object that is still not needed. Without objects, record nothing."""
    found = proposal.found
    if not found.removable:
        return Decision(found)
    # Before the first is removed, so that none is without a record.
    detail = {"keep_days": proposal.keep_days, "objects": len(found.removable), "bytes": found.size}
    human_decisions.record_decision(workspace, "gc", person, detail=detail)
    # Each object is looked at again under the log's lock: a call may have announced since that it needs one.
    return Decision(proposal.cleanup.remove(found))
