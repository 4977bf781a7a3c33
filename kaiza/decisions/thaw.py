"""Thaw: lift a freeze, with all of its reasons."""

from dataclasses import dataclass

from kaiza.domain.audit.projection import Freeze
from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import require_sound_log
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The freeze that would be lifted."""

    freeze: Freeze


@dataclass(frozen=True, slots=True)
class Decision:
    """Changes are allowed again."""

    seq: int


def propose(workspace: Workspace) -> Proposal:
    """Refused if the log is not sound or the workspace is not frozen."""
    require_sound_log(workspace)
    freeze = workspace.audit_state.frozen
    if freeze is None:
        raise RefusedError("The workspace is not frozen. Nothing was changed.")
    return Proposal(freeze)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the thaw. Refused if the freeze is not the one that the person was shown."""
    freeze = proposal.freeze

    def require_same_freeze() -> None:
        # A later freeze has a reason that the person was not shown.
        if workspace.audit_state.frozen != freeze:
            raise RefusedError("The freeze changed in the meantime. Nothing was thawed. Run the command again.")

    detail = {"reason": freeze.reason, "more_reasons": [one.reason for one in freeze.more]}
    record = human_decisions.record_decision(workspace, "thaw", person, require_same_freeze, detail=detail)
    return Decision(record.seq)
