"""Finding and opening the workspace that a command is about, and the name of the person who runs it."""

import argparse
import getpass
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kaiza.cli.console import output
from kaiza.cli.console.id_prefix import resolve_id
from kaiza.domain.caps import Caps
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.render.terminal import escape
from kaiza.store import git, human_decisions
from kaiza.store.config import roots
from kaiza.store.config.settings import Settings
from kaiza.store.disk import state_dir
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.trust.binding import Standing, read_binding
from kaiza.store.workspace import Workspace

_POLL_SECONDS = 0.1
_GIT_SECONDS = 5
_PLAN_PREFIX = re.compile(f"[A-Z][A-Za-z0-9-]{{0,{MAX_ID_LENGTH - 1}}}")
PLAN_ADVICE = "`kaiza plan list` lists the plans."


def resolve_root(args: argparse.Namespace) -> str:
    """The real path of the workspace: `--workspace`, else the nearest directory upwards that is one.

    A CommandError if that one does not belong to this machine and one above it does: an agent may have made it.
    """
    if args.workspace is not None:
        return _named_root(args.workspace)
    root = _nearest_root()
    outer = find_bound_above(root)
    if outer is not None:
        raise output.CommandError(
            f"Which workspace? {escape(root)} does not belong to this machine, and it is inside {escape(outer)}, which "
            "does. Name one with --workspace DIR.",
            output.USAGE_ERROR,
        )
    return root


def resolve_all_roots(args: argparse.Namespace) -> list[str]:
    """The workspace, and the one around it where `resolve_root` would ask which. For decisions that only restrict."""
    if args.workspace is not None:
        return [_named_root(args.workspace)]
    root = _nearest_root()
    outer = find_bound_above(root)
    return [root] if outer is None else [root, outer]


def find_bound_above(root: str) -> str | None:
    """The nearest workspace above that belongs to this machine; None if there is none or `root` does itself."""
    if _is_bound(root):
        return None
    outer = roots.find_nearest(os.path.dirname(root))  # noqa: PTH120  a root may hold any bytes
    while outer is not None and not _is_bound(outer):
        above = os.path.dirname(outer)  # noqa: PTH120  as above
        outer = roots.find_nearest(above) if above != outer else None
    return outer


def _is_bound(root: str) -> bool:
    return read_binding(root, state_dir.path_of(root)).standing is Standing.BOUND


def resolve_name(name: str | None) -> str:
    """The person's name: `--as`, else git's user.name, else the login."""
    return name or _git_user_name() or getpass.getuser()


@contextmanager
def open_workspace(args: argparse.Namespace, settings: Settings | None = None) -> Iterator[Workspace]:
    """The workspace, with every record that any process has appended; under these settings if given."""
    with open_root(resolve_root(args), settings) as workspace:
        yield workspace


@contextmanager
def open_root(root: str, settings: Settings | None = None, *, needs_state: bool = True) -> Iterator[Workspace]:
    """The workspace at a root, as `open_workspace` opens it; without `needs_state` a long log is not waited for."""
    workspace = Workspace(root, Caps(), settings)
    try:
        if not workspace.is_recording():
            raise output.CommandError("There is no audit/ directory to record in. Run `kaiza init` first.")
        human_decisions.catch_up(workspace)
        if needs_state:
            _wait_for_state(workspace)
        yield workspace
        if workspace.notice:
            output.print_error(workspace.notice)
    finally:
        workspace.close(human_decisions.current_timestamp())


def _wait_for_state(workspace: Workspace) -> None:
    """Wait until a long log without an index is read, with progress on a terminal."""
    with output.Progress("reading the log") as progress:
        while (read := workspace.projection.wait(_POLL_SECONDS)) is not None:
            progress(read["bytes"], read["of"])


def verify_whole_log(workspace: Workspace) -> None:
    """Wait until the whole log is verified, with progress on a terminal; a CommandError if it is damaged."""
    with output.Progress("verifying") as progress:
        while (state := workspace.verification_progress(_POLL_SECONDS)) is not None:
            progress(state["bytes"], state["of"])
    require_sound_log(workspace)


def require_sound_log(workspace: Workspace) -> None:
    """A CommandError if the log is damaged or foreign: a decision that loosens needs a log that can be trusted."""
    require_adopted(workspace)
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
        raise output.CommandError(
            f"There is no directory {escape(directory)}. Name the workspace with --workspace DIR."
        )
    return require_utf8(str(root))


def _nearest_root() -> str:
    root = roots.find_nearest(".")
    if root is None:
        raise output.CommandError(
            "This is not a Kaiza workspace: neither this directory nor one above it has plans/ and audit/. "
            "Go to a workspace, name one with --workspace DIR, or create one with `kaiza init`."
        )
    return require_utf8(root)


def require_utf8(root: str) -> str:
    """The path of a workspace; a CommandError if no record could hold it."""
    if not roots.is_utf8(root):
        raise output.CommandError(roots.NOT_UTF8)
    return root


def _git_user_name() -> str:
    try:
        result = git.run(roots.find_nearest(".") or ".", "config", "user.name", seconds=_GIT_SECONDS)
    except FileNotFoundError:  # the current directory was removed; --workspace may still name one that exists
        return ""
    return result.stdout.decode("utf-8", "replace").strip() if result else ""


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
    prefix = text.removeprefix("plans/").removesuffix(SUFFIX)
    if not _PLAN_PREFIX.fullmatch(prefix):
        parse_plan_id(text)
    return prefix


def parse_plan_id(text: str) -> str:
    """A valid plan id, from an id or the path of the plan's file."""
    plan_id = text.removeprefix("plans/").removesuffix(SUFFIX)
    if not is_plan_id(plan_id):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid plan id. Write one like PLAN-0007-rotate-tokens: capitals and digits first, then "
            f"letters and digits after hyphens, at most {MAX_ID_LENGTH} characters"
        )
    return plan_id


def require_plan(workspace: Workspace, prefix: str) -> StoredPlan:
    """The one plan whose id begins so, as its file is now; a CommandError if there is none or several."""
    plan_id = resolve_id(workspace.plans.plan_ids(), prefix, "plan", PLAN_ADVICE)
    stored = workspace.plans.read(plan_id)
    if stored is None:
        raise output.CommandError(f"There is no plan {plan_id}. {PLAN_ADVICE}", output.FAILURE)
    return stored
