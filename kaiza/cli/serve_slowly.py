"""What `kaiza serve` needs only now and then: help, mistakes, several workspaces, settings, and a start that fails."""

import argparse
import os
from collections.abc import Sequence
from datetime import UTC, datetime

import orjson

from kaiza.cli import options
from kaiza.cli.serve import CONTENTS, LONGEST_MS, ROLES, Options, is_milliseconds
from kaiza.domain import envelope, errors
from kaiza.store.ground import read_settings
from kaiza.store.roots import keep_state_outside, settle
from kaiza.store.workspace import Workspace


def carefully(argv: Sequence[str]) -> Options:
    """The options as argparse reads them; it answers help and mistakes itself, and ends the program."""
    parser = argparse.ArgumentParser(prog="kaiza serve", allow_abbrev=False)
    _add(parser)
    args = parser.parse_args(argv)
    return Options(
        tuple(args.workspace), args.role, args.content, args.tool_timeout_ms, args.scan_guard_ms, args.allow_checks
    )


def roots(named: Sequence[str]) -> tuple[str, ...]:
    """The real paths of the workspaces; BOOTSTRAP_FAILURE where one is none, or its settings or place are unsound."""
    found = settle(named, dict(os.environ))
    keep_state_outside(found)
    for root in found:
        with Workspace(root) as workspace:
            read_settings(workspace)
    return found


def envelope_of(failure: errors.SystemError) -> str:
    """The envelope of a start that failed, as one line of JSON."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return orjson.dumps(envelope.of_error(failure, at)).decode()


def _add(parser: argparse.ArgumentParser) -> None:
    options.describe(
        parser,
        "Serve workspaces to an MCP client over standard input and output. The client starts this, a person rarely.\n"
        "Exit status: 0 the client is done, 3 the server could not start (why is on standard error, as JSON).",
        "kaiza serve --workspace ~/project --role WINDSURF",
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        action="append",
        default=[],
        help="a workspace; may be given several times (default: $CLAUDE_PROJECT_DIR, else the current directory)",
    )
    parser.add_argument("--role", choices=ROLES, help="serve only this role (default: the session says which)")
    parser.add_argument(
        "--content", choices=CONTENTS, default="full", help="what a result's text holds: its whole JSON, or a summary"
    )
    parser.add_argument(
        "--allow-checks",
        action="store_true",
        help="let agents run the checks that an approved plan names; they run with your rights (default: no)",
    )
    parser.add_argument("--tool-timeout-ms", metavar="MS", type=_milliseconds, help="how long a call may take (30000)")
    parser.add_argument(
        "--scan-guard-ms",
        metavar="MS",
        type=_milliseconds,
        help="after how long a search answers with what it has (find_files 10000, search_text 15000)",
    )


def _milliseconds(text: str) -> int:
    if not is_milliseconds(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no time limit. Write milliseconds, 1 to {LONGEST_MS}")
    return int(text)
