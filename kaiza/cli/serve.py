"""`kaiza serve`: serve workspaces to MCP clients over standard input and output, or HTTP. Starting writes nothing.

Only what the first answers need is imported at the top; the rest is imported in the functions that use it, most of it
by the background thread that builds the application.
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
    from kaiza.domain.tool_card import ToolOffer
    from kaiza.server.run_logger import RunLogger
    from kaiza.store.config.editor_catalog import EditorCatalog

TIERS = ("core", "governed")
CONTENT_MODES = ("full", "summary")
MAX_TIMEOUT_MS = 30_000
MAX_GUARD_MS = 15_000
MAX_PORT = 65_535
_NEED_HTTP = ("allow_host", "allow_origin", "no_auth", "tls_cert", "tls_key", "behind_tls_proxy")
_START_FAILED = 3


class ServeOptions(NamedTuple):
    """The options of the command line, by their names there."""

    workspace: tuple[str, ...] = ()
    role: str | None = None
    tier: str = "governed"
    content: str = "full"
    tool_timeout_ms: int | None = None
    scan_guard_ms: int | None = None
    allow_checks: bool = False
    allow_unsandboxed_checks: bool = False
    http: tuple[str, int] | None = None
    allow_host: tuple[str, ...] = ()
    allow_origin: tuple[str, ...] = ()
    no_auth: bool = False
    tls_cert: str | None = None
    tls_key: str | None = None
    behind_tls_proxy: bool = False
    deterministic: bool = False
    no_runs: bool = False

    @property
    def offer(self) -> "ToolOffer":
        """Which tools the server offers."""
        from kaiza.domain.tool_card import ToolOffer  # noqa: PLC0415  see the top

        allowed = ("allow_checks", "allow_unsandboxed_checks") if self.allow_unsandboxed_checks else ("allow_checks",)
        can_check = self.allow_checks or self.allow_unsandboxed_checks
        return ToolOffer(self.role, allowed if can_check else (), self.tier)


def run(argv: Sequence[str]) -> int:
    """Serve until the client disconnects; the exit status."""
    options = parse_options(argv)
    try:
        return _run_server(options, _find_roots(options.workspace))
    except _system_error() as failure:
        return _report_failure(failure)


def parse_options(argv: Sequence[str]) -> ServeOptions:
    """Parse the options; `--help` and a usage error end the process."""
    parser = arguments.CommandParser(prog="kaiza serve")
    add(parser)
    parsed = parser.parse_args(argv)
    _require_consistency(parser, parsed)
    options: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in vars(parsed).items()
    }
    return ServeOptions(**options)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Serve workspaces to an MCP client over standard input and output; normally the client starts this. With "
        "--http, serve clients over HTTP until stopped (docs/http.md).\n"
        "Exit status: 0 the client disconnected or the server was stopped, 3 the server could not start (why is on "
        "standard error, as JSON).",
        "kaiza serve --workspace ~/project --role executor\nkaiza serve --workspace ~/project --http 127.0.0.1:8765",
    )
    parser.add_argument(
        "--workspace",
        metavar="DIR",
        action="append",
        default=[],
        help="a workspace; may be given several times (default: $CLAUDE_PROJECT_DIR, else the current directory)",
    )
    arguments.add_role(parser, "serve only this role (default: each session names its role)")
    parser.add_argument(
        "--tier",
        choices=TIERS,
        default="governed",
        help="core offers only the tools that read; governed offers all (default: governed)",
    )
    parser.add_argument(
        "--content",
        choices=CONTENT_MODES,
        default="full",
        help="the text of a result: its whole JSON, or a summary (default: full)",
    )
    _add_check_options(parser)
    _add_limit_options(parser)
    parser.add_argument(
        "--no-runs", action="store_true", help="keep no run log in .kaiza/runs (default: a line for each request)"
    )
    parser.add_argument(
        "--deterministic",
        action="store_true",
        help="for tests: record counted times and computed ids, in a log that is empty or has only such (default: no)",
    )


def _add_limit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--tool-timeout-ms",
        metavar="MS",
        type=partial(_parse_milliseconds, MAX_TIMEOUT_MS),
        help="time limit of a call, at most and by default 30000",
    )
    parser.add_argument(
        "--scan-guard-ms",
        metavar="MS",
        type=partial(_parse_milliseconds, MAX_GUARD_MS),
        help="time after which a scan returns what it has found, at most and by default 10000, or 15000 where it reads "
        "files",
    )
    _add_http_options(parser)


def _add_check_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-checks",
        action="store_true",
        help="let agents run the checks named in an approved plan, in a bubblewrap sandbox (default: no)",
    )
    parser.add_argument(
        "--allow-unsandboxed-checks",
        action="store_true",
        help="like --allow-checks, but where bubblewrap does not work, run them with your permissions (default: no)",
    )


def _add_http_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `serve_http` applies; it is not imported on stdio."""
    parser.add_argument(
        "--http",
        metavar="HOST:PORT",
        type=_parse_address,
        help="serve HTTP at this address instead of standard input and output; port 0 picks a free one",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="another host name under which clients reach the server; may be given several times",
    )
    parser.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        action="append",
        default=[],
        help="let web pages of this origin, such as https://example.org, use the server; may be given several times",
    )
    parser.add_argument("--no-auth", action="store_true", help="require no token; only on a loopback address")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain, PEM")
    parser.add_argument("--tls-key", metavar="FILE", help="private key of the certificate, PEM, not encrypted")
    parser.add_argument(
        "--behind-tls-proxy",
        action="store_true",
        help="allow addresses other than loopback without a certificate, because a proxy speaks TLS",
    )


