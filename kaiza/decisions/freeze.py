"""Freeze: stop every change, in every session of every process, until a person thaws the workspace."""

from dataclasses import dataclass

from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A freeze for this reason, which is shown to people but not to agents."""

    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The freeze as it is recorded, with the reasons of earlier ones that were not lifted, oldest first."""

    at: str
    seq: int
    reasons: tuple[str, ...]


def propose(_workspace: Workspace, reason: str) -> Proposal:
    """A freeze is never refused: it only restricts."""
    return Proposal(reason)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the freeze. It is in force for every process once the record is in the log."""
    record = human_decisions.record_decision(workspace, "freeze", person, detail={"reason": proposal.reason})
    freeze = workspace.audit_state.frozen
    reasons = tuple(one.reason for one in freeze.each) if freeze else ()
    return Decision(record.timestamp, record.seq, reasons)
