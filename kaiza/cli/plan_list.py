"""`kaiza plan list`: every plan, what it is worth now, and what was used of it."""

import argparse
from typing import Any

from kaiza.cli import options, plan_sight, say, standing
from kaiza.domain.lint import StoredPlan
from kaiza.domain.plan import BROKEN, STATUSES
from kaiza.domain.plan_usage import Usage
from kaiza.render import plans
from kaiza.store import persons_word
from kaiza.store.ground import Ground


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("list", help="every plan, and what it is worth now", allow_abbrev=False)
    options.describe(
        parser,
        "Every plan: its status, whether it allows changes now, and what was used of its limits.",
        "kaiza plan list\nkaiza plan list --status APPROVED",
        run=_list,
    )
    parser.add_argument("--status", choices=(*STATUSES, BROKEN), help="only plans of this status")
    options.workspace(parser)
    options.as_json(parser)


def _list(args: argparse.Namespace) -> int:
    with standing.ground(args) as ground:
        told = every(ground)
    chosen = [one for one in told if args.status in (None, one["status"])]
    if args.json:
        say.document({"plans": chosen})
    elif chosen:
        say.lines(plans.listed(chosen, say.width(), colour=say.colour()))
    else:
        say.note("There is no such plan. kaiza plan new PLAN-0001-what-for writes one to fill in.")
    return say.YES


def every(ground: Ground) -> list[dict[str, Any]]:
    """All plans, as `plan list --json` tells them."""
    now = persons_word.now()
    return [_told(ground, stored, now) for stored in ground.plans.all()]


def _told(ground: Ground, stored: StoredPlan, now: str) -> dict[str, Any]:
    plan = stored.reading.plan
    return {
        "plan_id": stored.plan_id,
        "title": stored.reading.title,
        "status": plan.status if plan else BROKEN,
        "plan_hash": stored.reading.plan_hash,
        **plan_sight.standing(ground, stored, now),
        "expires": plan.expires if plan else None,
        "limits": plan.limits.as_json() if plan else {},
        "used": plan_sight.used(ground.facts.usage.get(stored.plan_id) or Usage()),
        "findings": len(stored.reading.findings),
    }
