"""`kaiza audit accept`: accept a damaged log after examining it, and begin a new one."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.decisions import accept_damage
from kaiza.domain.refusal import RefusedError
from kaiza.queries.audit_log import is_damage
from kaiza.queries.workspaces import find_person_name
from kaiza.render import log_verdict
from kaiza.render.terminal import escape


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
    with output.Progress("verifying") as progress:
        proposal = accept_damage.propose(root, args.reason, progress)
    if not confirm(_confirmation_text(proposal, name), "Accept this and begin a new log?"):
        raise RefusedError("Cancelled. Nothing was accepted.")
    accepted = accept_damage.decide(root, proposal, name)
    if args.json:
        head = {"seq": accepted.seq, "entry_hash": accepted.entry_hash}
        output.print_json({"verdict": accepted.verdict, "file": accepted.archived_path, "head": head})
        return output.SUCCESS
    archived = [f"The old log: {escape(accepted.archived_path)}"] if accepted.archived_path else []
    checkpoint = f"{accepted.seq}:{accepted.entry_hash}"
    output.print_sentences(["Accepted. Changes are allowed again.", *archived, "The new log begins with:", checkpoint])
    return output.SUCCESS


def _confirmation_text(proposal: accept_damage.Proposal, name: str) -> str:
    facts = ["The log was damaged before."]
    if is_damage(proposal.verdict["verdict"]):
        facts = log_verdict.describe(proposal.verdict)[:-1]  # the last sentence advises this command
    log = proposal.log
    archived = f"{log.name} is kept as {proposal.archive_name}, and a" if proposal.archive_name else "A"
    return "\n".join(
        [
            *facts,
            "",
            f"{archived} new log begins in {escape(str(log.parent))}. Changes are allowed again.",
            f"Its first record will say that {escape(name)} accepted this, because: {escape(proposal.reason)}",
        ]
    )
