"""What a series of changes came to, file by file: the first before and the last after."""

from collections.abc import Iterable, Mapping
from typing import Any


def net_changes(changes: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row a path that ended up other than it began, in order of path; a move is a delete and a create."""
    before: dict[str, str | None] = {}
    after: dict[str, str | None] = {}
    for change in changes:
        for path, was, became in _path_transitions(change):
            before.setdefault(path, was)
            after[path] = became
    return [_net_row(path, before[path], after[path]) for path in sorted(before) if before[path] != after[path]]


def _path_transitions(change: Mapping[str, Any]) -> list[tuple[str, str | None, str | None]]:
    if change["source"] is None:
        return [(change["path"], change["before_hash"], change["after_hash"])]
    return [(change["source"], change["before_hash"], None), (change["path"], None, change["after_hash"])]


def _net_row(path: str, before: str | None, after: str | None) -> dict[str, Any]:
    operation = "create" if before is None else "delete" if after is None else "modify"
    hashes = {"before_hash": before, "after_hash": after}
    return {"path": path, "operation": operation, **{name: value for name, value in hashes.items() if value}}
