"""`kaiza demo`: a whole governed session in a scratch workspace, with the real server over stdio."""

import argparse
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import orjson

from kaiza.cli.console import arguments, output
from kaiza.render import terminal
from kaiza.server.mcp_client import CallResult, McpClient

PAUSE_SECONDS = 1.4
_INDENT = "      "


class DemoError(Exception):
    """A step of the story went otherwise than it is told."""


class DemoStage:
    """Tells what happens, does it, and insists that it happens."""

    def __init__(self, root: Path, *, fast: bool) -> None:
        self.root = root
        self.session = ""
        """The executor's session, once it has begun."""
        self._pause = 0.0 if fast else PAUSE_SECONDS
        self._shown_seq = 0
        self._step_number = 0

    def start_step(self, sentence: str) -> None:
        """The next step of the story."""
        self._step_number += 1
        time.sleep(self._pause)
        output.print_lines(["", f"{self._step_number:2}. {sentence}"])

    def print_remark(self, *sentences: str) -> None:
        """A remark beside a step."""
        output.print_lines(f"    {sentence}" for sentence in sentences)

    def expect_call(
        self, agent: McpClient, tool: str, arguments: Mapping[str, Any], *, refused: str | None = None
    ) -> CallResult:
        """The agent calls a tool; the answer is what the story says, and its records are shown."""
        told = agent.call_tool(tool, arguments)
        if told.error_code is None:
            self.print_remark(f"-> {tool}: {told.body.get('summary', 'ok')}")
        else:
            self.print_remark(
                f"-> {tool}: refused, error_code {told.error_code}", f"   {told.body.get('human_message', '')}"
            )
        self.show_records()
        if told.error_code != refused:
            self.fail(f"{tool} answered {told.error_code or 'ok'} instead of {refused or 'ok'}")
        return told

    def show_records(self) -> None:
        """The records that were added since they were last shown."""
        for record in self.read_records()[self._shown_seq :]:
            self._shown_seq = record["seq"]
            what = record["tool_name"] or record["kind"]
            outcome = record["error_code"] or record["outcome"] or record["kind"]
            line = f"record {record['seq']:>3}  {record['role'] or '-':<11} {what:<14} {outcome:<22} {_record_paths(record)}"
            output.print_lines([terminal.paint(_INDENT + terminal.escape(line.rstrip()), "dim", colour=_has_colour())])

    def read_records(self) -> list[dict[str, Any]]:
        """The whole record."""
        with suppress(FileNotFoundError):
            log = self.root / "audit" / "audit-log.jsonl"
            return [orjson.loads(line) for line in log.read_bytes().splitlines()]
        return []

    def require(self, *, that: bool, otherwise: str) -> None:
        """What the story says is so."""
        if not that:
            self.fail(otherwise)

    def fail(self, what: str) -> NoReturn:
        """The story went wrong."""
        raise DemoError(what)


def _record_paths(record: Mapping[str, Any]) -> str:
    told = record["arguments"] or {}
    named = [change["path"] for change in record["changes"]] or [told.get("path") or ""]
    return ", ".join(dict.fromkeys(map(str, named)))


def _has_colour() -> bool:
    return os.isatty(1) and "NO_COLOR" not in os.environ


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
