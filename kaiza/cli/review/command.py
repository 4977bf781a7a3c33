"""`kaiza review`: one page on what happened, what changed, and what to look at."""

import argparse
import errno
import os
import sys
import webbrowser
from pathlib import Path

from kaiza.cli.console import arguments, output
from kaiza.cli.console.interrupted import name_interrupted
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.review import selection
from kaiza.domain.refusal import RefusedError
from kaiza.domain.review.report import ReviewReport
from kaiza.queries.review_records import TooManyRecordsError
from kaiza.queries.review_report import review, save_page
from kaiza.queries.workspaces import Workspace, trusted_path
from kaiza.render import terminal
from kaiza.render.html.page import render_review
from kaiza.render.review_markdown import render_markdown
from kaiza.render.review_sarif import encode_sarif

_USAGE = """\
%(prog)s [--last] [options]
       %(prog)s --session ID [options]
       %(prog)s --plan ID [options]
       %(prog)s --request ID [options]
       %(prog)s [--since TIME] [--until TIME] [options]"""


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Show what happened in a session, or under a plan: what to look at first, what changed and which call wrote "
        "each line, what changed without Kaiza, and what was refused. Writes one HTML file that needs no network, to "
        ".kaiza/reviews/, and prints its path; or prints Markdown, JSON or SARIF.\n"
        "Exit status: 0 written, 1 no such session, plan or call, or the audit log is damaged; it is reviewed "
        "nevertheless, and the page says so first.",
        "kaiza review\nkaiza review --session 3f2b --open\nkaiza review --since 2h --markdown",
        run=_run_review,
    )
    parser.usage = _USAGE
    selection.add_arguments(parser)
    selection.add_span(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--output", metavar="FILE", help="write the page to this file instead")
    form.add_argument("--open", action="store_true", help="open the page in the browser")
    form.add_argument("--markdown", action="store_true", help="print Markdown")
    form.add_argument("--json", action="store_true", help="print JSON; schemas/review.json describes it")
    form.add_argument("--sarif", action="store_true", help="print SARIF 2.1.0: only what should be looked at")
    arguments.add_workspace(parser)


def _run_review(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        name_interrupted(workspace)
        chosen = selection.resolve_selection(args, workspace.root)
        try:
            report = review(workspace, chosen)
        except TooManyRecordsError:
            raise RefusedError(selection.TOO_MANY) from None
        selection.require_records(chosen, report.verdict.counts.records)
        if args.markdown:
            output.print_lines(render_markdown(report))
        elif args.json or args.sarif:
            output.print_json(report.as_json() if args.json else encode_sarif(report))
        else:
            _write_page(args, workspace, report)
        damage = workspace.damage()
    if damage is None:
        return output.SUCCESS
    output.print_error(f"The audit log is damaged ({damage}). Run `kaiza audit verify` to see where.")
    return output.FAILURE


def _write_page(args: argparse.Namespace, workspace: Workspace, report: ReviewReport) -> None:
    content = render_review(report).encode()
    if args.output is not None:
        path = Path(args.output)
        _write_output(path, content)
    else:
        chosen = report.selection
        span = "_".join(filter(None, ["time", chosen.since, chosen.until])).replace(":", "-")
        path = save_page(workspace, span if chosen.kind == "time" else chosen.id or chosen.kind, content)
    output.print_lines([terminal.escape(str(path)) if sys.stdout.isatty() else str(path)])
    if args.open:
        # By no program of the workspace, which an agent may have written.
        os.environ["PATH"] = os.pathsep.join(trusted_path(workspace.root))
        webbrowser.open(path.resolve().as_uri())


def _write_output(path: Path, content: bytes) -> None:
    """Write the page to a file that a person named, but not through a link that the workspace may have brought."""
    is_stream = str(path).startswith(("/dev/", "/proc/"))  # such as /dev/stdout
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | (0 if is_stream else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise output.CommandError(
            f"{terminal.escape(str(path))} is a symbolic link. Nothing was written. Name another file with --output.",
            output.FAILURE,
        ) from error
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
