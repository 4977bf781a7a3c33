"""`kaiza gc`: clear stored contents of files that no undo and no review of recent changes needs."""

import argparse

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import clear_objects
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import format_count


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Clear the stored contents that let changes be undone and reviewed, except those of sessions with a change in "
        "the last 30 days. What an unfinished change or an approved plan needs stays. Recorded; no confirmation is "
        "needed. Kaiza never does this by itself.\n"
        "Exit status: 0 cleared or nothing to clear, 1 the audit log is damaged, so nothing was cleared, 3 could not "
        "determine what is needed.",
        "kaiza gc --dry-run\nkaiza gc --keep 90d",
        run=_run_gc,
    )
    parser.add_argument(
        "--keep",
        metavar="TIME",
        type=_parse_days,
        help="keep what changes of this time need: 30d, 8w (default: `objects.keep` in kaiza.toml, else 30d)",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be cleared")
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_gc(args: argparse.Namespace) -> int:
    person = find_person_name(args.name)
    with open_workspace(args) as workspace:
        with output.Progress("verifying") as progress:
            proposal = clear_objects.propose(workspace, args.keep, progress)
        cleared = proposal.found if args.dry_run else clear_objects.decide(workspace, proposal, person).cleared
    days = proposal.keep_days
    if args.json:
        counts = {"objects": len(cleared.removable), "bytes": cleared.size, "of": cleared.total}
        output.print_json({**counts, "keep_days": days, "dry_run": args.dry_run})
    else:
        what = f"{format_count(len(cleared.removable), 'object')} of {cleared.total:,}, {cleared.size:,} bytes"
        verb = "Would clear" if args.dry_run else "Cleared"
        kept = f"{verb} {what}. What changes of the last {format_count(days, 'day')} need is kept."
        output.print_sentences([kept if cleared.removable else f"Nothing to clear: {cleared.total:,} objects kept."])
    return output.SUCCESS


def _parse_days(text: str) -> int:
    try:
        return clear_objects.count_days(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid time. Write days or weeks: 30d, 8w") from None
