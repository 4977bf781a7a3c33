"""`kaiza trust`: show and decide what approves plans here besides a person at the terminal."""

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.cli.trust import merged, signer
from kaiza.queries.trust_summary import summarize_trust
from kaiza.render.plans import render_section
from kaiza.render.terminal import escape, wrap

_APPROVALS = {
    "edit": "by an edit here, kaiza plan approve, a merge or a signature",
    "command": "by kaiza plan approve or a signature",
    "signature": "by a signature",
}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options and subcommands."""
    arguments.describe(
        parser,
        "Show what approves plans here besides a person at this terminal: branches into which plans are merged, and "
        "keys that sign them. The subcommands change it.\n"
        "Exit status: 0 shown, 1 something that is trusted does not count now.",
        "kaiza trust\nkaiza trust merged --ref origin/main",
        run=_run_show,
    )
    arguments.add_workspace(parser)
    arguments.add_json(parser)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="subcommand")
    merged.add(commands)
    signer.add(commands)


def _run_show(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        summary = summarize_trust(workspace.root) | {"approval": workspace.settings.required_approval}
    if args.json:
        output.print_json(summary)
    else:
        output.print_lines(_format_lines(summary))
    is_sound = not summary["problems"] and not any(entry["problem"] for entry in summary["merged"])
    return output.SUCCESS if is_sound else output.FAILURE


def _format_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    width, colour = output.terminal_width(), output.has_colour()
    yield from wrap([f"plans are approved {_APPROVALS[summary['approval']]}"], width)
    yield from render_section("Merged into", map(_format_ref, summary["merged"]), width, colour=colour)
    signers = [line for entry in summary["signers"] for line in _signer_lines(entry)]
    yield from render_section("Signed by", signers, width, colour=colour)
    if summary["project"]:
        line = f"{escape(summary['project']['name'])}  ({escape(summary['project']['source'])})"
        yield from render_section("Project named in signatures", [line], width, colour=colour)
    problems = [escape(problem) for problem in summary["problems"]]
    yield from render_section("Problems", problems, width, colour=colour, style="yellow")
    if not summary["merged"] and not summary["signers"]:
        yield "no branch and no key is trusted"


def _format_ref(entry: Mapping[str, Any]) -> str:
    problem = f": {escape(entry['problem'])}" if entry["problem"] else ""
    return f"{escape(entry['ref'])}  ({escape(entry['source'])}){problem}"


def _signer_lines(entry: Mapping[str, Any]) -> Iterator[str]:
    yield f"{escape(entry['principal'])}  ({escape(entry['source'])})"
    yield f"  {escape(entry['key_type'])} {entry['fingerprint']}"
