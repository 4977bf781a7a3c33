"""`kaiza demo`: a whole session in a scratch workspace, on the real server over stdio."""

import argparse
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from kaiza.cli.console import arguments, output
from kaiza.domain.roles import describe_role
from kaiza.queries.audit_log import read_forward
from kaiza.render import terminal

if TYPE_CHECKING:
    from kaiza.server.mcp_client import CallResult, McpClient

PAUSE_SECONDS = 1.4
_INDENT = "      "


class DemoError(Exception):
    """A step of the demo had another result than the story says."""


class DemoStage:
    """The workspace of a demo: prints each step, makes its calls and checks their results."""

    def __init__(self, root: Path, *, fast: bool) -> None:
        self.root = root
        self.session = ""
        """The executor's session id, once it has begun."""
        self._pause = 0.0 if fast else PAUSE_SECONDS
        self._shown_seq = 0
        self._step_number = 0

    def start_step(self, sentence: str) -> None:
        """Print the next step."""
        self._step_number += 1
        time.sleep(self._pause)
        output.print_lines(["", *_wrap(f"{self._step_number:2}. {sentence}", "    ")])

    def print_remark(self, *sentences: str) -> None:
        """Print remarks below a step."""
        for sentence in sentences:
            output.print_lines(_wrap(f"    {sentence}", "       "))

    def expect_call(
        self, agent: "McpClient", tool: str, arguments: Mapping[str, Any], *, refused: str | None = None
    ) -> "CallResult":
        """Call a tool and show its records; a DemoError unless it succeeds, or is refused with `refused`."""
        result = agent.call_tool(tool, arguments)
        if result.error_code is None:
            self.print_remark(f"-> {tool}: {result.body.get('summary', 'ok')}")
        else:
            self.print_remark(
                f"-> {tool}: refused, error_code {result.error_code}", f"   {result.body.get('human_message', '')}"
            )
        self.show_records()
        if result.error_code != refused:
            self.fail(f"{tool} answered {result.error_code or 'ok'} instead of {refused or 'ok'}")
        return result

    def show_records(self) -> None:
        """Print the records that were appended since the last time."""
        for record in read_forward(str(self.root), self._shown_seq + 1):
            self._shown_seq = record.seq
            name = record.tool_name or record.kind
            outcome = record.error_code or record.outcome or record.kind
            call = f"record {record.seq:>3}  {describe_role(record.role) or '-':<10} {name:<14}"
            paths = [change["path"] for change in record.changes] or [record.arguments.get("path") or ""]
            line = terminal.escape(f"{call} {outcome:<22} {', '.join(dict.fromkeys(map(str, paths)))}".rstrip())
            for part in terminal.wrap([_INDENT + line], output.terminal_width()):
                output.print_lines([terminal.paint(part, "dim", colour=output.has_colour())])

    def require(self, *, that: bool, otherwise: str) -> None:
        """A DemoError with `otherwise` unless the condition holds."""
        if not that:
            self.fail(otherwise)

    def fail(self, reason: str) -> NoReturn:
        """End the story with a DemoError."""
        raise DemoError(reason)


def _wrap(text: str, indent: str) -> Iterator[str]:
    return terminal.wrap_words(text, output.terminal_width(), indent)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Play a whole session in a scratch workspace: an agent on the real server, a person who approves a plan by "
        "editing its file, refusals, changes, an edited log that is detected, an undo, and a review.\n"
        "Exit status: 0 every step went as expected, 1 a step did not.",
        "kaiza demo\nkaiza demo --fast --open",
        run=_run_demo,
    )
    parser.add_argument("--fast", action="store_true", help="without pauses")
    parser.add_argument("--open", action="store_true", help="open the review of the session in the browser")
    parser.add_argument(
        "--keep", metavar="DIR", help="play in this new directory and keep it (default: a temporary directory)"
    )


def _run_demo(args: argparse.Namespace) -> int:
    from kaiza.cli.demo import story  # noqa: PLC0415  imports the SDK's client, which is slow; help does not need it
    from kaiza.server.mcp_client import NoAnswerError  # noqa: PLC0415  as above

    directory = Path(args.keep or tempfile.mkdtemp(prefix="kaiza-demo-")).absolute()
    if args.keep and directory.exists() and any(directory.iterdir()):
        raise output.CommandError(f"{args.keep} is not empty. Name a new directory.", output.USAGE_ERROR)
    os.environ["XDG_STATE_HOME"] = str(directory / "state")
    stage = DemoStage(directory / "project", fast=args.fast)
    try:
        story.play(stage, open_page=args.open)
    except (DemoError, NoAnswerError) as failed:
        output.print_error(f"The demo went wrong: {failed}. Its files are in {directory}")
        return output.FAILURE
    return output.SUCCESS
