"""Text of a result for clients that hand only the text to a model: its summary, and what the next calls need."""

from collections.abc import Mapping
from typing import Any, Final

import orjson

_KEPT: Final = frozenset({"session_id", "request_id", "nextCursor", "next"})
_NAMES: Final = ("plan_id", "path", "source", "seq")
"""What a hash belongs to; kept beside it only."""


def build_summary_text(output: Mapping[str, Any]) -> str:
    """The summary, and below it the ids, hashes and cursors of the output as JSON, if it has any."""
    kept = _prune(output)
    summary = str(output.get("summary", ""))
    return f"{summary}\n{orjson.dumps(kept).decode()}" if kept else summary


def _prune(value: object) -> Any:
    """The part of a value that has to be passed on; None if there is none."""
    if isinstance(value, list):
        return [pruned for item in value if (pruned := _prune(item))]
    if not isinstance(value, Mapping):
        return None
    kept = {
        name: member if _is_kept(name) else pruned
        for name, member in value.items()
        if (pruned := _prune(member)) or _is_kept(name)
    }
    names = {name: value[name] for name in _NAMES if name in value} if kept else {}
    return names | kept


def _is_kept(name: str) -> bool:
    return name in _KEPT or name.endswith("hash")
