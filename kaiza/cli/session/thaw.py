"""`kaiza thaw`: lift a freeze, after a confirmation at the terminal."""

import argparse
from collections.abc import Iterator

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import thaw
from kaiza.domain.audit.projection import Freeze
from kaiza.domain.refusal import RefusedError
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import escape, format_time


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Lift a freeze. Shows who froze the workspace and why, and asks you to confirm at the terminal.\n"
        "Exit status: 0 thawed, 1 not thawed or not frozen, 3 no terminal to ask at.",
        "kaiza thaw",
        run=_run_thaw,
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_thaw(args: argparse.Namespace) -> int:
    name = find_person_name(args.name)
    with open_workspace(args) as workspace:
        proposal = thaw.propose(workspace)
        facts = [*describe_freeze(proposal.freeze), f"{escape(name)} lifts this: changes are allowed again."]
        if not confirm("\n".join(facts), "Thaw?", word="thaw" if workspace.settings.confirm_by_word else None):
            raise RefusedError("Cancelled. The workspace is still frozen.")
        thaw.decide(workspace, proposal, name)
    if args.json:
        output.print_json({"frozen": False})
    else:
        output.print_lines(["Thawed. Changes are allowed again."])
    return output.SUCCESS


def describe_freeze(freeze: Freeze) -> Iterator[str]:
    """Who froze the workspace, when and why; one line for each reason."""
    for number, one in enumerate(freeze.each):
        person = f" by {escape(one.person)}" if one.person else ""
        since = "and again" if number else "Frozen since"
        yield f"{since} {format_time(one.at)}{person}: {escape(one.reason)}"
