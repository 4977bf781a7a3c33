"""`kaiza plan list`: every plan, what it is worth now, and what was used of it."""

import argparse
from typing import Any

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.plan import review
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import INVALID, STATUSES, PlanUsage
from kaiza.render import plans
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("list", help="every plan, and what it is worth now", allow_abbrev=False)
    arguments.describe(
        parser,
        "Every plan: its status, whether it allows changes now, and what was used of its limits.",
        "kaiza plan list\nkaiza plan list --status APPROVED",
        run=_run_list,
    )
    parser.add_argument("--status", choices=(*STATUSES, INVALID), help="only plans of this status")
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    with open_workspace.open_workspace(args) as ground:
        told = plan_documents(ground)
    chosen = [one for one in told if args.status in (None, one["status"])]
    if args.json:
        output.print_json({"plans": chosen})
    elif chosen:
        output.print_lines(plans.render_list(chosen, output.terminal_width(), colour=output.has_colour()))
    else:
        output.print_error("There is no such plan. kaiza plan new PLAN-0001-what-for writes one to fill in.")
    return output.SUCCESS


def plan_documents(ground: Workspace) -> list[dict[str, Any]]:
    """All plans, as `plan list --json` tells them."""
    now = human_decisions.current_timestamp()
    return [_plan_document(ground, stored, now) for stored in ground.plans.read_all()]


def _plan_document(ground: Workspace, stored: StoredPlan, now: str) -> dict[str, Any]:
    plan = stored.parsed.plan
    return {
        "plan_id": stored.plan_id,
        "title": stored.parsed.title,
        "status": plan.status if plan else INVALID,
        "plan_hash": stored.parsed.plan_hash,
        **review.approval_state(ground, stored, now),
        "expires": plan.expires if plan else None,
        "limits": plan.limits.as_json() if plan else {},
        "used": review.usage_counts(ground.audit_state.usage.get(stored.plan_id) or PlanUsage()),
        "findings": len(stored.parsed.findings),
    }
