"""Adopt what came from elsewhere: a workspace, so that changes can happen in it, or what its `kaiza.toml` loosens."""

from dataclasses import dataclass
from typing import Any

from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspace_status import describe_arrival
from kaiza.store import human_decisions
from kaiza.store.audit.damage_mark import is_damage
from kaiza.store.settings_adoption import adopt_settings
from kaiza.store.workspace import Workspace

_NOT_INTACT = "The audit log is damaged. Nothing was adopted. Run `kaiza audit accept` first, then `kaiza adopt` again."


@dataclass(frozen=True, slots=True)
class Proposal:
    """What came with the workspace: its records and where they were written, its plans, its settings."""

    arrival: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Decision:
    """The number up to which records may only restrict, because they were written elsewhere."""

    adopted_seq: int


def propose(workspace: Workspace) -> Proposal:
    """The adoption of the workspace as it is, after its whole log is verified. Refused if the log is damaged."""
    arrival = describe_arrival(workspace)
    if is_damage(arrival["log"]["verdict"]):
        raise RefusedError(_NOT_INTACT)
    return Proposal(arrival)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the adoption, then bind the workspace and adopt its settings: no adoption is without a record."""

    def require_sound() -> None:
        # Damage that was found since would be adopted with the rest.
        if workspace.damage() is not None:
            raise RefusedError(_NOT_INTACT)

    detail = {name: proposal.arrival[name] for name in ("records", "roots", "settings")}
    record = human_decisions.record_decision(workspace, "adopt", person, require_sound, detail=detail)
    if workspace.binding.is_foreign:
        # The record of the adoption itself is the first that counts in full.
        workspace.adopt(record.seq - 1)
    adopt_settings(workspace)
    return Decision(workspace.binding.adopted_seq)
