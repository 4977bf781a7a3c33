"""Opening the workspace that a command is about, with progress; names of plans on the command line."""

import argparse
import re
from collections.abc import Iterator
from contextlib import contextmanager

from kaiza.cli.console import output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.domain.refusal import RefusedError
from kaiza.queries import workspaces
from kaiza.queries.workspaces import Workspace
from kaiza.render.terminal import escape

PLAN_SUFFIX = ".md"
PLAN_ADVICE = "`kaiza plan list` lists the plans."
_PLAN_PREFIX = re.compile(f"[A-Z][A-Za-z0-9-]{{0,{MAX_ID_LENGTH - 1}}}")


def resolve_root(args: argparse.Namespace) -> str:
    """The real path of the workspace: `--workspace`, else the nearest directory upwards that is one.

    A CommandError if that one does not belong to this machine and one above it does: an agent may have made it.
    """
    inner, *outer = resolve_all_roots(args)
    if outer:
        raise output.CommandError(
            f"Which workspace? {escape(inner)} does not belong to this machine, and it is inside {escape(outer[0])}, "
            "which does. Name one with --workspace DIR.",
            output.USAGE_ERROR,
        )
    return inner


def resolve_all_roots(args: argparse.Namespace) -> list[str]:
    """The workspace; if it is nested in another and `resolve_root` would ask which, both."""
    if args.workspace is not None:
        return [workspaces.find_root(args.workspace)]
    root = workspaces.find_nearest_root()
    outer = workspaces.find_bound_above(root)
    return [root] if outer is None else [root, outer]


@contextmanager
def open_workspace(args: argparse.Namespace, *, uses_settings: bool = True) -> Iterator[Workspace]:
    """The workspace, with every record that any process has appended."""
    with open_root(resolve_root(args), uses_settings=uses_settings) as workspace:
        yield workspace


@contextmanager
def open_root(root: str, *, uses_settings: bool = True, needs_state: bool = True) -> Iterator[Workspace]:
    """The workspace at a root; without `needs_state` a long log is not waited for."""
    with output.Progress("reading the log") as progress:
        opened = workspaces.open_root(root, progress if needs_state else None, uses_settings=uses_settings)
        with opened as workspace:
            progress.clear()
            yield workspace
            if workspace.notice:
                output.print_error(workspace.notice)


def verify_whole_log(workspace: Workspace) -> None:
    """Wait until the whole log is verified, with progress on a terminal."""
    with output.Progress("verifying") as progress:
        workspaces.verify_whole_log(workspace, progress)


def add_plan_id(parser: argparse.ArgumentParser, *, nargs: str | None = None) -> None:
    """Add the id of a plan that exists; its first characters, or the path of its file, are accepted too."""
    parser.add_argument(
        "plan_id",
        metavar="ID",
        nargs=nargs,
        type=parse_plan_prefix,
        help="the plan's id: its file's name without .md; its first characters are enough",
    )


def parse_plan_prefix(text: str) -> str:
    """The beginning of a valid plan id, from an id or the path of the plan's file."""
    prefix = text.removeprefix("plans/").removesuffix(PLAN_SUFFIX)
    if not _PLAN_PREFIX.fullmatch(prefix):
        parse_plan_id(text)
    return prefix


def parse_plan_id(text: str) -> str:
    """A valid plan id, from an id or the path of the plan's file."""
    plan_id = text.removeprefix("plans/").removesuffix(PLAN_SUFFIX)
    if not is_plan_id(plan_id):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid plan id. Write one like PLAN-0007-rotate-tokens: capitals and digits first, then "
            f"letters and digits after hyphens, at most {MAX_ID_LENGTH} characters"
        )
    return plan_id


def require_plan(workspace: Workspace, prefix: str) -> StoredPlan:
    """The one plan whose id begins so, as its file is now; refused if there is none or several."""
    plan_id = resolve_id(workspace.plans.plan_ids(), prefix, "plan", PLAN_ADVICE)
    stored = workspace.plans.read(plan_id)
    if stored is None:
        raise RefusedError(f"There is no plan {plan_id}. {PLAN_ADVICE}")
    return stored
