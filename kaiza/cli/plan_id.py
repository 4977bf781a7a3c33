"""The plan that a person names."""

import argparse

from kaiza.cli import say
from kaiza.domain.lint import StoredPlan
from kaiza.domain.plan import LONGEST_ID, is_plan_id
from kaiza.store.ground import Ground
from kaiza.store.plans import SUFFIX


def add(parser: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """The argument; the file's name will do."""
    parser.add_argument("plan_id", metavar="ID", nargs=nargs, type=read, help="the plan's id, as its file is named")


def read(text: str) -> str:
    """An id that plans have."""
    bare = text.removeprefix("plans/").removesuffix(SUFFIX)
    if not is_plan_id(bare):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name that plans have. Use capitals and digits, then parts after hyphens, "
            f"at most {LONGEST_ID}: PLAN-0007-rotate-tokens"
        )
    return bare


def found(ground: Ground, plan_id: str) -> StoredPlan:
    """The plan as it is now."""
    stored = ground.plans.read(plan_id)
    if stored is None:
        raise say.Stop(f"There is no plan {plan_id}. `kaiza plan list` shows them all.", say.NO)
    return stored
