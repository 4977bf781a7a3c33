"""Unlock: let roles change files again after a refusal locked them."""

from dataclasses import dataclass

from kaiza.domain.audit.projection import RoleLock
from kaiza.domain.refusal import RefusedError
from kaiza.domain.roles import describe_role
from kaiza.queries.workspaces import require_sound_log
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The locks that would be opened."""

    locks: tuple[RoleLock, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """The roles that may change files again."""

    roles: tuple[str, ...]


def propose(workspace: Workspace, role: str | None) -> Proposal:
    """The lock of one role, or every lock. Refused if the log is not sound or there is no such lock."""
    require_sound_log(workspace)
    locks = tuple(lock for lock in workspace.audit_state.locks.values() if role in (None, lock.role))
    if not locks:
        which = f"The {describe_role(role)} is not locked" if role else "No role is locked"
        raise RefusedError(f"{which}. Nothing was changed.")
    return Proposal(locks)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the end of each lock. Refused at the first that is not the one that the person was shown."""
    for lock in proposal.locks:

        def require_same_lock(lock: RoleLock = lock) -> None:
            # A later lock has a reason that the person was not shown.
            if workspace.audit_state.locks.get(lock.role) != lock:
                raise RefusedError(
                    "The lock changed in the meantime. Nothing more was unlocked. Run the command again."
                )

        detail = {"seq": lock.seq, "error_code": lock.error_code}
        human_decisions.record_decision(workspace, "unlock", person, require_same_lock, role=lock.role, detail=detail)
    return Decision(tuple(lock.role for lock in proposal.locks))
