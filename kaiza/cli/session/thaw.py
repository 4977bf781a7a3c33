"""`kaiza thaw`: a person lifts a freeze, with their word at the terminal."""

import argparse

from kaiza.cli.console import arguments, open_workspace, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.domain.audit.projection import Freeze
from kaiza.render.terminal import escape
from kaiza.store import human_decisions


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Lift a freeze: shows who froze the workspace and why, and asks for your word at the terminal.\n"
        "Exit status: 0 thawed, 1 not thawed or not frozen, 3 no terminal to ask at.",
        "kaiza thaw",
        run=_run_thaw,
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_thaw(args: argparse.Namespace) -> int:
    name = arguments.resolve_name(args.name)
    with open_workspace.open_workspace(args) as ground:
        open_workspace.require_sound_log(ground)
        frozen = ground.audit_state.frozen
        if frozen is None:
            raise output.CommandError("The workspace is not frozen. Nothing has changed.", output.FAILURE)
        if not confirm_by_typing(
            "\n".join([describe_freeze(frozen), f"{escape(name)} lifts this: changes are allowed again."]), "thaw"
        ):
            raise output.CommandError("Nothing was thawed, and nothing has changed.", output.FAILURE)

        def still_this() -> None:
            if ground.audit_state.frozen != frozen:
                raise output.CommandError(
                    "The freeze changed meanwhile. Nothing was thawed; run the command again.", output.FAILURE
                )

        human_decisions.record_decision(ground, "thaw", name, still_this, detail={"reason": frozen.reason})
    if args.json:
        output.print_json({"frozen": False})
    else:
        output.print_lines(["Thawed: changes are allowed again."])
    return output.SUCCESS


def describe_freeze(frozen: Freeze) -> str:
    """Who froze the workspace, when and why."""
    who = f" by {escape(frozen.person)}" if frozen.person else ""
    return f"Frozen since {escape(frozen.at)}{who}: {escape(frozen.reason)}"
