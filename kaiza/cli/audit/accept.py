"""`kaiza audit accept`: accept a damaged log after examining it, and begin a new one."""

import argparse
from pathlib import Path
from typing import Any

from kaiza.cli.audit import verify
from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.queries.workspaces import find_person_name
from kaiza.render import log_verdict
from kaiza.render.terminal import escape
from kaiza.store.audit import log_file
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification.accept import AcceptedDamage, accept_damage
from kaiza.store.disk import state_dir
from kaiza.store.trust import binding, identity


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("accept", help="after damage: archive the log and begin a new one")
    arguments.describe(
        parser,
        "After damage: archive the log as audit/audit-log.damaged-<n>.jsonl and begin a new one. Its first record "
        "holds the old log's checkpoint, verdict and file hash, your reason and your name. Asks you to confirm at the "
        "terminal.\n"
        "Exit status: 0 accepted, 1 not accepted or nothing to accept, 3 no terminal to ask at.",
        'kaiza audit accept --reason "restored a backup"',
        run=_run_accept,
    )
    parser.add_argument(
        "--reason", required=True, type=arguments.parse_reason, help="what you found, and why it is safe to continue"
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_accept(args: argparse.Namespace) -> int:
    root, name = resolve_root(args), find_person_name(args.name)
    verdict = verify.verify_with_progress(root)
    directory = state_dir.path_of(root)
    if binding.read_binding(root, directory).is_new:
        raise output.CommandError(
            "There is nothing to accept: nothing is recorded here, and the next call begins a log.", output.FAILURE
        )
    if DamageMark(directory).read() is None and not is_damage(verdict["verdict"]):
        raise output.CommandError(f"There is nothing to accept. {log_verdict.describe(verdict)[0]}", output.FAILURE)
    if not confirm_by_typing(_confirmation_text(root, verdict, args.reason, name), "accept"):
        raise output.CommandError("Cancelled. Nothing was accepted.", output.FAILURE)
    accepted = _accept(root, args.reason, name)
    if accepted is None:
        raise output.CommandError(
            "The log was repaired in the meantime. Nothing was accepted; nothing was changed.", output.FAILURE
        )
    _print_result(args, accepted)
    return output.SUCCESS


def _accept(root: str, reason: str, person: str) -> AcceptedDamage | None:
    """Begin a new log; of the old one's records, those from elsewhere may only restrict."""
    directory = state_dir.path_of(root)
    with identity.lock_identity(directory):
        restricted_seq = binding.read_binding(root, directory).restricted_seq
        accepted = accept_damage(root, reason=reason, person=person, restricted_seq=restricted_seq)
        if accepted is not None:
            binding.forget_adopted_records(directory)
    return accepted


def _confirmation_text(root: str, verdict: dict[str, Any], reason: str, name: str) -> str:
    # Damage that was found once stays marked, even if the log verifies again.
    facts = log_verdict.describe(verdict)[:-1] if is_damage(verdict["verdict"]) else ["The log was damaged before."]
    log = log_file.path_of(root)
    archived = f"{log.name} is kept as {_archive_name(log)}, and a" if log.exists() else "A"
    return "\n".join(
        [
            *facts,
            "",
            f"{archived} new log begins in {escape(str(log.parent))}. Changes are allowed again.",
            f"Its first record will say that {escape(name)} accepted this, because: {escape(reason)}",
        ]
    )


def _archive_name(log: Path) -> str:
    number = 1
    while (log.parent / f"audit-log.damaged-{number}.jsonl").exists():
        number += 1
    return f"audit-log.damaged-{number}.jsonl"


def _print_result(args: argparse.Namespace, accepted: AcceptedDamage) -> None:
    head = {"seq": accepted.record["seq"], "entry_hash": accepted.record["entry_hash"]}
    if args.json:
        output.print_json({"verdict": accepted.verdict.verdict, "file": accepted.archived_path, "head": head})
        return
    archived = [f"The old log: {escape(accepted.archived_path)}"] if accepted.archived_path else []
    checkpoint = f"{head['seq']}:{head['entry_hash']}"
    output.print_sentences(["Accepted. Changes are allowed again.", *archived, "The new log begins with:", checkpoint])
