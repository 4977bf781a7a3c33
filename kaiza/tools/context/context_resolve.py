"""Tool `context_resolve`: the documents of a context cache that match a query best and fit into a budget."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from kaiza.domain import errors
from kaiza.domain.caps import KIB
from kaiza.domain.context import arguments as context_arguments
from kaiza.domain.context.cache_format import Manifest
from kaiza.domain.context.selection import ScoredDocument, Selection, score_document, select_documents, split_words
from kaiza.domain.paging import response_size
from kaiza.tools.view import Answer, CacheHandle, CachesView

MAX_RECORDED_BYTES = 128 * KIB
"""Bytes of the selected ids, which the call's record holds."""


@dataclass(frozen=True, slots=True)
class Request:
    """The cache to search, the query, and the tokens that the answer may have."""

    cache: str
    query: str
    budget: int


def parse(arguments: object, _root: str | None) -> Request:
    """Parse the arguments, in the order in which faults are reported."""
    cache = context_arguments.parse_cache(arguments)
    query = context_arguments.parse_query(arguments)
    budget = context_arguments.parse_budget(arguments)
    context_arguments.require_known(arguments, ("cache", "query", "budget"))
    return Request(cache, query, budget)


def run(request: Request, view: CachesView) -> Answer:
    """Verify the whole cache, score every document, and return the content of those selected."""
    with view.open_cache(request.cache) as cache:
        manifest = cache.read_manifest()
        scored = _score_documents(cache, manifest, request.query, view)
        selection = select_documents(request.query, request.budget, scored)
        # Read again: keeping the contents of all documents could need far more memory.
        output = selection.as_json([cache.read_document(one.entry) for one in selection.documents])
    selected = [one.entry.document_id for one in selection.documents]
    _require_fitting(output, selected, view.caps.response_bytes)
    return Answer(output, detail=_describe_selection(request, manifest, selection, selected))


def _score_documents(cache: CacheHandle, manifest: Manifest, query: str, view: CachesView) -> Iterator[ScoredDocument]:
    terms = frozenset(split_words(query))
    for entry, content in cache.read_documents(manifest):
        if view.is_out_of_time():
            raise errors.SystemError.tool_failure("CAP_EXCEEDED", cause={"cap": "timeout"})
        yield score_document(entry, content, terms)


def _require_fitting(output: dict[str, Any], selected: list[str], most: int) -> None:
    """CONTEXT_BUDGET_INVALID if the answer does not fit into a response, or its ids into a record."""
    size = response_size.response_bytes(output) + response_size.RESERVED_BYTES
    if size > most or len(orjson.dumps(selected)) > MAX_RECORDED_BYTES:
        raise errors.SystemError.tool_failure(
            "CONTEXT_BUDGET_INVALID",
            human_message="The documents within this budget do not fit into one response. Call with a smaller budget.",
            cause={"cap": "response_bytes", "limit": most, "size": size},
        )


def _describe_selection(
    request: Request, manifest: Manifest, selection: Selection, selected: list[str]
) -> dict[str, Any]:
    return {
        "cache": request.cache,
        "cache_version": manifest.cache_version,
        "query_sha256": hashlib.sha256(selection.query.encode()).hexdigest(),
        "budget": selection.budget,
        "selected": selected,
    }
