"""Ids by their first characters: the one id that begins so, or an error that lists those that do."""

from collections.abc import Iterable

from kaiza.domain.refusal import RefusedError
from kaiza.render.terminal import escape

_MAX_LISTED = 10


def resolve_id(ids: Iterable[str], prefix: str, noun: str, advice: str) -> str:
    """The id itself, or the one id that begins with the prefix; refused if there is none or several."""
    matching = sorted({each for each in ids if prefix and each.startswith(prefix)})
    if prefix in matching:
        return prefix
    if len(matching) == 1:
        return matching[0]
    shown = escape(repr(prefix))
    if not matching:
        raise RefusedError(f"No {noun} begins with {shown}. {advice}")
    more = [f"  and {len(matching) - _MAX_LISTED} more"] if len(matching) > _MAX_LISTED else []
    candidates = [f"  {escape(each)}" for each in matching[:_MAX_LISTED]]
    problem = f"Several {noun}s begin with {shown}. Type more of the one you mean:"
    raise RefusedError("\n".join([problem, *candidates, *more]))
