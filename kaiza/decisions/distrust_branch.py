"""End the trust in a branch, or in all of them: plans are not approved any longer because they are merged there."""

from dataclasses import dataclass, replace

from kaiza.decisions.trust_branch import parse_ref
from kaiza.domain.refusal import RefusedError
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.trust_file import read_trust, save_trust
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The full names of the branches that would not be trusted any longer."""

    refs: list[str]


@dataclass(frozen=True, slots=True)
class Decision:
    """The branches that are still trusted."""

    refs: list[str]


def propose(workspace: Workspace, name: str | None) -> Proposal:
    """The branch of this name, or every branch. Refused if no such decision trusts it; a damaged log is no reason."""
    ref = parse_ref(name) if name else None
    refs = [each for each in read_trust(state_dir.path_of(workspace.root)).merged_refs if ref in (None, each)]
    if not refs:
        raise RefusedError(
            "No such branch is trusted by this command. `kaiza trust` shows what is, and where it is set."
        )
    return Proposal(refs)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the end of the trust, then write it. Nothing has to be looked at again: this only restricts."""
    detail = {"merged": "off", "ref": ", ".join(proposal.refs)}
    human_decisions.record_decision(workspace, "trust", person, detail=detail)

    trust = read_trust(state_dir.path_of(workspace.root))
    refs = [ref for ref in trust.merged_refs if ref not in proposal.refs]
    save_trust(workspace.root, replace(trust, merged_refs=tuple(refs)))
    return Decision(refs)
