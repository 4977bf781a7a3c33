"""`kaiza plan reject` and `revoke`: a person says no, before or after; from the next call on nothing is allowed."""

import argparse
from functools import partial

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.domain.plans import parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import REJECTED, REVOKED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

_NEW_STATUS = {"reject": REJECTED, "revoke": REVOKED}
_DESCRIPTIONS = {
    "reject": "Change a draft's status to REJECTED.",
    "revoke": "Change an approved plan's status to REVOKED. What was done under it stays; kaiza undo puts it back.",
}


def add(commands: arguments.Subparsers) -> None:
    """The two commands."""
    helps = {"reject": "say no to a draft", "revoke": "take an approval back"}
    for verb, text in _DESCRIPTIONS.items():
        parser = commands.add_parser(verb, help=helps[verb], allow_abbrev=False)
        arguments.describe(
            parser,
            f"{text}\nRecorded, and in force from the next call on; nobody is asked.\n"
            "Exit status: 0 done, 1 the plan's status does not allow it, or the file changed meanwhile.",
            f"kaiza plan {verb} PLAN-0007-rotate-tokens",
            run=partial(_run_withdraw, verb),
        )
        arguments.add_argument(parser)
        parser.add_argument("--reason", default="", help="why, for the record")
        arguments.add_operator(parser)
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_withdraw(verb: str, args: argparse.Namespace) -> int:
    status, name = _NEW_STATUS[verb], arguments.resolve_name(args.name)
    with open_workspace.open_workspace(args) as ground:
        stored = arguments.require_plan(ground, args.plan_id)
        content = _with_status(stored, status)
        plan_hash = parser.parse(content, args.plan_id).plan_hash
        detail = {"reason": args.reason, "seen_hash": stored.parsed.plan_hash}
        human_decisions.record_decision(ground, verb, name, plan_id=args.plan_id, plan_hash=plan_hash, detail=detail)
        _replace_plan(ground, stored, content)
    if args.json:
        output.print_json({"plan_id": args.plan_id, "status": status, "plan_hash": plan_hash})
    else:
        output.print_lines([f"{args.plan_id} is {status}."])
    return output.SUCCESS


def _with_status(stored: StoredPlan, status: str) -> bytes:
    plan = stored.parsed.plan
    if plan is None:
        raise output.CommandError(
            "The plan has errors and counts for nothing already. Nothing has changed.", output.FAILURE
        )
    if status not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise output.CommandError(
            f"The plan is {plan.status}, and does not become {status}. Nothing has changed.", output.FAILURE
        )
    return edit_fields(stored.content, {"status": status})


def _replace_plan(ground: Workspace, stored: StoredPlan, content: bytes) -> None:
    if not ground.plans.replace(stored.plan_id, stored.parsed.plan_hash, content):
        raise output.CommandError(
            "The plan's file changed meanwhile. It allows nothing now, because your word is recorded; "
            "its status is as somebody else wrote it. Run the command again.",
            output.FAILURE,
        )
