"""`kaiza audit verify` and `kaiza audit head`: verify the log, and print a checkpoint to save elsewhere."""

import argparse
import re
from typing import Any

from kaiza.cli.console import arguments, audit_reader, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.domain.refusal import RefusedError
from kaiza.queries import audit_log
from kaiza.render import log_verdict

_CHECKPOINT_PATTERN = re.compile(r"([1-9][0-9]{0,15}):([0-9a-f]{64})")


def add(commands: arguments.Subparsers) -> None:
    """Add the two subcommands."""
    verify = commands.add_parser("verify", help="recompute every hash of the log")
    arguments.describe(
        verify,
        "Recompute every hash of the audit log and compare it with the checkpoint kept outside the workspace.\n"
        "Exit status: 0 intact, 1 any other verdict, 3 the log could not be read.",
        'kaiza audit verify\nkaiza audit verify --head "$(tail -1 ~/heads.txt)"',
        run=_run_verify,
    )
    verify.add_argument(
        "--head",
        metavar="SEQ:HASH",
        type=_parse_checkpoint,
        help="a checkpoint saved elsewhere, as `kaiza audit head` prints it",
    )
    head = commands.add_parser("head", help="print a checkpoint to save elsewhere")
    arguments.describe(
        head,
        "Print SEQ:HASH of the last record. With this checkpoint, `kaiza audit verify --head` can show later that no "
        "record up to it was changed.\n"
        "Exit status: 0 printed, 1 the log is empty.",
        "kaiza audit head >> ~/heads.txt",
        run=_run_head,
    )
    for parser in (verify, head):
        arguments.add_workspace(parser)
        arguments.add_json(parser)


def verify_with_progress(root: str, checkpoint: tuple[int, str] | None = None) -> dict[str, Any]:
    """Verify the whole log, with progress on a terminal."""
    with output.Progress("verifying") as progress:
        return audit_log.verify(root, progress, checkpoint)


def _run_verify(args: argparse.Namespace) -> int:
    root, states = resolve_root(args), 0
    verdict = verify_with_progress(root, args.head)
    if verdict["verdict"] == "intact" and verdict["records"]:
        # A state directory has only the checkpoints of its own sessions.
        with open_workspace(args, uses_settings=False) as workspace:
            states = len(workspace.audit_state.states)
    if args.json:
        output.print_json({**verdict, "states": states} if states > 1 else verdict)
    else:
        output.print_sentences(log_verdict.describe(verdict))
        if (note := audit_log.describe_standing(root)) is not None:
            output.print_error(f"Note: {note}")
        if states > 1:
            output.print_error(f"Note: {log_verdict.describe_states(states)}.")
    return output.SUCCESS if verdict["verdict"] == "intact" else output.FAILURE


def _run_head(args: argparse.Namespace) -> int:
    last = audit_reader.last_record(resolve_root(args))
    if last is None:
        raise RefusedError("The audit log is empty, so there is no checkpoint to save.")
    if args.json:
        output.print_json({"seq": last.seq, "entry_hash": last.entry_hash})
    else:
        output.print_lines([f"{last.seq}:{last.entry_hash}"])
    return output.SUCCESS


def _parse_checkpoint(text: str) -> tuple[int, str]:
    match = _CHECKPOINT_PATTERN.fullmatch(text)
    if not match:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid checkpoint. Write SEQ:HASH as `kaiza audit head` prints it"
        )
    return int(match[1]), match[2]
