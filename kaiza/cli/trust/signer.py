"""`kaiza trust signer`: the keys whose signatures approve plans in this workspace."""

import argparse
import os
from dataclasses import replace
from pathlib import Path

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import ask_line, confirm_by_typing
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.domain import errors
from kaiza.queries.trust_summary import summarize_trust
from kaiza.queries.workspaces import find_person_name, require_adopted, require_sound_log
from kaiza.render.terminal import escape
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust.signed_plans import is_project_name
from kaiza.store.trust.signers import Signer, machine_path, parse_signers, read_signers, save_signers
from kaiza.store.trust.trust_file import read_trust, save_trust
from kaiza.store.trust.trusted_refs import find_project
from kaiza.store.workspace import Workspace

_WORD = "signer"
_NO_TERMINAL = (
    "The project that signatures are for has to be named at a terminal, and there is none here. "
    "Run the command in your own terminal."
)


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand with its own subcommands."""
    group = commands.add_parser("signer", help="trust the signatures of a key", argument_default=argparse.SUPPRESS)
    nested = arguments.add_group(
        group, "Keys whose signatures approve plans in this workspace.", "kaiza trust signer list"
    )
    for add_command in (_add_add, _add_list, _add_remove):
        parser = add_command(nested)
        parser.set_defaults(name=None)
        if add_command is not _add_list:
            arguments.add_operator(parser)
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def _add_add(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("add", help="trust a key", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        'Trust a key. LINE is one of OpenSSH\'s allowed_signers: a name, namespaces="kaiza-plan", the public key. '
        "The first time, asks for the project's name, which is part of what is signed. Asks you to type signer.\n"
        "Exit status: 0 added, 1 not added, 3 no terminal to ask at.",
        "kaiza trust signer add ann.signer\n"
        "kaiza trust signer add 'ann namespaces=\"kaiza-plan\" ssh-ed25519 AAAAC3Nz'",
        run=_run_add,
    )
    parser.set_defaults(project=None)
    parser.add_argument("signer", metavar="FILE|LINE", help="a file of such lines, or one line")
    parser.add_argument("--project", metavar="NAME", help="name the project, without being asked")
    return parser


def _add_list(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("list", help="list trusted keys", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "List the trusted keys as lines of allowed_signers.\nExit status: 0 listed, 1 some lines do not count.",
        "kaiza trust signer list",
        run=_run_list,
    )
    return parser


def _add_remove(commands: arguments.Subparsers) -> argparse.ArgumentParser:
    parser = commands.add_parser("remove", help="trust a signer no longer", argument_default=argparse.SUPPRESS)
    arguments.describe(
        parser,
        "Remove the keys of a signer. In force at once; no confirmation is needed.\n"
        "Exit status: 0 removed, 1 no such signer.",
        "kaiza trust signer remove ann@example.org",
        run=_run_remove,
    )
    parser.add_argument("principal", metavar="PRINCIPAL", help="the signer's name")
    return parser


def _run_add(args: argparse.Namespace) -> int:
    added, person = _parse_signers(args.signer), find_person_name(args.name)
    with open_workspace(args) as workspace:
        require_adopted(workspace)
        require_sound_log(workspace)
        _refuse_machine_list()
        project = _choose_project(workspace, args.project)
        if not confirm_by_typing(_confirmation_text(workspace, added, project, person), _WORD):
            raise output.CommandError("Cancelled. Nothing was changed.", output.FAILURE)
        keys = [{"principal": signer.principal, "fingerprint": signer.fingerprint} for signer in added]
        detail = {"change": "add", "project": project, "keys": keys}
        human_decisions.record_decision(workspace, "signer", person, detail=detail)
        _save_signers(workspace, added, project)
    _print_result(args, {"added": keys, "project": project}, [f"Trusted: {key['principal']}" for key in keys])
    return output.SUCCESS


def _run_list(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        listed, summary = read_signers(state_dir.path_of(workspace.root)), summarize_trust(workspace.root)
    if args.json:
        output.print_json({"signers": summary["signers"], "problems": list(listed.problems)})
    else:
        output.print_lines(escape(signer.line) for signer in listed.signers)
        if not listed.signers:
            output.print_error("No key is trusted here. `kaiza trust signer add` adds one.")
    for problem in listed.problems:
        output.print_error(f"kaiza: {escape(problem)}. The line does not count.")
    return output.FAILURE if listed.problems else output.SUCCESS


def _run_remove(args: argparse.Namespace) -> int:
    # Default settings: a kaiza.toml that cannot be read must not stop a person from ending trust.
    with open_workspace(args, uses_settings=False) as workspace:
        _refuse_machine_list()
        signers = read_signers(state_dir.path_of(workspace.root)).signers
        kept = [signer for signer in signers if signer.principal != args.principal]
        if len(kept) == len(signers):
            raise output.CommandError(
                "There is no such signer here. `kaiza trust signer list` lists them.", output.FAILURE
            )
        detail = {"change": "remove", "principal": args.principal}
        human_decisions.record_decision(workspace, "signer", find_person_name(args.name), detail=detail)
        save_signers(workspace.root, kept)
    _print_result(args, {"removed": args.principal}, [f"No longer trusted: {args.principal}"])
    return output.SUCCESS


def _parse_signers(text: str) -> list[Signer]:
    # A line may be longer than the name of a file can be.
    path = Path(text)
    try:
        found = parse_signers(path.read_text() if os.path.isfile(path) else text)  # noqa: PTH113
    except (OSError, ValueError) as problem:
        raise output.CommandError(f"Nothing was changed: {escape(str(problem))}.", output.FAILURE) from problem
    if not found:
        raise output.CommandError("Nothing was changed: the file has no signers.", output.FAILURE)
    return found


def _refuse_machine_list() -> None:
    path = machine_path()
    if os.path.lexists(path):
        raise output.CommandError(
            f"{path} lists the signers of this machine, and only those count. Ask its administrator.", output.FAILURE
        )


def _choose_project(workspace: Workspace, name: str | None) -> str:
    """The project's name: the one that is set, else what the person says; a CommandError if it cannot be one."""
    try:
        found = find_project(state_dir.path_of(workspace.root))
    except errors.SystemError as error:
        raise output.CommandError(error.human_message, output.FAILURE) from error
    known = found[0] if found else None
    if known is not None and name not in (None, known):
        raise output.CommandError(
            f"Signatures here are for the project {escape(known)}. Nothing was changed. Leave out --project.",
            output.FAILURE,
        )
    proposal = Path(workspace.root).name
    chosen = known or name or ask_line("Project that signatures are for", proposal, _NO_TERMINAL)
    if not is_project_name(chosen):
        raise output.CommandError(
            "A project's name has 1 to 100 visible characters. Nothing was changed.", output.FAILURE
        )
    return chosen


def _save_signers(workspace: Workspace, added: list[Signer], project: str) -> None:
    state_path = state_dir.path_of(workspace.root)
    keys = {(signer.principal, signer.key) for signer in added}
    kept = [each for each in read_signers(state_path).signers if (each.principal, each.key) not in keys]
    own_project = project if find_project(state_path) is None else read_trust(state_path).project
    save_trust(workspace.root, replace(read_trust(state_path), project=own_project))
    save_signers(workspace.root, [*kept, *added])


def _confirmation_text(workspace: Workspace, added: list[Signer], project: str, person: str) -> str:
    keys = [
        line for signer in added for line in (escape(signer.principal), f"  {signer.key_type} {signer.fingerprint}")
    ]
    return "\n".join(
        [
            f"Workspace: {escape(workspace.root)}",
            f"Project:   {escape(project)}",
            *keys,
            "",
            "Plans that these keys sign for this project are then approved here.",
            "Compare the fingerprints with those that the signers themselves name.",
            f"Recorded as decided by {escape(person)}.",
        ]
    )


def _print_result(args: argparse.Namespace, document: dict[str, object], lines: list[str]) -> None:
    if args.json:
        output.print_json(document)
    else:
        output.print_sentences(map(escape, lines))