def _require_consistency(parser: argparse.ArgumentParser, parsed: argparse.Namespace) -> None:
    """End with a usage error if an option lacks another one that it needs."""
    named = [f"--{name.replace('_', '-')}" for name in _NEED_HTTP if getattr(parsed, name)]
    if parsed.http is None and named:
        parser.error(f"{named[0]} needs --http HOST:PORT")
    if (parsed.tls_cert is None) != (parsed.tls_key is None):
        parser.error("--tls-cert and --tls-key need each other")


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    digits = port.isascii() and port.isdecimal() and len(port) <= len(str(MAX_PORT))
    if not host.strip("[]") or not digits or int(port) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not an address. Write HOST:PORT, such as 127.0.0.1:8765")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _parse_milliseconds(most: int, text: str) -> int:
    digits = text.isascii() and text.isdecimal() and len(text) <= len(str(most))
    if not digits or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid time limit. Write milliseconds, 1 to {most}")
    return int(text)


def _run_server(options: ServeOptions, roots: tuple[str, ...]) -> int:
    from kaiza.domain.server_instructions import INSTRUCTIONS  # noqa: PLC0415  help and usage errors do not need it
    from kaiza.wire.dialect import ServerDescription  # noqa: PLC0415  as above

    # Decided at the start: the list of tools must not change during a conversation.
    also_listed = ("context_resolve",) if any(map(_has_cache, roots)) else ()
    opening = ServerDescription(
        kaiza.__version__, INSTRUCTIONS, partial(_list_tools, options, also_listed), partial(_load_catalog, options)
    )
    make_app = partial(_build_app, options, roots)
    make_run_logger = None if options.no_runs else partial(_make_run_logger, options, roots)
    if options.http is not None:
        from kaiza.cli import serve_http  # noqa: PLC0415  never imported on stdio

        return serve_http.run(options, roots, make_app, opening)
    from kaiza.server.serve import serve  # noqa: PLC0415  see the top

    return serve(make_app, opening, summary=options.content == "summary", make_run_logger=make_run_logger)


def _make_run_logger(options: ServeOptions, roots: tuple[str, ...]) -> "RunLogger":
    from kaiza.server.run_logger import RunLogger  # noqa: PLC0415  after the first answer

    return RunLogger(roots, is_deterministic=options.deterministic)


def _has_cache(root: str) -> bool:
    """Whether there is a directory that may be a context cache."""
    try:
        with os.scandir(f"{root}/.kaiza/context") as entries:
            return any(entry.is_dir(follow_symlinks=False) and entry.name[0] != "." for entry in entries)
    except OSError:
        return False


def _list_tools(options: ServeOptions, also_listed: tuple[str, ...]) -> list[Mapping[str, Any]]:
    from kaiza.store.config import schema_registry as schemas  # noqa: PLC0415  see the top

    return schemas.list_items(schemas.SchemaRegistry(), options.offer, also_listed)


