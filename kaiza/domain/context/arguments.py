"""Arguments of the context tools, checked in a fixed order: cache, query, budget, then unknown ones.

Takes any JSON value in place of the arguments: a context tool answers every call with one of its own error codes.
"""

import re
from collections.abc import Collection, Mapping

from kaiza.domain import errors
from kaiza.domain.caps import Caps

MAX_BUDGET = 100_000
"""Tokens of one answer."""
MAX_QUERY = Caps().query_characters
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def is_cache_name(name: str) -> bool:
    """Whether a cache may have this name. Such a name is always one component of a path, and not a hidden file."""
    return _NAME.fullmatch(name) is not None


def parse_cache(arguments: object) -> str:
    """The `cache` argument; CONTEXT_CACHE_MISSING unless it is the name of a cache that could exist."""
    name = _member(arguments, "cache")
    if not isinstance(name, str) or not is_cache_name(name):
        raise cache_missing()
    return name


def parse_query(arguments: object) -> str:
    """The `query` argument; CONTEXT_QUERY_INVALID unless it is a text of at most MAX_QUERY characters."""
    query = _member(arguments, "query")
    # A lone surrogate cannot be encoded, and no cache has it.
    if not isinstance(query, str) or len(query) > MAX_QUERY or query.encode(errors="replace").decode() != query:
        raise errors.SystemError.tool_failure(
            "CONTEXT_QUERY_INVALID",
            human_message=f"query must be a text of at most {MAX_QUERY} characters. Correct it and call again.",
        )
    return query


def parse_budget(arguments: object) -> int:
    """The `budget` argument; CONTEXT_BUDGET_INVALID unless it is an integer from 0 to MAX_BUDGET."""
    budget = _member(arguments, "budget")
    if not isinstance(budget, int) or isinstance(budget, bool) or not 0 <= budget <= MAX_BUDGET:
        raise errors.SystemError.tool_failure(
            "CONTEXT_BUDGET_INVALID",
            human_message=f"budget must be a whole number from 0 to {MAX_BUDGET}. Correct it and call again.",
        )
    return budget


def require_known(arguments: object, known: Collection[str]) -> None:
    """CONTEXT_QUERY_INVALID if the arguments are not an object or have other members than these and `session_id`."""
    is_known = isinstance(arguments, Mapping) and arguments.keys() <= {*known, "session_id"}
    if not is_known or not isinstance(_member(arguments, "session_id"), str | None):
        raise errors.SystemError.tool_failure(
            "CONTEXT_QUERY_INVALID",
            human_message=f"The tool takes an object with {', '.join(known) or 'no members'}. Call it again with that.",
        )


def cache_missing() -> errors.SystemError:
    """The error for a cache that does not exist or cannot be reached."""
    return errors.SystemError.tool_failure(
        "CONTEXT_CACHE_MISSING",
        human_message="There is no such context cache. context_list_caches lists them; a person builds new ones.",
    )


def _member(arguments: object, name: str) -> object:
    return arguments.get(name) if isinstance(arguments, Mapping) else None
