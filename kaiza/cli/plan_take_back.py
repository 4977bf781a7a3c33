"""`kaiza plan reject` and `revoke`: a person says no, before or after; from the next call on nothing is allowed."""

import argparse
from functools import partial

from kaiza.cli import options, person, plan_id, say, standing
from kaiza.domain import lint
from kaiza.domain.lint import StoredPlan
from kaiza.domain.plan import NEXT, REJECTED, REVOKED
from kaiza.domain.plan_words import change_words
from kaiza.store import persons_word
from kaiza.store.ground import Ground

_STATUS = {"reject": REJECTED, "revoke": REVOKED}
_WHAT = {
    "reject": "Change a draft's status to REJECTED.",
    "revoke": "Change an approved plan's status to REVOKED. What was done under it stays; kaiza undo puts it back.",
}


def add(commands: options.Subparsers) -> None:
    """The two commands."""
    helps = {"reject": "say no to a draft", "revoke": "take an approval back"}
    for verb, text in _WHAT.items():
        parser = commands.add_parser(verb, help=helps[verb], allow_abbrev=False)
        options.describe(
            parser,
            f"{text}\nRecorded, and in force from the next call on; nobody is asked.\n"
            "Exit status: 0 done, 1 the plan's status does not allow it, or the file changed meanwhile.",
            f"kaiza plan {verb} PLAN-0007-rotate-tokens",
            run=partial(_take_back, verb),
        )
        plan_id.add(parser)
        parser.add_argument("--reason", default="", help="why, for the record")
        options.name(parser)
        options.workspace(parser)
        options.as_json(parser)


def _take_back(verb: str, args: argparse.Namespace) -> int:
    status, name = _STATUS[verb], person.name(args.name)
    with standing.ground(args) as ground:
        stored = plan_id.found(ground, args.plan_id)
        content = _changed(stored, status)
        plan_hash = lint.read(content, args.plan_id).plan_hash
        detail = {"reason": args.reason, "seen_hash": stored.reading.plan_hash}
        persons_word.give(ground, verb, name, plan_id=args.plan_id, plan_hash=plan_hash, detail=detail)
        _write(ground, stored, content)
    if args.json:
        say.document({"plan_id": args.plan_id, "status": status, "plan_hash": plan_hash})
    else:
        say.lines([f"{args.plan_id} is {status}."])
    return say.YES


def _changed(stored: StoredPlan, status: str) -> bytes:
    plan = stored.reading.plan
    if plan is None:
        raise say.Stop("The plan has errors and counts for nothing already. Nothing has changed.", say.NO)
    if status not in NEXT.get(plan.status, ()):
        raise say.Stop(f"The plan is {plan.status}, and does not become {status}. Nothing has changed.", say.NO)
    return change_words(stored.content, {"status": status})


def _write(ground: Ground, stored: StoredPlan, content: bytes) -> None:
    if not ground.plans.replace(stored.plan_id, stored.reading.plan_hash, content):
        raise say.Stop(
            "The plan's file changed meanwhile. It allows nothing now, because your word is recorded; "
            "its status is as somebody else wrote it. Run the command again.",
            say.NO,
        )
