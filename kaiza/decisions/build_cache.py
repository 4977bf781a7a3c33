"""Build a context cache: pack documents, so that agents can search them."""

from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.refusal import RefusedError
from kaiza.policy.content.secrets import find_secrets
from kaiza.queries.context_sources import BUILD_ACTION, SourceSet
from kaiza.queries.workspaces import Progress
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.context.cache_builder import CacheBuilder, has_cache
from kaiza.store.context.source_scan import CacheBuildError, LeftOut, SourceDocument
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """A cache of this name from these sources; `replaces` one of the same name."""

    name: str
    sources: SourceSet
    replaces: bool


@dataclass(frozen=True, slots=True)
class Decision:
    """The cache as it is recorded, and the documents that were left out of it."""

    built: dict[str, Any]
    left_out: list[LeftOut]


def propose(workspace: Workspace, name: str, sources: SourceSet, *, replaces: bool) -> Proposal:
    """Refused if there is a cache of this name that may not be replaced, or something else has its name."""
    try:
        exists = has_cache(workspace.blobs.kaiza_dir, name)
    except CacheBuildError as error:
        raise _refusal(error) from error
    if exists and not replaces:
        raise RefusedError(f"There is a cache {name} already. To replace it, add --force. Nothing was built.")
    return Proposal(name, sources, replaces)


def decide(workspace: Workspace, proposal: Proposal, person: str, *, progress: Progress) -> Decision:
    """Pack the documents, record the cache, then publish it. Refused if a document cannot be packed."""
    # Before the builder makes `.kaiza/`: a workspace that has `.kaiza/` without an id counts as from elsewhere.
    workspace.begin_recording()
    sources = proposal.sources
    try:
        with closing(CacheBuilder(workspace.blobs.kaiza_dir)) as builder:
            left_out = _pack_documents(sources.scan(workspace), builder, progress)
            cache_version = builder.seal(current_timestamp())
            built = {"cache": proposal.name, "cache_version": cache_version, "document_count": builder.count}
            detail = {**built, "sources": sources.labels(workspace.root), "glob": sources.glob}
            # Recorded first: no agent reads a cache that the log does not know.
            human_decisions.record_decision(workspace, BUILD_ACTION, person, detail=detail)
            # What has the name now is looked at again by this.
            builder.publish(proposal.name, replace=proposal.replaces)
    except CacheBuildError as error:
        raise _refusal(error) from error
    return Decision(built, left_out)


def _pack_documents(
    found: Iterable[SourceDocument | LeftOut], builder: CacheBuilder, progress: Progress
) -> list[LeftOut]:
    """Pack each document; the files that are left out. CacheBuildError for a document with a secret."""
    left_out = []
    for each in found:
        if isinstance(each, LeftOut):
            left_out.append(each)
            continue
        secret = next(find_secrets(each.content), None)
        if secret is not None:
            where = f"{each.path}:{secret.line + 1}:{secret.column + 1}"
            raise CacheBuildError(f"{where} looks like a secret ({secret.rule}). Remove it, or leave the file out.")
        builder.add(each)
        progress(builder.count, 0)
    return left_out


def _refusal(error: CacheBuildError) -> RefusedError:
    return RefusedError(f"{escape(str(error))} Nothing was built.")
