"""Selecting the recorded changes to undo: those of a session, of single calls, or under a plan."""

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from kaiza.cli.console import audit_reader, output
from kaiza.cli.console.plan_argument import parse_plan_id
from kaiza.domain.audit.inverse_changes import effective_changes, took_effect
from kaiza.store.workspace import Workspace

Record = Mapping[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the three ways to select changes; exactly one is required."""
    target = parser.add_mutually_exclusive_group(required=True)
    target.add_argument("--session", metavar="ID", help="every change of this session; its first characters are enough")
    target.add_argument("--request", metavar="ID", nargs="+", help="the changes of these calls, or of these undos")
    target.add_argument("--plan", metavar="ID", type=parse_plan_id, help="every change made under this plan")


def select_records(args: argparse.Namespace, workspace: Workspace) -> list[Record]:
    """The records of the selected changes that are still in effect, in order."""
    changed: list[Record] = list(filter(took_effect, audit_reader.read_forward(workspace.root)))
    if args.request is not None:
        return _records_of_calls(set(args.request), changed)
    if args.session is not None:
        session_ids = {record.get("session_id") or "" for record in audit_reader.read_forward(workspace.root)}
        session_id = audit_reader.resolve_session(session_ids - {""}, args.session)
        return _effective_records(changed, lambda record: record["session_id"] == session_id)
    return _effective_records(changed, lambda record: record["plan_id"] == args.plan)


def _records_of_calls(request_ids: set[str], changed: list[Record]) -> list[Record]:
    selected = [record for record in changed if record["request_id"] in request_ids]
    missing = request_ids - {record["request_id"] for record in selected}
    if missing:
        raise output.CommandError(
            f"No recorded change has the id {', '.join(sorted(missing))}. `kaiza audit show` lists the records.",
            output.FAILURE,
        )
    return selected


def _effective_records(changed: list[Record], is_selected: Callable[[Record], bool]) -> list[Record]:
    """The selected changes, without undos and without what was undone."""
    return [record for record in effective_changes(changed) if is_selected(record)]
