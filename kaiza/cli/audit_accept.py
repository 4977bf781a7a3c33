"""`kaiza audit accept`: a person has looked at a damaged record, and begins a new one."""

import argparse
from pathlib import Path
from typing import Any

from kaiza.cli import audit_verify, options, person, place, say
from kaiza.cli.word import ask_word
from kaiza.render import verdict
from kaiza.render.terminal import escape
from kaiza.store import log_file, state
from kaiza.store.accept import Accepted, accept
from kaiza.store.damage import Damage, is_damage

_LONGEST_REASON = 1000


def add(commands: options.Subparsers) -> None:
    """The command."""
    parser = commands.add_parser("accept", help="after damage: keep the old log, begin a new one", allow_abbrev=False)
    options.describe(
        parser,
        "After damage: keep the log aside as audit/audit-log.damaged-<n>.jsonl and begin a new one. Its first record\n"
        "names the old head, verdict and file hash, your reason and you. Asks for your word at the terminal.\n"
        "Exit status: 0 accepted, 1 not accepted or nothing to accept, 3 no terminal to ask at.",
        'kaiza audit accept --reason "a backup was restored; compared with the copy of Monday"',
        run=_accept,
    )
    parser.add_argument("--reason", required=True, type=_reason, help="what you found, and why it is right to go on")
    options.name(parser)
    options.workspace(parser)
    options.as_json(parser)


def _accept(args: argparse.Namespace) -> int:
    root, name = place.workspace(args), person.name(args.name)
    found = audit_verify.judged(root)
    held = Damage(state.directory(root)).holds()
    if held is None and not is_damage(found["verdict"]):
        raise say.Stop(f"There is nothing to accept: {verdict.sentences(found)[0]}", say.NO)
    if not ask_word(_stake(root, found, args.reason, name), "accept"):
        raise say.Stop("Nothing was accepted, and nothing has changed.", say.NO)
    done = accept(root, reason=args.reason, person=name)
    if done is None:
        raise say.Stop("The log was mended meanwhile. Nothing was accepted, and nothing has changed.", say.NO)
    _tell(args, done)
    return say.YES


def _stake(root: str, found: dict[str, Any], reason: str, name: str) -> str:
    """What the person is shown before they give their word."""
    *told, _ = verdict.sentences(found) if is_damage(found["verdict"]) else ["The log was found damaged before.", ""]
    log = log_file.path_of(root)
    kept = f"{log.name} is kept as {_aside(log)}, and a" if log.exists() else "A"
    return "\n".join(
        [
            *told,
            "",
            f"{kept} new log begins in {escape(str(log.parent))}. Changes are allowed again.",
            f"Its first record will say that {escape(name)} accepted this, because: {escape(reason)}",
        ]
    )


def _aside(log: Path) -> str:
    number = 1
    while (log.parent / f"audit-log.damaged-{number}.jsonl").exists():
        number += 1
    return f"audit-log.damaged-{number}.jsonl"


def _tell(args: argparse.Namespace, done: Accepted) -> None:
    head = {"seq": done.record["seq"], "entry_hash": done.record["entry_hash"]}
    if args.json:
        say.document({"verdict": done.verdict.verdict, "file": done.file, "head": head})
        return
    kept = f"The old log is {escape(done.file)}. " if done.file else ""
    say.lines([f"Accepted. {kept}The new one begins at {head['seq']}:{head['entry_hash']}"])


def _reason(text: str) -> str:
    if not text.strip() or len(text) > _LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"say why, in at most {_LONGEST_REASON} characters")
    return text
