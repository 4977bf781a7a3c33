"""`kaiza plan approve`: a person sees what a plan touches, and approves just the bytes whose hash they were shown."""

import argparse
from dataclasses import dataclass
from typing import Any

from kaiza.cli import options, person, plan_id, plan_sight, say, standing
from kaiza.cli.word import ask_word
from kaiza.domain import lint
from kaiza.domain.lint import StoredPlan
from kaiza.domain.plan import APPROVED, NEXT
from kaiza.domain.plan_words import change_words
from kaiza.render import plans
from kaiza.store import approved_bytes, persons_word
from kaiza.store.ground import Ground

CHANGED = "The plan's file changed meanwhile. Nothing was approved; run the command again and look once more."


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("approve", help="see what a plan touches, and approve it", allow_abbrev=False)
    options.describe(
        parser,
        "Shows what the plan allows, which files that touches now, and where it was approved before, what changed;\n"
        "then asks for the plan's id, typed at the terminal. Changes the one word and fills in who and when; the\n"
        "hash that the file will have is shown and recorded, and no other bytes count.\n"
        "Exit status: 0 approved, 1 not approved, 3 no terminal to ask at.",
        "kaiza plan approve PLAN-0007-rotate-tokens --as Ann",
        run=_approve,
    )
    plan_id.add(parser)
    options.name(parser)
    options.workspace(parser)
    options.as_json(parser)


@dataclass(frozen=True, slots=True)
class Word:
    """What a person is asked to agree to: a plan as it is, and the bytes it will have."""

    stored: StoredPlan
    content: bytes
    plan_hash: str
    person: str


def _approve(args: argparse.Namespace) -> int:
    with standing.ground(args) as ground:
        standing.insist_on_a_sound_record(ground)
        word = _proposed(plan_id.found(ground, args.plan_id), person.name(args.name))
        told = plan_sight.document(ground, word.stored, persons_word.now())
        told["difference"] = plan_sight.difference(ground, args.plan_id, word.content)
        if not ask_word(_stake(told, word), args.plan_id):
            raise say.Stop("Nothing was approved, and nothing has changed.", say.NO)
        _carry_out(ground, word, told["touches"]["files"])
    if args.json:
        say.document({"plan_id": args.plan_id, "plan_hash": word.plan_hash, "approved_by": word.person})
    else:
        say.lines([f"Approved. {word.plan_hash}  plans/{args.plan_id}.md"])
    return say.YES


def _proposed(stored: StoredPlan, name: str) -> Word:
    """The bytes that the file will have."""
    plan = stored.reading.plan
    if plan is None:
        raise say.Stop(f"The plan has errors and counts for nothing. See kaiza plan lint {stored.plan_id}.", say.NO)
    if plan.status != APPROVED and APPROVED not in NEXT.get(plan.status, ()):
        raise say.Stop(f"The plan is {plan.status}, and that is an end. Put its text into a new plan.", say.NO)
    if plan.expired(persons_word.now()):
        raise say.Stop(f"The plan expired on {plan.expires}. Give it a later date, or write a new plan.", say.NO)
    words = {"status": APPROVED, "approved_by": name, "approved_at": persons_word.now()}
    try:
        content = change_words(stored.content, words)
    except ValueError as fault:
        raise say.Stop(f"The plan cannot say so: {fault}. Nothing has changed.", say.NO) from fault
    return Word(stored, content, lint.read(content, stored.plan_id).plan_hash, name)


def _stake(told: dict[str, Any], word: Word) -> str:
    """What the person is shown before they give their word."""
    agreed = f"With your word it is approved by {plans.seen(word.person)}, and its hash will be\n{word.plan_hash}"
    return "\n".join([*plans.shown(told, None), "", agreed])


def _carry_out(ground: Ground, word: Word, files: int) -> None:
    """The word is recorded before it is written; what nobody saw is neither."""
    plan_id, seen = word.stored.plan_id, word.stored.reading.plan_hash
    detail = {"approved_by": word.person, "files": files}
    approved_bytes.keep_bytes(ground, word.plan_hash, word.content)

    def unchanged() -> None:
        stored = ground.plans.read(plan_id)
        if stored is None or stored.reading.plan_hash != seen:
            raise say.Stop(CHANGED, say.NO)

    members = {"plan_id": plan_id, "plan_hash": word.plan_hash, "detail": {**detail, "seen_hash": seen}}
    persons_word.give(ground, "approve", word.person, unchanged, **members)
    persons_word.seal(ground, plan_id, word.plan_hash, detail)
    if not ground.plans.replace(plan_id, seen, word.content):
        raise say.Stop(CHANGED, say.NO)
