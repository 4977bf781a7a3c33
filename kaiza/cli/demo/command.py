"""`kaiza demo`: a whole governed session in a scratch workspace, with the real server over stdio."""

import argparse
import os
import tempfile
from pathlib import Path

from kaiza.cli.console import arguments, output


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Play a whole governed session in a scratch workspace: an agent on the real server, a person who approves by\n"
        "editing a file, refusals, changes, meddling that is found out, and everything put back.\n"
        "Exit status: 0 all went as told, 1 a step did not.",
        "kaiza demo\nkaiza demo --fast",
        run=_run_demo,
    )
    parser.add_argument("--fast", action="store_true", help="without pauses")
    parser.add_argument(
        "--keep", metavar="DIR", help="play in this new directory and leave it (default: a temporary one)"
    )


def _run_demo(args: argparse.Namespace) -> int:
    from kaiza.cli.demo import story as demo_story  # noqa: PLC0415  the SDK's client takes a while to load; help does not need it
    from kaiza.cli.demo.stage import DemoError, DemoStage  # noqa: PLC0415  as above

    place = Path(args.keep or tempfile.mkdtemp(prefix="kaiza-demo-")).absolute()
    if args.keep and place.exists() and any(place.iterdir()):
        raise output.CommandError(f"{args.keep} is not empty. Name a new directory.", output.USAGE_ERROR)
    os.environ["XDG_STATE_HOME"] = str(place / "state")
    stage = DemoStage(place / "project", fast=args.fast)
    try:
        demo_story.play(stage)
    except DemoError as failed:
        output.print_error(f"The demo went wrong: {failed}. It was played in {place}.")
        return output.FAILURE
    return output.SUCCESS
