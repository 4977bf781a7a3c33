"""The plan id on the command line, and the plan it names."""

import argparse

from kaiza.cli.console import output
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.workspace import Workspace


def add_plan_id(parser: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Add the plan id; the path of its file is accepted too."""
    parser.add_argument(
        "plan_id", metavar="ID", nargs=nargs, type=parse_plan_id, help="the plan's id: its file's name without .md"
    )


def parse_plan_id(text: str) -> str:
    """A valid plan id, from an id or the path of the plan's file."""
    plan_id = text.removeprefix("plans/").removesuffix(SUFFIX)
    if not is_plan_id(plan_id):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid plan id. Write one like PLAN-0007-rotate-tokens: capitals and digits first, then "
            f"letters and digits after hyphens, at most {MAX_ID_LENGTH} characters"
        )
    return plan_id


def require_plan(workspace: Workspace, plan_id: str) -> StoredPlan:
    """The plan as its file is now; a CommandError if there is none."""
    stored = workspace.plans.read(plan_id)
    if stored is None:
        raise output.CommandError(f"There is no plan {plan_id}. `kaiza plan list` lists the plans.", output.FAILURE)
    return stored
