"""Put back exactly what named changes replaced, newest first, wherever the file still is what the change left."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors
from kaiza.domain.way_back import standing_changes
from kaiza.tools import proposal
from kaiza.tools.leading_back import worked_out
from kaiza.tools.view import Answer, View

NAME = "undo_changes"


@dataclass(frozen=True, slots=True)
class Request:
    """Which calls' changes; None means all of the session's."""

    request_ids: tuple[str, ...] | None
    dry_run: bool = False


def parse(arguments: Mapping[str, Any], _root: str | None) -> Request:
    """Take the arguments; exactly one of the two ways to say which changes."""
    named = arguments.get("request_ids")
    if (named is None) == (arguments.get("all_of_session") is None):
        raise errors.SystemError.tool_failure(
            "MISSING_REQUIRED_FIELD" if named is None else "INVALID_INPUT_VALUE",
            human_message="Name the changes by request_ids, or pass all_of_session: true; one of the two.",
            cause={"faults": [{"argument": "request_ids", "code": "MISSING_REQUIRED_FIELD"}], "count": 1},
        )
    return Request(None if named is None else tuple(dict.fromkeys(named)), arguments.get("dry_run", False))


def run(request: Request, view: View) -> Answer:
    """Propose what puts things back, and list what has to be kept as it is."""
    undone = list(view.changed()) if request.request_ids is None else list(view.changed_by(request.request_ids))
    missing = set(request.request_ids or ()) - {one["request_id"] for one in undone}
    if missing:
        raise errors.SystemError.tool_failure(
            "INVALID_INPUT_VALUE",
            human_message="Some of these calls changed nothing here. Name calls that changed files.",
            cause={"request_ids": sorted(missing)[:20]},
        )
    records = standing_changes(undone) if request.request_ids is None else undone
    changes, kept = worked_out(records, view)
    output: dict[str, Any] = {
        "changes": [proposal.told(change, dry_run=request.dry_run) for change in changes],
        "kept": kept,
        "dry_run": request.dry_run,
    }
    verb = "Would put back" if request.dry_run else "Put back"
    output["summary"] = f"{verb} {len(changes)} files, kept {len(kept)}."
    return Answer(output, tuple(changes), {"undone": [record["request_id"] for record in reversed(records)]})
