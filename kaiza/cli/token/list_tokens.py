"""`kaiza token list`: the names, states and uses of a workspace's tokens. Shows no token."""

import argparse
from collections.abc import Mapping
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import resolve_root
from kaiza.clock import current_timestamp
from kaiza.domain.roles import describe_role
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import escape, format_minute
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens
from kaiza.store.trust.binding import read_binding

_COLUMNS = (
    Column("name"),
    Column("state"),
    Column("role", moves_below=True),
    Column("expires UTC", moves_below=True),
    Column("last use UTC", moves_below=True),
    Column("in the log", moves_below=True),
)
_STYLES = {"valid": "green"}


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("list", help="list tokens, newest last")
    arguments.describe(
        parser,
        "List the tokens of this workspace, newest last, expired and revoked ones too. The time of last use is to "
        "the minute.\n"
        "Exit status: 0 listed, 1 no token is valid: their file cannot be used, or the workspace "
        "is from elsewhere.",
        "kaiza token list",
        run=_run_list,
    )
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def _run_list(args: argparse.Namespace) -> int:
    root, now = resolve_root(args), current_timestamp()
    tokens, uses = http_tokens.read_tokens(root), http_tokens.read_uses(root)
    problem = tokens.problem
    if tokens.tokens and read_binding(root, state_dir.path_of(root)).is_foreign:
        problem = "This workspace came from elsewhere, so no token is valid. Run `kaiza adopt`, then make new tokens"
    rows = [
        {
            "name": token.name,
            "principal": token.label,
            "state": token.state_at(now),
            "role": token.role,
            "created": token.created,
            "expires": token.expires,
            "revoked": token.revoked,
            "last_use": uses.get(token.label),
        }
        for token in tokens.tokens
    ]
    if args.json:
        output.print_json({"tokens": rows, "problem": problem})
        return output.SUCCESS if problem is None else output.FAILURE
    if rows:
        cells = map(_token_row, rows)
        output.print_lines(render_table(_COLUMNS, cells, output.terminal_width(), colour=output.has_colour()))
    if problem is not None or not rows:
        output.print_error(f"{problem or 'There is no token here yet. Make one with `kaiza token new NAME`'}.")
    return output.SUCCESS if problem is None else output.FAILURE


def _token_row(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(escape(row["name"]), "bold"),
        Cell(row["state"], _STYLES.get(row["state"], "dim")),
        Cell(escape(describe_role(row["role"]) or "either")),
        Cell(format_minute(row["expires"])),
        Cell(format_minute(row["last_use"]) if row["last_use"] else "never"),
        Cell(escape(row["principal"]), "dim"),
    )
