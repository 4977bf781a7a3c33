"""Trust a branch: a plan that says APPROVED there, and is the same file here, is then approved in this workspace."""

from dataclasses import dataclass, replace

from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import require_sound_log
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.merged_plans import check_ref, find_default_branch
from kaiza.store.trust.trust_file import expand_ref, read_trust, save_trust
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The full name of the branch that would be trusted."""

    ref: str


@dataclass(frozen=True, slots=True)
class Decision:
    """Every branch that is trusted by such a decision now."""

    refs: list[str]


def propose(workspace: Workspace, name: str | None) -> Proposal:
    """The branch of this name, or the remote's default branch. Refused if it does not exist, or the log is damaged."""
    require_sound_log(workspace)
    ref = parse_ref(name) if name else find_default_branch(workspace.root)
    if ref is None:
        raise RefusedError(
            "The remote's default branch is not known here. Name one: kaiza trust merged --ref origin/main"
        )
    problem = check_ref(workspace.root, ref)
    if problem is not None:
        raise RefusedError(f"Nothing was changed: {problem}. Fetch the branch, or name another with --ref.")
    return Proposal(ref)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the trust, then write it: no branch is trusted without its record."""

    def require_still_sound() -> None:
        # Damage may have been found while the person was asked.
        require_sound_log(workspace)

    detail = {"merged": "on", "ref": proposal.ref}
    human_decisions.record_decision(workspace, "trust", person, require_still_sound, detail=detail)

    trust = read_trust(state_dir.path_of(workspace.root))
    refs = [*(ref for ref in trust.merged_refs if ref != proposal.ref), proposal.ref]
    save_trust(workspace.root, replace(trust, merged_refs=tuple(refs)))
    return Decision(refs)


def parse_ref(name: str) -> str:
    """The full name of a branch that a person named. Refused if it cannot be one."""
    try:
        return expand_ref(name)
    except ValueError as problem:
        raise RefusedError(f"{problem}. Write it like origin/main.") from problem
