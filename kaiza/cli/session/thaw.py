"""`kaiza thaw`: a person lifts a freeze, with their word at the terminal."""

import argparse

from kaiza.cli.console import arguments as options
from kaiza.cli.console import open_workspace as standing
from kaiza.cli.console import operator as person
from kaiza.cli.console import output as say
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.domain.audit.projection import Freeze
from kaiza.render.terminal import escape
from kaiza.store import human_decisions as persons_word


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Lift a freeze: shows who froze the workspace and why, and asks for your word at the terminal.\n"
        "Exit status: 0 thawed, 1 not thawed or not frozen, 3 no terminal to ask at.",
        "kaiza thaw",
        run=_run_thaw,
    )
    options.add_operator(parser)
    options.add_workspace(parser)
    options.add_json(parser)


def _run_thaw(args: argparse.Namespace) -> int:
    name = person.resolve_name(args.name)
    with standing.open_workspace(args) as ground:
        standing.require_sound_log(ground)
        frozen = ground.audit_state.frozen
        if frozen is None:
            raise say.CommandError("The workspace is not frozen. Nothing has changed.", say.FAILURE)
        if not confirm_by_typing(
            "\n".join([describe_freeze(frozen), f"{escape(name)} lifts this: changes are allowed again."]), "thaw"
        ):
            raise say.CommandError("Nothing was thawed, and nothing has changed.", say.FAILURE)

        def still_this() -> None:
            if ground.audit_state.frozen != frozen:
                raise say.CommandError(
                    "The freeze changed meanwhile. Nothing was thawed; run the command again.", say.FAILURE
                )

        persons_word.record_decision(ground, "thaw", name, still_this, detail={"reason": frozen.reason})
    if args.json:
        say.print_json({"frozen": False})
    else:
        say.print_lines(["Thawed: changes are allowed again."])
    return say.SUCCESS


def describe_freeze(frozen: Freeze) -> str:
    """Who froze the workspace, when and why."""
    who = f" by {escape(frozen.person)}" if frozen.person else ""
    return f"Frozen since {escape(frozen.at)}{who}: {escape(frozen.reason)}"
