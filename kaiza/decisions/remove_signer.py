"""Remove a signer: plans are not approved any longer because one of its keys signed them."""

from dataclasses import dataclass

from kaiza.decisions.add_signers import require_own_list
from kaiza.domain.refusal import RefusedError
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.signers import read_signers, save_signers
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The signer whose keys would be removed."""

    principal: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The signer whose keys are not trusted any longer."""

    principal: str


def propose(workspace: Workspace, principal: str) -> Proposal:
    """Refused if there is no such signer, or the machine lists the signers; a damaged log is no reason."""
    require_own_list()
    signers = read_signers(state_dir.path_of(workspace.root)).signers
    if all(signer.principal != principal for signer in signers):
        raise RefusedError("There is no such signer here. `kaiza trust signer list` lists them.")
    return Proposal(principal)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the removal, then write it. Nothing has to be looked at again: this only restricts."""
    detail = {"change": "remove", "principal": proposal.principal}
    human_decisions.record_decision(workspace, "signer", person, detail=detail)

    signers = read_signers(state_dir.path_of(workspace.root)).signers
    save_signers(workspace.root, [signer for signer in signers if signer.principal != proposal.principal])
    return Decision(proposal.principal)
