"""What several commands take alike: the workspace, `--json`, and a help text with an example."""

import argparse
import getpass
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from kaiza.cli.console import output
from kaiza.cli.console.output import CommandError
from kaiza.domain.plans.parser import StoredPlan
from kaiza.domain.plans.plan import MAX_ID_LENGTH, is_plan_id
from kaiza.store import git
from kaiza.store.config import roots
from kaiza.store.documents.plan_files import SUFFIX
from kaiza.store.workspace import Workspace

CommandAction = Callable[[argparse.Namespace], int]
Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  it has no other name


def describe(parser: argparse.ArgumentParser, what: str, example: str, *, run: CommandAction | None = None) -> None:
    """Give a command its description, its example, and what it does."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = what
    parser.epilog = "example:\n" + "\n".join(f"  {line}" for line in example.splitlines())
    if run is not None:
        parser.set_defaults(act=run, parser=parser)


def add_group(parser: argparse.ArgumentParser, what: str, example: str) -> Subparsers:
    """A command that has commands of its own."""
    describe(parser, what, example)
    return parser.add_subparsers(title="commands", metavar="COMMAND", required=True, dest="subcommand")


def add_workspace(parser: argparse.ArgumentParser) -> None:
    """`--workspace DIR`, else the nearest directory upwards that is one."""
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        help="the workspace (default: the nearest directory upwards that has plans/ and audit/)",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """`--json`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_operator(parser: argparse.ArgumentParser) -> None:
    """`--as NAME`."""
    parser.add_argument(
        "--as", dest="name", metavar="NAME", help="who you are (default: git's user.name, else your login)"
    )


def resolve_name(given: str | None) -> str:
    """The name they give with `--as`, else git's, else the one they logged in with."""
    return given or _git_user_name() or getpass.getuser()


def _git_user_name() -> str:
    try:
        told = git.run(roots.find_nearest(".") or ".", "config", "user.name", seconds=5)
    except FileNotFoundError:  # the directory they are in is gone; what they want to say may be about another
        return ""
    return told.stdout.decode("utf-8", "replace").strip() if told else ""


def resolve_root(args: argparse.Namespace) -> str:
    """The workspace's real path."""
    return _named_root(args.workspace) if args.workspace is not None else _nearest_root()


def _named_root(directory: str) -> str:
    root = Path(directory).resolve()
    if not root.is_dir():
        raise CommandError(f"There is no directory {directory}. Name the workspace with --workspace DIR.")
    return str(root)


def _nearest_root() -> str:
    found = roots.find_nearest(".")
    if found is None:
        raise CommandError(
            "This is no Kaiza workspace: no directory from here upwards has plans/ and audit/. "
            "Go to one, name one with --workspace DIR, or make one ready with: kaiza init"
        )
    return found


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
