"""Tool `context_inspect_cache`: the version and size of a context cache, and whether it is sound."""

from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.context import arguments as context_arguments
from kaiza.tools.view import Answer, CacheHandle, CachesView

_INVALID = {"cache_version": "", "document_count": 0, "total_bytes": 0, "valid": False}


@dataclass(frozen=True, slots=True)
class Request:
    """The cache to inspect."""

    cache: str


def parse(arguments: object, _root: str | None) -> Request:
    """Parse the cache's name."""
    cache = context_arguments.parse_cache(arguments)
    context_arguments.require_known(arguments, ("cache",))
    return Request(cache)


def run(request: Request, view: CachesView) -> Answer:
    """Verify the whole cache. One that is not sound is an answer, not an error."""
    with view.open_cache(request.cache) as cache:
        try:
            return Answer(_inspect_cache(cache, view))
        except errors.SystemError as error:
            if error.error_code != "CONTEXT_CACHE_INVALID":
                raise
            return Answer(_INVALID)


def _inspect_cache(cache: CacheHandle, view: CachesView) -> dict[str, Any]:
    manifest = cache.read_manifest()
    for _ in cache.read_documents(manifest):
        if view.is_out_of_time():
            raise errors.SystemError.tool_failure("CAP_EXCEEDED", cause={"cap": "timeout"})
    return {
        "cache_version": manifest.cache_version,
        "document_count": len(manifest.entries),
        "total_bytes": cache.count_bytes(),
        "valid": True,
    }
