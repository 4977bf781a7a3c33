"""`kaiza freeze`: stop every change, in every session of every process, until a person thaws the workspace."""

import argparse
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_root, resolve_all_roots
from kaiza.decisions import freeze
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Stop every change in every session of the workspace at once, until `kaiza thaw`. Reads still work. Recorded "
        "with your reason, which is added to those of earlier freezes; no confirmation is needed.\n"
        "Exit status: 0 frozen.",
        'kaiza freeze "release in progress"',
        run=_run_freeze,
    )
    parser.add_argument(
        "reason", metavar="REASON", type=arguments.parse_reason, help="reason, shown to people but not to agents"
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _freeze(args: argparse.Namespace, root: str) -> dict[str, Any]:
    # No settings and no state: neither a broken kaiza.toml nor a long log may stop a person from freezing.
    with open_root(root, uses_settings=False, needs_state=False) as workspace:
        proposal = freeze.propose(workspace, args.reason)
        frozen = freeze.decide(workspace, proposal, find_person_name(args.name))
    return {
        "frozen": True,
        "workspace": root,
        "reason": args.reason,
        "reasons": frozen.reasons,
        "at": frozen.at,
        "seq": frozen.seq,
    }


def _run_freeze(args: argparse.Namespace) -> int:
    frozen = [_freeze(args, root) for root in resolve_all_roots(args)]
    if args.json:
        output.print_json(frozen[0])
    else:
        output.print_sentences(["Frozen. All changes are refused until a person runs `kaiza thaw`."])
        if any(len(each["reasons"]) > 1 for each in frozen):
            output.print_sentences(["It was frozen before; your reason is added. `kaiza status` shows all of them."])
        if len(frozen) > 1:
            output.print_sentences([f"Both: {escape(' and '.join(each['workspace'] for each in frozen))}"])
    return output.SUCCESS
