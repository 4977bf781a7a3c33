"""Finding and opening the workspace that a command is about, and the name of the person who runs it."""

import argparse
import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kaiza.cli.console import output
from kaiza.domain.caps import Caps
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.store import git, human_decisions
from kaiza.store.config import roots
from kaiza.store.config.settings import Settings
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.workspace import Workspace

_POLL_SECONDS = 0.1
_GIT_SECONDS = 5


def resolve_root(args: argparse.Namespace) -> str:
    """The real path of the workspace: `--workspace`, else the nearest directory upwards that is one."""
    return _named_root(args.workspace) if args.workspace is not None else _nearest_root()


def resolve_name(name: str | None) -> str:
    """The person's name: `--as`, else git's user.name, else the login."""
    return name or _git_user_name() or getpass.getuser()


@contextmanager
def open_workspace(args: argparse.Namespace, settings: Settings | None = None) -> Iterator[Workspace]:
    """The workspace, with every record that any process has appended; under these settings if given."""
    workspace = Workspace(resolve_root(args), Caps(), settings)
    try:
        if not workspace.is_recording():
            raise output.CommandError("There is no audit/ directory to record in. Run `kaiza init` first.")
        human_decisions.catch_up(workspace)
        yield workspace
    finally:
        workspace.close(human_decisions.current_timestamp())


def verify_whole_log(workspace: Workspace) -> None:
    """Wait until the whole log is verified, with progress on a terminal; a CommandError if it is damaged."""
    with output.Progress("verifying") as progress:
        while (state := workspace.verification_progress(_POLL_SECONDS)) is not None:
            progress(state["bytes"], state["of"])
    require_sound_log(workspace)


def require_sound_log(workspace: Workspace) -> None:
    """A CommandError if the log is damaged: a decision that loosens something needs a log that can be trusted."""
    verdict = workspace.damage()
    if verdict is not None:
        raise output.CommandError(
            f"The audit log is damaged ({verdict}). Nothing was changed. Run `kaiza audit verify` first.",
            output.FAILURE,
        )


def require_adopted(workspace: Workspace) -> None:
    """A CommandError if the workspace came from elsewhere: nothing is trusted in it before a person adopts it."""
    if workspace.binding.is_foreign:
        raise output.CommandError(
            "This workspace came from elsewhere. Nothing was changed. Run `kaiza adopt` first.", output.FAILURE
        )


def _named_root(directory: str) -> str:
    root = Path(directory).resolve()
    if not root.is_dir():
        raise output.CommandError(f"There is no directory {directory}. Name the workspace with --workspace DIR.")
    return str(root)


def _nearest_root() -> str:
    root = roots.find_nearest(".")
    if root is None:
        raise output.CommandError(
            "This is not a Kaiza workspace: neither this directory nor one above it has plans/ and audit/. "
            "Go to a workspace, name one with --workspace DIR, or create one with `kaiza init`."
        )
    return root


def _git_user_name() -> str:
    try:
        result = git.run(roots.find_nearest(".") or ".", "config", "user.name", seconds=_GIT_SECONDS)
    except FileNotFoundError:  # the current directory was removed; --workspace may still name one that exists
        return ""
    return result.stdout.decode("utf-8", "replace").strip() if result else ""


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
