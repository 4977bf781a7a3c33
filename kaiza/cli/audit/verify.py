"""`kaiza audit verify` and `kaiza audit head`: is the record whole, and what to keep elsewhere."""

import argparse
import re
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.domain.audit.record import Verdict
from kaiza.render import log_verdict
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.workspace import verdict_output

_HEAD_PATTERN = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")


def add(commands: arguments.Subparsers) -> None:
    """The two commands."""
    verify = commands.add_parser("verify", help="recompute every hash: is the record whole?", allow_abbrev=False)
    arguments.describe(
        verify,
        "Recompute every hash of the record and hold it against the head kept outside the workspace.\n"
        "Exit status: 0 intact, 1 any other verdict, 3 the record could not be read.",
        'kaiza audit verify\nkaiza audit verify --head "$(tail -1 ~/heads.txt)"',
        run=_run_verify,
    )
    verify.add_argument(
        "--head", metavar="SEQ:HASH", type=_parse_head, help="a head kept elsewhere, as `kaiza audit head` prints it"
    )
    head = commands.add_parser("head", help="print SEQ:HASH of the last record, to keep elsewhere", allow_abbrev=False)
    arguments.describe(
        head,
        "Print SEQ:HASH of the last record. Whoever keeps it can show later that nothing up to there was changed.\n"
        "Exit status: 0 printed, 1 nothing is recorded yet.",
        "kaiza audit head >> ~/heads.txt",
        run=_run_head,
    )
    for parser in (verify, head):
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def verdict_document(found: Verdict) -> dict[str, Any]:
    """The verdict as `verify_audit_log` tells it, and whether a head kept elsewhere is in it."""
    summary = f"The record is {found.verdict}: {found.records} records."
    return {**verdict_output(found), "anchored": found.anchored, "summary": summary}


def verify_with_progress(root: str, head: tuple[int, str] | None = None) -> dict[str, Any]:
    """The whole record judged, with progress where that takes a while."""
    with output.Progress("verifying") as progress:
        return verdict_document(verify_log(root, head=head, progress=progress))


def _run_verify(args: argparse.Namespace) -> int:
    found = verify_with_progress(arguments.resolve_root(args), args.head)
    if args.json:
        output.print_json(found)
    else:
        output.print_lines(log_verdict.describe(found))
    return output.SUCCESS if found["verdict"] == "intact" else output.FAILURE


def _run_head(args: argparse.Namespace) -> int:
    last = audit_reader.last_record(arguments.resolve_root(args))
    if last is None:
        raise output.CommandError("Nothing has been recorded yet, so there is no head to keep.", output.FAILURE)
    if args.json:
        output.print_json({"seq": last["seq"], "entry_hash": last["entry_hash"]})
    else:
        output.print_lines([f"{last['seq']}:{last['entry_hash']}"])
    return output.SUCCESS


def _parse_head(text: str) -> tuple[int, str]:
    found = _HEAD_PATTERN.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no head. Write SEQ:HASH as `kaiza audit head` prints it")
    return int(found[1]), found[2]
