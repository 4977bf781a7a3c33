"""Put back exactly what named changes replaced, newest first, wherever the file still is what the change left."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kaiza.domain import errors, paths
from kaiza.domain.change import Change, Operation
from kaiza.domain.paths import RelPath
from kaiza.tools import proposal, target
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
    records = _without_undone(undone) if request.request_ids is None else undone
    changes, kept = worked_out(records, view)
    output: dict[str, Any] = {
        "changes": [proposal.told(change, dry_run=request.dry_run) for change in changes],
        "kept": kept,
        "dry_run": request.dry_run,
    }
    verb = "Would put back" if request.dry_run else "Put back"
    output["summary"] = f"{verb} {len(changes)} files, kept {len(kept)}."
    return Answer(output, tuple(changes), {"undone": [record["request_id"] for record in reversed(records)]})


def _without_undone(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A session's own changes: no undo, and nothing that an undo has put back."""
    undone = {
        request_id
        for record in records
        if record["tool_name"] == NAME
        for request_id in (record["detail"] or {}).get("undone", ())
    }
    return [record for record in records if record["tool_name"] != NAME and record["request_id"] not in undone]


@dataclass(frozen=True, slots=True)
class State:
    """What a path is, as far as a change tells: no hash means that nothing is there."""

    hash: str | None
    mode: int | None = None


def worked_out(records: Iterable[Mapping[str, Any]], view: View) -> tuple[list[Change], list[dict[str, str]]]:
    """One change a path that leads back over all of its changes; and the paths where that would lose something."""
    before: dict[str, State] = {}
    after: dict[str, State] = {}
    for path, was, became in _steps(records):
        before.setdefault(path, was)
        after[path] = became
    changes: list[Change] = []
    kept: list[dict[str, str]] = []
    for path in reversed(before):
        made = _lead_back(paths.parse(path), before[path], after[path], view)
        if isinstance(made, Change):
            changes.append(made)
        elif made is not None:
            kept.append({"path": path, "reason": made})
    return changes, kept


def _steps(records: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, State, State]]:
    """What every path was and became, in order; a move is two steps."""
    for record in records:
        modes = (record["detail"] or {}).get("modes", {})
        for change in record["changes"]:
            path, source = change["path"], change["source"]
            mode = modes.get(source or path)
            if source is not None:
                yield source, State(change["before_hash"], mode), State(None)
                yield path, State(None), State(change["after_hash"], change["mode"])
            else:
                yield path, State(change["before_hash"], mode), State(change["after_hash"], change["mode"])


def _lead_back(where: RelPath, before: State, after: State, view: View) -> Change | str | None:
    """The change that puts a path back, the reason why it is kept, or None where it is so already."""
    found = target.standing(where, view)
    now = State(found.hash, found.mode) if found else State(None)
    if now.hash == before.hash and (before.mode is None or now.mode == before.mode):
        return None
    if now.hash != after.hash or (after.mode is not None and now.mode != after.mode):
        return "changed_since"
    if before.hash is None:
        return Change(where, "delete", before_hash=now.hash)
    size = view.kept(before.hash)
    if size is None:
        return "not_kept"
    operation: Operation = "create" if now.hash is None else "modify"
    return Change(where, operation, now.hash, before.hash, size, mode=before.mode)
