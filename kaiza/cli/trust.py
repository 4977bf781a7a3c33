"""`kaiza trust`: show and decide what approves plans here besides a person at the terminal."""

import argparse
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import ask_line, confirm
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import add_signers, distrust_branch, remove_signer, trust_branch
from kaiza.domain.refusal import RefusedError
from kaiza.queries.trust_summary import read_signer_lines, summarize_trust
from kaiza.queries.workspaces import find_person_name
from kaiza.render.plans import render_section
from kaiza.render.terminal import escape, wrap

_APPROVALS = {
    "edit": "by an edit here, kaiza plan approve, a merge or a signature",
    "command": "by kaiza plan approve or a signature",
    "signature": "by a signature",
}
_NO_TERMINAL = (
    "The project that signatures are for has to be named at a terminal, and there is none here. "
    "Run the command in your own terminal."
)
_CANCELLED = "Cancelled. Nothing was changed."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options and subcommands."""
    arguments.describe(
        parser,
        "Show what approves plans here besides a person at this terminal: branches into which plans are merged, and "
        "keys that sign them. The subcommands change it.\n"
        "Exit status: 0 shown, 1 something that is trusted does not count now.",
        "kaiza trust\nkaiza trust merged --ref origin/main",
        run=_run_show,
    )
    arguments.add_workspace(parser)
    arguments.add_json(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    _add_merged(commands)
    # SUPPRESS, here and below: their options must not replace those before the subcommand by their defaults.
    group = commands.add_parser("signer", help="trust the signatures of a key", argument_default=argparse.SUPPRESS)
    nested = arguments.add_group(
        group, "Keys whose signatures approve plans in this workspace.", "kaiza trust signer list"
    )
    for add_command in (_add_signer_add, _add_signer_list, _add_signer_remove):
        command = add_command(nested)
        command.set_defaults(name=None)
        if add_command is not _add_signer_list:
            arguments.add_operator(command)
        arguments.add_workspace(command)
        arguments.add_json(command)


def _add_merged(commands: arguments.Subparsers) -> None:
    parser = commands.add_parser("merged", help="trust the plans in a branch", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "Trust a branch: a plan is then approved in this workspace if it says APPROVED and its file is exactly the "
        "one in that branch. Asks you to confirm at the terminal. --off ends it, at once.\n"
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


def _add_signer_add(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("add", help="trust a key", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        'Trust a key. LINE is one of OpenSSH\'s allowed_signers: a name, namespaces="kaiza-plan", the public key. '
        "The first time, asks for the project's name, which is part of what is signed. Asks you to confirm at the "
        "terminal.\n"
        "Exit status: 0 added, 1 not added, 3 no terminal to ask at.",
        "kaiza trust signer add ann.signer\n"
        "kaiza trust signer add 'ann namespaces=\"kaiza-plan\" ssh-ed25519 AAAAC3Nz'",
        run=_run_signer_add,
    )
    parser.set_defaults(project=None)
    parser.add_argument("signer", metavar="FILE|LINE", help="a file of such lines, or one line")
    parser.add_argument("--project", metavar="NAME", help="name the project, without being asked")
    return parser


def _add_signer_list(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("list", help="list trusted keys", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "List the trusted keys as lines of allowed_signers.\nExit status: 0 listed, 1 some lines do not count.",
        "kaiza trust signer list",
        run=_run_signer_list,
    )
    return parser


def _add_signer_remove(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("remove", help="trust a signer no longer", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "Remove the keys of a signer. In force at once; no confirmation is needed.\n"
        "Exit status: 0 removed, 1 no such signer.",
        "kaiza trust signer remove ann@example.org",
        run=_run_signer_remove,
    )
    parser.add_argument("principal", metavar="PRINCIPAL", help="the signer's name")
    return parser


def _run_show(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        summary = summarize_trust(workspace.root) | {"approval": workspace.settings.required_approval}
    if args.json:
        output.print_json(summary)
    else:
        output.print_lines(_format_summary(summary))
    is_sound = not summary["problems"] and not any(entry["problem"] for entry in summary["merged"])
    return output.SUCCESS if is_sound else output.FAILURE


def _format_summary(summary: Mapping[str, Any]) -> Iterator[str]:
    width, colour = output.terminal_width(), output.has_colour()
    yield from wrap([f"plans are approved {_APPROVALS[summary['approval']]}"], width)
    merged, signers = [], []
    for entry in summary["merged"]:
        problem = f": {escape(entry['problem'])}" if entry["problem"] else ""
        merged.append(f"{escape(entry['ref'])}  ({escape(entry['source'])}){problem}")
    yield from render_section("Merged into", merged, width, colour=colour)
    for entry in summary["signers"]:
        signers.append(f"{escape(entry['principal'])}  ({escape(entry['source'])})")
        signers.append(f"  {escape(entry['key_type'])} {escape(entry['fingerprint'])}")
    yield from render_section("Signed by", signers, width, colour=colour)
    if summary["project"]:
        line = f"{escape(summary['project']['name'])}  ({escape(summary['project']['source'])})"
        yield from render_section("Project named in signatures", [line], width, colour=colour)
    problems = [escape(problem) for problem in summary["problems"]]
    yield from render_section("Problems", problems, width, colour=colour, style="yellow")
    if not merged and not signers:
        yield "no branch and no key is trusted"


def _run_merged(args: argparse.Namespace) -> int:
    # Default settings: a kaiza.toml that cannot be read must not stop a person from ending trust.
    with open_workspace(args, uses_settings=not args.off) as workspace:
        if args.off:
            proposed = distrust_branch.propose(workspace, args.ref)
            refs = distrust_branch.decide(workspace, proposed, find_person_name(args.name)).refs
        else:
            proposal, person = trust_branch.propose(workspace, args.ref), find_person_name(args.name)
            facts = [
                f"Workspace: {escape(workspace.root)}",
                f"Branch:    {escape(proposal.ref)}",
                "",
                "A plan that says APPROVED in this branch is then approved here, if its file is",
                "the same. Everyone who can merge into it decides what agents may change here.",
                f"Recorded as decided by {escape(person)}.",
            ]
            word = "merged" if workspace.settings.confirm_by_word else None
            if not confirm("\n".join(facts), "Trust this branch?", word=word):
                raise RefusedError(_CANCELLED)
            refs = trust_branch.decide(workspace, proposal, person).refs
    shown = f"Trusted: {', '.join(refs)}" if refs else "No branch is trusted by this command."
    return _print_result(args, {"merged": refs}, [shown])


def _run_signer_add(args: argparse.Namespace) -> int:
    try:
        # A line may be longer than the name of a file can be: os.path says no, where Path raises.
        lines = Path(args.signer).read_text() if os.path.isfile(args.signer) else args.signer  # noqa: PTH113
    except (OSError, ValueError) as problem:
        raise RefusedError(f"Nothing was changed: {escape(str(problem))}.") from problem
    with open_workspace(args) as workspace:
        proposal, person = add_signers.propose(workspace, lines, args.project), find_person_name(args.name)
        if not proposal.is_project_named:
            name = ask_line("Project that signatures are for", proposal.project, _NO_TERMINAL)
            proposal = add_signers.propose(workspace, lines, name)
        facts = [f"Workspace: {escape(workspace.root)}", f"Project:   {escape(proposal.project)}"]
        for signer in proposal.signers:
            facts += [escape(signer.principal), f"  {signer.key_type} {signer.fingerprint}"]
        facts += [
            "",
            "Plans that these keys sign for this project are then approved here.",
            "Compare the fingerprints with those that the signers themselves name.",
            f"Recorded as decided by {escape(person)}.",
        ]
        question = "Trust this key?" if len(proposal.signers) == 1 else "Trust these keys?"
        word = "signer" if workspace.settings.confirm_by_word else None
        if not confirm("\n".join(facts), question, word=word):
            raise RefusedError(_CANCELLED)
        added = add_signers.decide(workspace, proposal, person)
    shown = [f"Trusted: {key['principal']}" for key in added.keys]
    return _print_result(args, {"added": added.keys, "project": added.project}, shown)


def _run_signer_list(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        listed, summary = read_signer_lines(workspace.root), summarize_trust(workspace.root)
    if args.json:
        output.print_json({"signers": summary["signers"], "problems": list(listed.problems)})
    else:
        output.print_lines(escape(signer.line) for signer in listed.signers)
        if not listed.signers:
            output.print_error("No key is trusted here. `kaiza trust signer add` adds one.")
    for problem in listed.problems:
        output.print_error(f"kaiza: {escape(problem)}. The line does not count.")
    return output.FAILURE if listed.problems else output.SUCCESS


def _run_signer_remove(args: argparse.Namespace) -> int:
    # Default settings: a kaiza.toml that cannot be read must not stop a person from ending trust.
    with open_workspace(args, uses_settings=False) as workspace:
        proposal = remove_signer.propose(workspace, args.principal)
        remove_signer.decide(workspace, proposal, find_person_name(args.name))
    return _print_result(args, {"removed": args.principal}, [f"No longer trusted: {args.principal}"])


def _print_result(args: argparse.Namespace, document: dict[str, object], lines: list[str]) -> int:
    if args.json:
        output.print_json(document)
    else:
        output.print_sentences(map(escape, lines))
    return output.SUCCESS
