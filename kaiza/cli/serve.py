"""`kaiza serve`: hand a workspace to an MCP client. Starting changes nothing on disk, and is quick.

Nothing is imported here that the opening answers do not need: a plain command line is read without argparse, and the
house is put together in the background, by whoever first needs it.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import kaiza

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.domain import errors

ROLES = ("ANTIGRAVITY", "WINDSURF")
CONTENTS = ("full", "summary")
LONGEST_MS = 600_000
_FAILED = 3


class Options(NamedTuple):
    """What the operator said."""

    workspaces: tuple[str, ...] = ()
    role: str | None = None
    content: str = "full"
    tool_timeout_ms: int | None = None
    scan_guard_ms: int | None = None
    allow_checks: bool = False

    @property
    def allowed(self) -> tuple[str, ...]:
        """What the operator allows beyond what is always offered."""
        return ("allow_checks",) if self.allow_checks else ()


def start(argv: Sequence[str]) -> int:
    """Serve until the client goes; the exit status."""
    told = plainly(argv) or _carefully(argv)
    try:
        return _serve(told, _roots(told))
    except _ours() as failure:
        return _failed(failure)


def plainly(argv: Sequence[str]) -> Options | None:
    """The options where each is spelled out in full and sound; else None, and argparse says what is wrong."""
    checks = "--allow-checks" in argv
    argv = [word for word in argv if word != "--allow-checks"]
    if len(argv) % 2:
        return None
    workspaces: list[str] = []
    said: dict[str, str] = {}
    for name, value in zip(argv[::2], argv[1::2], strict=True):
        if name not in _SOUND or value.startswith("-") or not _SOUND[name](value):
            return None
        if name == "--workspace":
            workspaces.append(value)
        said[name] = value
    timeout, guard = said.get("--tool-timeout-ms"), said.get("--scan-guard-ms")
    return Options(
        tuple(workspaces),
        said.get("--role"),
        said.get("--content", "full"),
        int(timeout) if timeout else None,
        int(guard) if guard else None,
        checks,
    )


def is_milliseconds(text: str) -> bool:
    """Whether the text is a time that a limit can be set to."""
    return text.isascii() and text.isdecimal() and len(text) <= len(str(LONGEST_MS)) and 1 <= int(text) <= LONGEST_MS


def _serve(told: Options, roots: tuple[str, ...]) -> int:
    from kaiza.domain.instructions import INSTRUCTIONS  # noqa: PLC0415  help and mistakes need no server
    from kaiza.server.serve import serve  # noqa: PLC0415  as above
    from kaiza.wire.mcp import Opening  # noqa: PLC0415  as above

    opening = Opening(kaiza.__version__, INSTRUCTIONS, partial(_offered, told.role, told.allowed))
    return serve(partial(_app, told, roots), opening, summary=told.content == "summary")


def _offered(role: str | None, allowed: tuple[str, ...]) -> list[Mapping[str, Any]]:
    from kaiza.store import offer, schemas  # noqa: PLC0415  see the top

    return offer.offered(schemas.SchemaRegistry(), role, allowed)


def _app(told: Options, roots: tuple[str, ...]) -> "App":
    from kaiza.app import App  # noqa: PLC0415  see the top
    from kaiza.domain.caps import Caps  # noqa: PLC0415  as above
    from kaiza.store import lock  # noqa: PLC0415  as above

    guard = told.scan_guard_ms
    limits = {"tool_timeout_ms": told.tool_timeout_ms, "find_guard_ms": guard, "search_guard_ms": guard}
    caps = Caps(**{name: limit for name, limit in limits.items() if limit is not None})
    app = App(roots, bound_role=told.role, caps=caps, allowed=told.allowed)
    lock.preload()
    return app


def _roots(told: Options) -> tuple[str, ...]:
    """The real paths of the workspaces, sound; that one plain directory is, is seen at a glance."""
    named = told.workspaces or (os.environ.get("CLAUDE_PROJECT_DIR") or ".",)
    first = os.path.realpath(named[0])
    if len(named) == 1 and _is_plain(first):
        return (first,)
    from kaiza.cli import serve_slowly  # noqa: PLC0415  see the top

    return serve_slowly.roots(named)


def _is_plain(root: str) -> bool:
    """Whether a directory clearly has no settings, and clearly holds no state of Kaiza's; in doubt, it is not."""
    try:
        settings = any(not name.isascii() or name.lower().startswith("kaiza.toml") for name in os.listdir(root))  # noqa: PTH208  see the top
        return not settings and not _may_hold(root, "XDG_STATE_HOME", ".local/state")
    except OSError:
        return False


def _may_hold(root: str, variable: str, otherwise: str) -> bool:
    told = os.environ.get(variable, "")
    place = os.path.realpath((told if told.startswith("/") else os.path.expanduser(f"~/{otherwise}")) + "/kaiza")  # noqa: PTH111  see the top
    if f"{place}/".startswith(root.rstrip("/") + "/"):
        return True
    try:
        with os.scandir(place) as entries:
            return any(entry.is_symlink() for entry in entries)
    except FileNotFoundError:
        return False


def _carefully(argv: Sequence[str]) -> Options:
    from kaiza.cli import serve_slowly  # noqa: PLC0415  see the top

    return serve_slowly.carefully(argv)


def _ours() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  loaded only when something has failed

    return errors.SystemError


def _failed(failure: "errors.SystemError") -> int:
    from kaiza.cli import serve_slowly  # noqa: PLC0415  see the top

    sys.stderr.write(serve_slowly.envelope_of(failure) + "\n")
    return _FAILED


_SOUND = {
    "--workspace": bool,
    "--role": ROLES.__contains__,
    "--content": CONTENTS.__contains__,
    "--tool-timeout-ms": is_milliseconds,
    "--scan-guard-ms": is_milliseconds,
}
