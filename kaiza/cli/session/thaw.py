"""`kaiza thaw`: lift a freeze, after a confirmation at the terminal."""

import argparse
from collections.abc import Iterator

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import open_workspace, require_sound_log, resolve_name
from kaiza.domain.audit.projection import Freeze
from kaiza.render.terminal import escape, format_time
from kaiza.store import human_decisions


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
    name = resolve_name(args.name)
    with open_workspace(args) as workspace:
        require_sound_log(workspace)
        freeze = workspace.audit_state.frozen
        if freeze is None:
            raise output.CommandError("The workspace is not frozen. Nothing was changed.", output.FAILURE)
        facts = [*describe_freeze(freeze), f"{escape(name)} lifts this: changes are allowed again."]
        if not confirm_by_typing("\n".join(facts), "thaw"):
            raise output.CommandError("Cancelled. The workspace is still frozen.", output.FAILURE)

        def require_same_freeze() -> None:
            """Checked under the log's lock: a later freeze has a reason that the person was not shown."""
            if workspace.audit_state.frozen != freeze:
                raise output.CommandError(
                    "The freeze changed in the meantime. Nothing was thawed. Run the command again.", output.FAILURE
                )

        detail = {"reason": freeze.reason, "more_reasons": [one.reason for one in freeze.more]}
        human_decisions.record_decision(workspace, "thaw", name, require_same_freeze, detail=detail)
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
