"""`kaiza audit verify` and `kaiza audit head`: is the record whole, and what to keep elsewhere."""

import argparse
import re
from typing import Any

from kaiza.cli import log, options, place, say
from kaiza.domain.record import Verdict
from kaiza.render import verdict
from kaiza.store.ground import verdict_json
from kaiza.store.verify import verify

_HEAD = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")


def add(commands: options.Subparsers) -> None:
    """The two commands."""
    verify = commands.add_parser("verify", help="recompute every hash: is the record whole?", allow_abbrev=False)
    options.describe(
        verify,
        "Recompute every hash of the record and hold it against the head kept outside the workspace.\n"
        "Exit status: 0 intact, 1 any other verdict, 3 the record could not be read.",
        'kaiza audit verify\nkaiza audit verify --head "$(tail -1 ~/heads.txt)"',
        run=_verify,
    )
    verify.add_argument(
        "--head", metavar="SEQ:HASH", type=_head, help="a head kept elsewhere, as `kaiza audit head` prints it"
    )
    head = commands.add_parser("head", help="print SEQ:HASH of the last record, to keep elsewhere", allow_abbrev=False)
    options.describe(
        head,
        "Print SEQ:HASH of the last record. Whoever keeps it can show later that nothing up to there was changed.\n"
        "Exit status: 0 printed, 1 nothing is recorded yet.",
        "kaiza audit head >> ~/heads.txt",
        run=_head_of,
    )
    for parser in (verify, head):
        options.workspace(parser)
        options.as_json(parser)


def told(found: Verdict) -> dict[str, Any]:
    """The verdict as `verify_audit_log` tells it, and whether a head kept elsewhere is in it."""
    summary = f"The record is {found.verdict}: {found.records} records."
    return {**verdict_json(found), "anchored": found.anchored, "summary": summary}


def judged(root: str, head: tuple[int, str] | None = None) -> dict[str, Any]:
    """The whole record judged, with progress where that takes a while."""
    with say.Progress("verifying") as progress:
        return told(verify(root, head=head, progress=progress))


def _verify(args: argparse.Namespace) -> int:
    found = judged(place.workspace(args), args.head)
    if args.json:
        say.document(found)
    else:
        say.lines(verdict.sentences(found))
    return say.YES if found["verdict"] == "intact" else say.NO


def _head_of(args: argparse.Namespace) -> int:
    last = log.last(place.workspace(args))
    if last is None:
        raise say.Stop("Nothing has been recorded yet, so there is no head to keep.", say.NO)
    if args.json:
        say.document({"seq": last["seq"], "entry_hash": last["entry_hash"]})
    else:
        say.lines([f"{last['seq']}:{last['entry_hash']}"])
    return say.YES


def _head(text: str) -> tuple[int, str]:
    found = _HEAD.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no head. Write SEQ:HASH as `kaiza audit head` prints it")
    return int(found[1]), found[2]
