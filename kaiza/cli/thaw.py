"""`kaiza thaw`: a person lifts a freeze, with their word at the terminal."""

import argparse

from kaiza.cli import options, person, say, standing
from kaiza.cli.word import ask_word
from kaiza.domain.session import Freeze
from kaiza.render.terminal import escape
from kaiza.store import persons_word


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Lift a freeze: shows who froze the workspace and why, and asks for your word at the terminal.\n"
        "Exit status: 0 thawed, 1 not thawed or not frozen, 3 no terminal to ask at.",
        "kaiza thaw",
        run=_thaw,
    )
    options.name(parser)
    options.workspace(parser)
    options.as_json(parser)


def _thaw(args: argparse.Namespace) -> int:
    name = person.name(args.name)
    with standing.ground(args) as ground:
        standing.insist_on_a_sound_record(ground)
        frozen = ground.facts.frozen
        if frozen is None:
            raise say.Stop("The workspace is not frozen. Nothing has changed.", say.NO)
        if not ask_word("\n".join([told(frozen), f"{escape(name)} lifts this: changes are allowed again."]), "thaw"):
            raise say.Stop("Nothing was thawed, and nothing has changed.", say.NO)

        def still_this() -> None:
            if ground.facts.frozen != frozen:
                raise say.Stop("The freeze changed meanwhile. Nothing was thawed; run the command again.", say.NO)

        persons_word.give(ground, "thaw", name, still_this, detail={"reason": frozen.reason})
    if args.json:
        say.document({"frozen": False})
    else:
        say.lines(["Thawed: changes are allowed again."])
    return say.YES


def told(frozen: Freeze) -> str:
    """Who froze the workspace, when and why."""
    who = f" by {escape(frozen.person)}" if frozen.person else ""
    return f"Frozen since {escape(frozen.at)}{who}: {escape(frozen.reason)}"
