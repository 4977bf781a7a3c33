"""`kaiza serve`: hand a workspace to an MCP client. Starting changes nothing on disk, and is quick.

A plain command line is read here; argparse, which costs a start milliseconds, is only asked about help and mistakes.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from kaiza.domain import envelope, errors
from kaiza.domain.caps import Caps

if TYPE_CHECKING:
    import argparse

ROLES = ("ANTIGRAVITY", "WINDSURF")
CONTENTS = ("full", "summary")
_LONGEST_MS = 600_000
_FAILED = 3


@dataclass(frozen=True, slots=True)
class Options:
    """What the operator said."""

    workspaces: tuple[str, ...] = ()
    role: str | None = None
    content: str = "full"
    tool_timeout_ms: int | None = None
    scan_guard_ms: int | None = None

    def caps(self) -> Caps:
        """The caps with the operator's limits in them."""
        caps = Caps()
        if self.tool_timeout_ms is not None:
            caps = replace(caps, tool_timeout_ms=self.tool_timeout_ms)
        if self.scan_guard_ms is not None:
            caps = replace(caps, find_guard_ms=self.scan_guard_ms, search_guard_ms=self.scan_guard_ms)
        return caps


def start(argv: Sequence[str]) -> int:
    """Serve until the client goes; the exit status."""
    try:
        return _serve(plainly(argv) or carefully(argv))
    except errors.SystemError as error:
        import orjson  # noqa: PLC0415  only a failing start needs it here

        sys.stderr.write(orjson.dumps(envelope.of_error(error, _now())).decode() + "\n")
        return _FAILED


def plainly(argv: Sequence[str]) -> Options | None:
    """The options where each is spelled out in full and sound; else None, and argparse says what is wrong."""
    if len(argv) % 2:
        return None
    workspaces: list[str] = []
    told: dict[str, str] = {}
    for name, value in zip(argv[::2], argv[1::2], strict=True):
        if name not in _SOUND or value.startswith("-") or not _SOUND[name](value):
            return None
        if name == "--workspace":
            workspaces.append(value)
        told[name] = value
    timeout, guard = told.get("--tool-timeout-ms"), told.get("--scan-guard-ms")
    return Options(
        tuple(workspaces),
        told.get("--role"),
        told.get("--content", "full"),
        int(timeout) if timeout else None,
        int(guard) if guard else None,
    )


def carefully(argv: Sequence[str]) -> Options:
    """The options as argparse reads them; it answers help and mistakes itself, and ends the program."""
    import argparse  # noqa: PLC0415  see the top

    parser = argparse.ArgumentParser(prog="kaiza serve", allow_abbrev=False)
    add(parser)
    args = parser.parse_args(argv)
    return Options(tuple(args.workspace), args.role, args.content, args.tool_timeout_ms, args.scan_guard_ms)


def add(parser: "argparse.ArgumentParser") -> None:
    """The options for people."""
    from kaiza.cli import options  # noqa: PLC0415  see the top

    options.describe(
        parser,
        "Serve workspaces to an MCP client over standard input and output. The client starts this; a person rarely does.\n"
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
    parser.add_argument("--tool-timeout-ms", metavar="MS", type=_milliseconds, help="how long a call may take (30000)")
    parser.add_argument(
        "--scan-guard-ms",
        metavar="MS",
        type=_milliseconds,
        help="after how long a search answers with what it has (find_files 10000, search_text 15000)",
    )


def _serve(told: Options) -> int:
    from kaiza.app import App  # noqa: PLC0415  help and mistakes need no app
    from kaiza.server import stdio  # noqa: PLC0415  as above
    from kaiza.store import roots  # noqa: PLC0415  as above

    app = App(roots.settle(told.workspaces, dict(os.environ)), bound_role=told.role, caps=told.caps())
    return stdio.serve(app, content=told.content)


def _milliseconds(text: str) -> int:
    if not _is_milliseconds(text):
        raise ValueError(text)
    return int(text)


_milliseconds.__name__ = f"milliseconds (1 to {_LONGEST_MS})"


def _is_milliseconds(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(_LONGEST_MS)) and 1 <= int(text) <= _LONGEST_MS


_SOUND = {
    "--workspace": lambda _text: True,
    "--role": ROLES.__contains__,
    "--content": CONTENTS.__contains__,
    "--tool-timeout-ms": _is_milliseconds,
    "--scan-guard-ms": _is_milliseconds,
}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
