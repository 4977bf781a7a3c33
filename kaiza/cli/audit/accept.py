"""`kaiza audit accept`: a person has looked at a damaged record, and begins a new one."""

import argparse
from pathlib import Path
from typing import Any

from kaiza.cli.audit import verify
from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.render import log_verdict
from kaiza.render.terminal import escape
from kaiza.store.audit import log_file
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification.accept import AcceptedDamage, accept_damage
from kaiza.store.disk import state_dir

_MAX_REASON = 1000


def add(commands: arguments.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("accept", help="after damage: keep the old log, begin a new one", allow_abbrev=False)
    arguments.describe(
        parser,
        "After damage: keep the log aside as audit/audit-log.damaged-<n>.jsonl and begin a new one. Its first record\n"
        "names the old head, verdict and file hash, your reason and you. Asks for your word at the terminal.\n"
        "Exit status: 0 accepted, 1 not accepted or nothing to accept, 3 no terminal to ask at.",
        'kaiza audit accept --reason "a backup was restored; compared with the copy of Monday"',
        run=_run_accept,
    )
    parser.add_argument(
        "--reason", required=True, type=_parse_reason, help="what you found, and why it is right to go on"
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_accept(args: argparse.Namespace) -> int:
    root, name = arguments.resolve_root(args), arguments.resolve_name(args.name)
    found = verify.verify_with_progress(root)
    held = DamageMark(state_dir.path_of(root)).read()
    if held is None and not is_damage(found["verdict"]):
        raise output.CommandError(f"There is nothing to accept: {log_verdict.describe(found)[0]}", output.FAILURE)
    if not confirm_by_typing(_confirmation_text(root, found, args.reason, name), "accept"):
        raise output.CommandError("Nothing was accepted, and nothing has changed.", output.FAILURE)
    done = accept_damage(root, reason=args.reason, person=name)
    if done is None:
        raise output.CommandError(
            "The log was mended meanwhile. Nothing was accepted, and nothing has changed.", output.FAILURE
        )
    _print_result(args, done)
    return output.SUCCESS


def _confirmation_text(root: str, found: dict[str, Any], reason: str, name: str) -> str:
    """What the person is shown before they give their word."""
    *told, _ = log_verdict.describe(found) if is_damage(found["verdict"]) else ["The log was found damaged before.", ""]
    log = log_file.path_of(root)
    kept = f"{log.name} is kept as {_archive_name(log)}, and a" if log.exists() else "A"
    return "\n".join(
        [
            *told,
            "",
            f"{kept} new log begins in {escape(str(log.parent))}. Changes are allowed again.",
            f"Its first record will say that {escape(name)} accepted this, because: {escape(reason)}",
        ]
    )


def _archive_name(log: Path) -> str:
    number = 1
    while (log.parent / f"audit-log.damaged-{number}.jsonl").exists():
        number += 1
    return f"audit-log.damaged-{number}.jsonl"


def _print_result(args: argparse.Namespace, done: AcceptedDamage) -> None:
    head = {"seq": done.record["seq"], "entry_hash": done.record["entry_hash"]}
    if args.json:
        output.print_json({"verdict": done.verdict.verdict, "file": done.archived_path, "head": head})
        return
    kept = f"The old log is {escape(done.archived_path)}. " if done.archived_path else ""
    output.print_lines([f"Accepted. {kept}The new one begins at {head['seq']}:{head['entry_hash']}"])


def _parse_reason(text: str) -> str:
    if not text.strip() or len(text) > _MAX_REASON:
        raise argparse.ArgumentTypeError(f"say why, in at most {_MAX_REASON} characters")
    return text
