"""Which changes `kaiza undo` is about: those of a session, a plan or calls, or the last change."""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from kaiza.cli.console import audit_reader
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.cli.console.open_workspace import PLAN_ADVICE, parse_plan_prefix
from kaiza.domain.audit.inverse_changes import may_be_in_effect, took_effect
from kaiza.domain.audit.undone_changes import iter_effective
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


def select_records(args: argparse.Namespace, workspace: Workspace) -> Callable[[Record], bool]:
    """Tells whether a record is of the selected changes. An agent's undos are changes, too."""
    if args.request is not None:
        member, wanted = "request_id", _resolve_calls(args.request, workspace)
    elif args.last:
        member, wanted = "seq", {record["seq"] for record in islice(iter_all_effective(workspace), 1)}
    elif args.session is not None:
        known = (record.get("session_id") for record in audit_reader.read_forward(workspace.root))
        session_ids = {session_id for session_id in known if isinstance(session_id, str)}
        member, wanted = "session_id", {audit_reader.resolve_session(session_ids - {""}, args.session)}
    else:
        member, wanted = "plan_id", {_resolve_plan(args.plan, workspace)}
    return lambda record: record[member] in wanted


def read_changes(workspace: Workspace) -> Iterator[Record]:
    """The records of all changes that may be in effect, undos included, newest first, one at a time."""
    return filter(may_be_in_effect, audit_reader.read_backward(workspace.root))


def iter_all_effective(workspace: Workspace) -> Iterator[Record]:
    """The records of all changes that are still in effect, without undos, newest first."""
    return iter_effective(filter(took_effect, audit_reader.read_backward(workspace.root)))


def _resolve_plan(prefix: str, workspace: Workspace) -> str:
    """The plan that begins so, of those with a file or a change; the text itself if there is none."""
    named = (record["plan_id"] for record in iter_all_effective(workspace) if record["plan_id"])
    candidates = [plan_id for plan_id in {*workspace.plans.plan_ids(), *named} if plan_id.startswith(prefix)]
    return resolve_id(candidates, prefix, "plan", PLAN_ADVICE) if candidates else prefix


def _resolve_calls(prefixes: Iterable[str], workspace: Workspace) -> set[str]:
    known = {record["request_id"] for record in read_changes(workspace) if record["request_id"]}
    return {resolve_id(known, prefix, "change", _CALL_ADVICE) for prefix in prefixes}
