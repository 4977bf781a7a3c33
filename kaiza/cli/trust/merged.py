"""`kaiza trust merged`: plans that are merged into a branch are approved in this workspace, or no longer."""

import argparse
from collections.abc import Sequence
from dataclasses import replace

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.queries.workspaces import find_person_name, require_adopted, require_sound_log
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.merged_plans import check_ref, find_default_branch
from kaiza.store.trust.trust_file import read_trust, save_trust
from kaiza.store.trust.trusted_refs import expand_ref
from kaiza.store.workspace import Workspace

_WORD = "merged"


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    # Its options must not replace those before the subcommand by their defaults.
    parser = commands.add_parser("merged", help="trust the plans in a branch", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "Trust a branch: a plan is then approved in this workspace if it says APPROVED and its file is exactly the "
        "one in that branch. Asks you to type merged. --off ends it, at once.\n"
        "Exit status: 0 done, 1 not done, 3 no terminal to ask at.",
        "kaiza trust merged --ref origin/main\nkaiza trust merged --off",
        run=_run_merged,
    )
    parser.set_defaults(ref=None, off=False, name=None)
    parser.add_argument(
        "--ref",
        metavar="REF",
        help="a remote-tracking branch such as origin/main, or a full name such as refs/heads/main "
        "(default: the remote's default branch)",
    )
    parser.add_argument("--off", action="store_true", help="trust no branch any longer, or not --ref")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_merged(args: argparse.Namespace) -> int:
    # Default settings: a kaiza.toml that cannot be read must not stop a person from ending trust.
    with open_workspace(args, uses_settings=not args.off) as workspace:
        refs = _end_trust(workspace, args) if args.off else _begin_trust(workspace, args)
    if args.json:
        output.print_json({"merged": refs})
    else:
        output.print_sentences(
            [f"Trusted: {escape(', '.join(refs))}" if refs else "No branch is trusted by this command."]
        )
    return output.SUCCESS


def _begin_trust(workspace: Workspace, args: argparse.Namespace) -> list[str]:
    require_adopted(workspace)
    require_sound_log(workspace)
    ref, person = _choose_ref(workspace, args.ref), find_person_name(args.name)
    if not confirm_by_typing(_confirmation_text(workspace, ref, person), _WORD):
        raise output.CommandError("Cancelled. Nothing was changed.", output.FAILURE)
    detail = {"merged": "on", "ref": ref}
    human_decisions.record_decision(workspace, "trust", person, detail=detail)
    return _save_refs(workspace, [*(each for each in _read_refs(workspace) if each != ref), ref])


def _end_trust(workspace: Workspace, args: argparse.Namespace) -> list[str]:
    ref = _parse_ref(args.ref) if args.ref else None
    ended = [each for each in _read_refs(workspace) if ref in (None, each)]
    if not ended:
        raise output.CommandError(
            "No such branch is trusted by this command. `kaiza trust` shows what is, and where it is set.",
            output.FAILURE,
        )
    detail = {"merged": "off", "ref": ", ".join(ended)}
    human_decisions.record_decision(workspace, "trust", find_person_name(args.name), detail=detail)
    return _save_refs(workspace, [each for each in _read_refs(workspace) if each not in ended])


def _read_refs(workspace: Workspace) -> Sequence[str]:
    return read_trust(state_dir.path_of(workspace.root)).merged_refs


def _save_refs(workspace: Workspace, refs: list[str]) -> list[str]:
    trust = read_trust(state_dir.path_of(workspace.root))
    save_trust(workspace.root, replace(trust, merged_refs=tuple(refs)))
    return refs


def _choose_ref(workspace: Workspace, name: str | None) -> str:
    """The full name of the branch to trust; a CommandError if there is none."""
    ref = _parse_ref(name) if name else find_default_branch(workspace.root)
    if ref is None:
        raise output.CommandError(
            "The remote's default branch is not known here. Name one: kaiza trust merged --ref origin/main",
            output.FAILURE,
        )
    problem = check_ref(workspace.root, ref)
    if problem is not None:
        raise output.CommandError(
            f"Nothing was changed: {problem}. Fetch the branch, or name another with --ref.", output.FAILURE
        )
    return ref


def _parse_ref(name: str) -> str:
    try:
        return expand_ref(name)
    except ValueError as problem:
        raise output.CommandError(f"{problem}. Write it like origin/main.", output.FAILURE) from problem


def _confirmation_text(workspace: Workspace, ref: str, person: str) -> str:
    return "\n".join(
        [
            f"Workspace: {escape(workspace.root)}",
            f"Branch:    {escape(ref)}",
            "",
            "A plan that says APPROVED in this branch is then approved here, if its file is",
            "the same. Everyone who can merge into it decides what agents may change here.",
            f"Recorded as decided by {escape(person)}.",
        ]
    )
