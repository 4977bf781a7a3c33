"""`kaiza plan reject` and `kaiza plan revoke`: withdraw a draft, or a plan that was approved."""

import argparse
from functools import partial

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import add_plan_id, open_workspace, require_plan
from kaiza.domain.plans import parser
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import REJECTED, REVOKED, STATUS_TRANSITIONS
from kaiza.domain.plans.status_edit import edit_fields
from kaiza.queries.workspaces import find_person_name
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

_NEW_STATUS = {"reject": REJECTED, "revoke": REVOKED}
_HELP = {"reject": "reject a draft", "revoke": "revoke an approval"}
_DESCRIPTIONS = {
    "reject": "Change a draft's status to REJECTED.",
    "revoke": "Change an approved plan's status to REVOKED. Its changes stay; `kaiza undo` restores the files.",
}


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    for verb, text in _DESCRIPTIONS.items():
        parser = commands.add_parser(verb, help=_HELP[verb])
        arguments.describe(
            parser,
            f"{text} Recorded, and in force from the next call on. No confirmation is needed.\n"
            "Exit status: 0 done, 1 the plan's status does not allow it or the file changed in the meantime.",
            f"kaiza plan {verb} PLAN-0007-rotate-tokens",
            run=partial(_run_withdraw, verb),
        )
        add_plan_id(parser)
        parser.add_argument("--reason", default="", help="the reason, for the log")
        arguments.add_operator(parser)
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _run_withdraw(verb: str, args: argparse.Namespace) -> int:
    status, name = _NEW_STATUS[verb], find_person_name(args.name)
    with open_workspace(args) as workspace:
        stored = require_plan(workspace, args.plan_id)
        content = _with_status(stored, status)
        plan_id, plan_hash = stored.plan_id, parser.parse(content, stored.plan_id).plan_hash
        detail = {"reason": args.reason, "seen_hash": stored.parsed.plan_hash}
        # Recorded first: the record alone withdraws the plan, even if its file cannot be written.
        human_decisions.record_decision(workspace, verb, name, plan_id=plan_id, plan_hash=plan_hash, detail=detail)
        _replace_plan(workspace, stored, content)
    if args.json:
        output.print_json({"plan_id": plan_id, "status": status, "plan_hash": plan_hash})
    else:
        output.print_lines([f"{plan_id} is {status}."])
    return output.SUCCESS


def _with_status(stored: StoredPlan, status: str) -> bytes:
    plan = stored.parsed.plan
    if plan is None:
        raise output.CommandError(
            "The plan has errors, so it allows nothing. Nothing was changed. "
            f"`kaiza plan lint {stored.plan_id}` lists the errors.",
            output.FAILURE,
        )
    if status not in STATUS_TRANSITIONS.get(plan.status, ()):
        raise output.CommandError(
            f"The plan is {plan.status} and cannot become {status}. Nothing was changed.", output.FAILURE
        )
    return edit_fields(stored.content, {"status": status})


def _replace_plan(workspace: Workspace, stored: StoredPlan, content: bytes) -> None:
    if not workspace.plans.replace(stored.plan_id, stored.parsed.plan_hash, content):
        raise output.CommandError(
            "The plan's file changed in the meantime. The plan allows nothing now, because your decision is "
            "recorded, but its file was not updated. Run the command again.",
            output.FAILURE,
        )
