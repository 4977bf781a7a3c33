"""Which changes `kaiza undo` is about: those of a session, a plan or calls, or the last change."""

import argparse
from collections.abc import Iterable, Mapping
from typing import Any

from kaiza.cli.console import audit_reader
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import PLAN_ADVICE, parse_plan_prefix
from kaiza.domain.audit.inverse_changes import effective_changes, may_be_in_effect, took_effect
from kaiza.store.workspace import Workspace

Record = Mapping[str, Any]
_CALL_ADVICE = "`kaiza undo` lists what can be undone."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the ways to select changes; without one of them, what can be undone is listed."""
    target = parser.add_mutually_exclusive_group()
    target.add_argument("--last", action="store_true", help="the last change that is still in effect")
    target.add_argument("--session", metavar="ID", help="every change of this session; its first characters are enough")
    target.add_argument(
        "--request",
        metavar="ID",
        nargs="+",
        help="the changes of these calls, or of these undos; the first characters of each id are enough",
    )
    target.add_argument(
        "--plan",
        metavar="ID",
        type=parse_plan_prefix,
        help="every change made under this plan; its first characters are enough",
    )


def is_listing(args: argparse.Namespace) -> bool:
    """Whether nothing is selected."""
    return not args.last and args.session is None and args.request is None and args.plan is None


def select_records(args: argparse.Namespace, workspace: Workspace) -> list[Record]:
    """The records of the selected changes that are still in effect, in order."""
    if args.request is not None:
        return _records_of_calls(args.request, list(filter(may_be_in_effect, _read(workspace))))
    effective = find_effective(workspace)
    if args.last:
        return effective[-1:]
    if args.session is not None:
        known = (record.get("session_id") for record in _read(workspace))
        session_ids = {session_id for session_id in known if isinstance(session_id, str)}
        session_id = audit_reader.resolve_session(session_ids - {""}, args.session)
        return [record for record in effective if record["session_id"] == session_id]
    named = (record["plan_id"] for record in effective if record["plan_id"])
    candidates = [plan_id for plan_id in {*workspace.plans.plan_ids(), *named} if plan_id.startswith(args.plan)]
    plan_id = resolve_id(candidates, args.plan, "plan", PLAN_ADVICE) if candidates else args.plan
    return [record for record in effective if record["plan_id"] == plan_id]


def find_effective(workspace: Workspace) -> list[Record]:
    """The records of all changes that are still in effect, without undos, in order."""
    return effective_changes(list(filter(took_effect, _read(workspace))))


def _read(workspace: Workspace) -> Iterable[dict[str, Any]]:
    return audit_reader.read_forward(workspace.root)


def _records_of_calls(prefixes: Iterable[str], made: list[dict[str, Any]]) -> list[Record]:
    known = {record["request_id"] for record in made if record["request_id"]}
    selected = {resolve_id(known, prefix, "change", _CALL_ADVICE) for prefix in prefixes}
    return [record for record in made if record["request_id"] in selected]
