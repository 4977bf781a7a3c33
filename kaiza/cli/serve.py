"""`kaiza serve`: serve workspaces to an MCP client over standard input and output. Starting writes nothing.

Only what the opening answers need is imported here; the rest is imported in the functions that use it, most of it by
the background thread that builds the application.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import kaiza
from kaiza.cli.console import arguments

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.domain import errors

ROLES = ("ANTIGRAVITY", "WINDSURF")
CONTENT_MODES = ("full", "summary")
MAX_MS = 600_000
_START_FAILED = 3


class ServeOptions(NamedTuple):
    """The options of the command line."""

    workspaces: tuple[str, ...] = ()
    role: str | None = None
    content: str = "full"
    tool_timeout_ms: int | None = None
    scan_guard_ms: int | None = None
    allow_checks: bool = False

    @property
    def allowed_extras(self) -> tuple[str, ...]:
        """What the operator allows beyond what is always offered."""
        return ("allow_checks",) if self.allow_checks else ()


def run(argv: Sequence[str]) -> int:
    """Serve until the client disconnects; the exit status."""
    chosen = parse_options(argv)
    try:
        return _run_server(chosen, _find_roots(chosen.workspaces))
    except _system_error() as failure:
        return _report_failure(failure)


def parse_options(argv: Sequence[str]) -> ServeOptions:
    """The options; `--help` and a wrong command line end the process."""
    parser = argparse.ArgumentParser(prog="kaiza serve", allow_abbrev=False)
    add(parser)
    args = parser.parse_args(argv)
    return ServeOptions(
        tuple(args.workspace), args.role, args.content, args.tool_timeout_ms, args.scan_guard_ms, args.allow_checks
    )


def add(parser: argparse.ArgumentParser) -> None:
    """The command's description and options."""
    arguments.describe(
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
        "--content",
        choices=CONTENT_MODES,
        default="full",
        help="what a result's text holds: its whole JSON, or a summary",
    )
    parser.add_argument(
        "--allow-checks",
        action="store_true",
        help="let agents run the checks that an approved plan names; they run with your rights (default: no)",
    )
    parser.add_argument(
        "--tool-timeout-ms", metavar="MS", type=_parse_milliseconds, help="how long a call may take (30000)"
    )
    parser.add_argument(
        "--scan-guard-ms",
        metavar="MS",
        type=_parse_milliseconds,
        help="after how long a search answers with what it has (find_files 10000, search_text 15000)",
    )


def _parse_milliseconds(text: str) -> int:
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_MS))
    if not digits or not 1 <= int(text) <= MAX_MS:
        raise argparse.ArgumentTypeError(f"{text!r} is no time limit. Write milliseconds, 1 to {MAX_MS}")
    return int(text)


def _run_server(chosen: ServeOptions, roots: tuple[str, ...]) -> int:
    from kaiza.domain.server_instructions import INSTRUCTIONS  # noqa: PLC0415  help and mistakes need no server
    from kaiza.server.serve import serve  # noqa: PLC0415  as above
    from kaiza.wire.dialects.mcp import ServerDescription  # noqa: PLC0415  as above

    opening = ServerDescription(
        kaiza.__version__, INSTRUCTIONS, partial(_list_tools, chosen.role, chosen.allowed_extras)
    )
    return serve(partial(_build_app, chosen, roots), opening, summary=chosen.content == "summary")


def _list_tools(role: str | None, allowed: tuple[str, ...]) -> list[Mapping[str, Any]]:
    from kaiza.store.config import schema_registry as schemas  # noqa: PLC0415  see the top

    return schemas.list_items(schemas.SchemaRegistry(), role, allowed)


def _build_app(chosen: ServeOptions, roots: tuple[str, ...]) -> "App":
    from kaiza.app import App  # noqa: PLC0415  see the top
    from kaiza.domain.caps import Caps  # noqa: PLC0415  as above
    from kaiza.store.disk import file_lock as lock  # noqa: PLC0415  as above

    guard = chosen.scan_guard_ms
    limits = {"tool_timeout_ms": chosen.tool_timeout_ms, "find_guard_ms": guard, "search_guard_ms": guard}
    caps = Caps(**{name: limit for name, limit in limits.items() if limit is not None})
    app = App(roots, bound_role=chosen.role, caps=caps, allowed=chosen.allowed_extras)
    lock.preload()
    return app


def _find_roots(named: Sequence[str]) -> tuple[str, ...]:
    """The real paths of the workspaces; BOOTSTRAP_FAILURE where one, its settings or its place are unsound.

    A single directory without settings that cannot hold the state directory needs none of those checks.
    """
    named = named or (os.environ.get("CLAUDE_PROJECT_DIR") or ".",)
    first = os.path.realpath(named[0])
    return (first,) if len(named) == 1 and _has_no_settings(first) else _check_roots(named)


def _check_roots(named: Sequence[str]) -> tuple[str, ...]:
    from kaiza.store.config.roots import require_state_outside, resolve_roots  # noqa: PLC0415  as above
    from kaiza.store.files.confined_root import ConfinedRoot  # noqa: PLC0415  as above
    from kaiza.store.workspace import read_settings  # noqa: PLC0415  see the top

    found = resolve_roots(named, dict(os.environ))
    require_state_outside(found)
    for root in found:
        with ConfinedRoot(root) as workspace:
            read_settings(workspace)
    return found


def _has_no_settings(root: str) -> bool:
    """Whether a directory clearly has no settings and clearly holds no state of Kaiza's; in doubt, it is not."""
    try:
        settings = any(not name.isascii() or name.lower().startswith("kaiza.toml") for name in os.listdir(root))  # noqa: PTH208  see the top
        return not settings and not _can_hold_state(root, "XDG_STATE_HOME", ".local/state")
    except OSError:
        return False


def _can_hold_state(root: str, variable: str, otherwise: str) -> bool:
    named = os.environ.get(variable, "")
    place = os.path.realpath((named if named.startswith("/") else os.path.expanduser(f"~/{otherwise}")) + "/kaiza")  # noqa: PTH111  see the top
    if f"{place}/".startswith(root.rstrip("/") + "/"):
        return True
    try:
        with os.scandir(place) as entries:
            return any(entry.is_symlink() for entry in entries)
    except FileNotFoundError:
        return False


def _system_error() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  loaded only when something has failed

    return errors.SystemError


def _report_failure(failure: "errors.SystemError") -> int:
    """Print the envelope of a start that failed, as one line of JSON; the exit status."""
    from datetime import UTC, datetime  # noqa: PLC0415  see the top

    import orjson  # noqa: PLC0415  as above

    from kaiza.domain import error_envelope as envelope  # noqa: PLC0415  as above

    at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    sys.stderr.write(orjson.dumps(envelope.from_error(failure, at)).decode() + "\n")
    return _START_FAILED
