"""Remove a context cache. Its sources are left alone, so it can be built again."""

from dataclasses import dataclass

from kaiza.domain.refusal import RefusedError
from kaiza.store import human_decisions
from kaiza.store.context import cache_builder
from kaiza.store.context.source_scan import CacheBuildError
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The cache that would be removed."""

    name: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The cache that is gone."""

    name: str


def propose(workspace: Workspace, name: str) -> Proposal:
    """Refused if there is no such cache, or its directory holds something else."""
    try:
        if not cache_builder.has_cache(workspace.blobs.kaiza_dir, name):
            raise RefusedError(f"There is no context cache {name}. `kaiza context list` lists them.")
    except CacheBuildError as error:
        raise RefusedError(str(error)) from error
    return Proposal(name)


def decide(workspace: Workspace, proposal: Proposal, person: str) -> Decision:
    """Record the removal, then remove the cache. Refused if something else came into its directory meanwhile."""
    human_decisions.record_decision(workspace, "context_remove", person, detail={"cache": proposal.name})
    try:
        cache_builder.remove_cache(workspace.blobs.kaiza_dir, proposal.name)
    except CacheBuildError as error:
        raise RefusedError(str(error)) from error
    return Decision(proposal.name)
