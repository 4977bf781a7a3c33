"""The plan that a person names."""

import argparse

from kaiza.cli.console import output
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.workspace import Workspace


def add_argument(parser: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """The argument; the file's name will do."""
    parser.add_argument("plan_id", metavar="ID", nargs=nargs, type=parse_id, help="the plan's id, as its file is named")


def parse_id(text: str) -> str:
    """An id that plans have."""
    bare = text.removeprefix("plans/").removesuffix(SUFFIX)
    if not is_plan_id(bare):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a name that plans have. Use capitals and digits, then parts after hyphens, "
            f"at most {MAX_ID_LENGTH}: PLAN-0007-rotate-tokens"
        )
    return bare


def require_plan(ground: Workspace, plan_id: str) -> StoredPlan:
    """The plan as it is now."""
    stored = ground.plans.read(plan_id)
    if stored is None:
        raise output.CommandError(f"There is no plan {plan_id}. `kaiza plan list` shows them all.", output.FAILURE)
    return stored