def _load_catalog(options: ServeOptions) -> "EditorCatalog":
    from kaiza.store.config.editor_catalog import EditorCatalog  # noqa: PLC0415  see the top
    from kaiza.store.config.schema_registry import SchemaRegistry  # noqa: PLC0415  as above

    return EditorCatalog(SchemaRegistry(), options.offer, options.deterministic)


def _build_app(options: ServeOptions, roots: tuple[str, ...]) -> "App":
    from kaiza.app import App  # noqa: PLC0415  see the top
    from kaiza.domain.caps import Caps  # noqa: PLC0415  as above
    from kaiza.store.disk import file_lock as lock  # noqa: PLC0415  as above

    caps = Caps().lower_times(options.tool_timeout_ms, options.scan_guard_ms)
    app = App(roots, offer=options.offer, caps=caps, deterministic=options.deterministic)
    lock.preload()
    return app


def _find_roots(named: Sequence[str]) -> tuple[str, ...]:
    """The real paths of the workspaces; BOOTSTRAP_FAILURE if one is missing, nested, or has invalid settings."""
    named = named or (os.environ.get("CLAUDE_PROJECT_DIR") or ".",)
    first = os.path.realpath(named[0])
    # The usual case imports none of the checks below.
    if len(named) == 1 and _has_no_settings(first):
        return (first,)
    from kaiza.store.config.roots import require_own_directories_outside, resolve_roots  # noqa: PLC0415  as above
    from kaiza.store.files.confined_root import ConfinedRoot  # noqa: PLC0415  as above
    from kaiza.store.trust.adopted_settings import read_layers  # noqa: PLC0415  as above
    from kaiza.store.trust.binding import Binding  # noqa: PLC0415  as above

    roots = resolve_roots(named, dict(os.environ))
    require_own_directories_outside(roots)
    for root in roots:
        with ConfinedRoot(root) as files:
            read_layers(root, files.fd, Binding())  # the binding has no effect on whether they can be read
    return roots


def _has_no_settings(root: str) -> bool:
    """Whether certainly no settings apply, and no directory of Kaiza's is in the workspace; False if in doubt."""
    try:
        root.encode()  # a path that is not UTF-8 is refused
        # A name that is not ASCII may be kaiza.toml to a file system that folds case or normalizes.
        settings = any(not name.isascii() or name.lower().startswith("kaiza.toml") for name in os.listdir(root))  # noqa: PTH208  see the top
        if settings or _can_hold_state(root):
            return False
    except (OSError, UnicodeEncodeError):
        return False
    # A configuration that exists, or that someone could make in the workspace.
    directories = ("/etc/kaiza", _own_directory("XDG_CONFIG_HOME", ".config"))
    return not any(os.path.lexists(path) or _is_inside(os.path.realpath(path), root) for path in directories)


def _can_hold_state(root: str) -> bool:
    state = _own_directory("XDG_STATE_HOME", ".local/state")
    if _is_inside(state, root):
        return True
    try:
        with os.scandir(state) as entries:
            # A link in the state directory could lead back into the workspace.
            return any(entry.is_symlink() for entry in entries)
    except FileNotFoundError:
        return False


def _own_directory(variable: str, default: str) -> str:
    base = os.environ.get(variable, "")
    return os.path.realpath((base if base.startswith("/") else os.path.expanduser(f"~/{default}")) + "/kaiza")  # noqa: PTH111  see the top


def _is_inside(path: str, root: str) -> bool:
    return f"{path}/".startswith(root.rstrip("/") + "/")


def _system_error() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  loaded only when something has failed

    return errors.SystemError


def _report_failure(failure: "errors.SystemError") -> int:
    """Print the error envelope of a failed start as one line of JSON; the exit status."""
    import orjson  # noqa: PLC0415  see the top

    from kaiza.clock import current_timestamp  # noqa: PLC0415  as above

    envelope = failure.to_envelope({"timestamp": current_timestamp()})
    if os.environ.get("DEBUG_STACK") == "true":
        envelope["stack_trace"] = failure.format_stack()
    sys.stderr.write(orjson.dumps(envelope).decode() + "\n")
    return _START_FAILED
