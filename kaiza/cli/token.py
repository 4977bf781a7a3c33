"""`kaiza token`: make, list and revoke the tokens with which agents use a workspace over HTTP."""

import argparse
import re
from datetime import timedelta

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, resolve_root
from kaiza.decisions import new_token, revoke_token
from kaiza.domain.roles import describe_role
from kaiza.queries.http_tokens import list_tokens
from kaiza.queries.workspaces import find_person_name
from kaiza.render.tables import Cell, Column, render_table
from kaiza.render.terminal import escape, format_minute, format_time

# Not \d, which also matches the digits of other scripts.
_LIFETIME = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_DEFAULT_LIFETIME = "90d"
_LONGEST_LIFETIME = timedelta(days=3650)
_COLUMNS = (
    Column("name"),
    Column("state"),
    Column("role", moves_below=True),
    Column("expires UTC", moves_below=True),
    Column("last use UTC", moves_below=True),
    Column("in the log", moves_below=True),
)
_STYLES = {"valid": "green"}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands."""
    commands = arguments.add_group(
        parser, "Tokens with which agents use this workspace over HTTP: make, list and revoke them.", "kaiza token list"
    )
    new = commands.add_parser("new", help="make a token and print it once")
    arguments.describe(
        new,
        "Make a token for this workspace and print it, this once: only its SHA-256 is kept. With it, an agent begins "
        "sessions here over HTTP. The log records its name; a name is never used twice.\n"
        "Exit status: 0 made, 1 refused, and no token was made.",
        "kaiza token new ci --role executor --expires 30d\nKAIZA_TOKEN=$(kaiza token new laptop)",
        run=_run_new,
    )
    _add_name(new)
    arguments.add_role(new, "begin sessions of this role only (default: of either)")
    new.add_argument(
        "--expires",
        metavar="TIME",
        type=_parse_lifetime,
        default=_DEFAULT_LIFETIME,
        help="how long it is valid: 12h, 30d, 8w (default: 90d)",
    )
    arguments.add_operator(new)
    listing = commands.add_parser("list", help="list tokens, newest last")
    arguments.describe(
        listing,
        "List the tokens of this workspace, newest last, expired and revoked ones too. The time of last use is to "
        "the minute.\n"
        "Exit status: 0 listed, 1 no token is valid: their file cannot be used, or the workspace "
        "is from elsewhere.",
        "kaiza token list",
        run=_run_list,
    )
    revoke = commands.add_parser("revoke", help="end a token and its sessions")
    arguments.describe(
        revoke,
        "End a token and its sessions. Recorded, and in force from the next request on. No confirmation is needed. "
        "The name cannot be used again.\n"
        "Exit status: 0 revoked, 1 no such token, or revoked before, 3 not revoked or not recorded: run it again.",
        "kaiza token revoke ci",
        run=_run_revoke,
    )
    _add_name(revoke)
    arguments.add_operator(revoke)
    for command in (new, listing, revoke):
        arguments.add_workspace(command)
        arguments.add_json(command)


def _run_new(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        proposal = new_token.propose(workspace, args.token_name, args.role, args.expires)
        made = new_token.decide(workspace, proposal, find_person_name(args.name))
        kept = made.kept
        if args.json:
            about = {"name": kept.name, "principal": kept.label, "role": kept.role, "expires": kept.expires}
            output.print_json({"token": made.token, **about, "workspace": workspace.root})
            return output.SUCCESS
    # Nothing but the token on standard output: it is often captured in a variable.
    output.print_lines([made.token])
    output.print_error(
        f"Shown this once. Valid until {format_time(kept.expires)}; records name it {kept.label}. "
        "Give it to the agent in an environment variable such as KAIZA_TOKEN, not in a file of the project. "
        f"End it with `kaiza token revoke {kept.name}`."
    )
    return output.SUCCESS


def _run_list(args: argparse.Namespace) -> int:
    listed = list_tokens(resolve_root(args))
    problem = listed["problem"]
    if args.json:
        output.print_json(listed)
        return output.SUCCESS if problem is None else output.FAILURE
    rows = [
        (
            Cell(escape(row["name"]), "bold"),
            Cell(row["state"], _STYLES.get(row["state"], "dim")),
            Cell(escape(describe_role(row["role"]) or "either")),
            Cell(format_minute(row["expires"])),
            Cell(format_minute(row["last_use"]) if row["last_use"] else "never"),
            Cell(escape(row["principal"]), "dim"),
        )
        for row in listed["tokens"]
    ]
    if rows:
        output.print_lines(render_table(_COLUMNS, rows, output.terminal_width(), colour=output.has_colour()))
    if problem is not None or not rows:
        output.print_error(f"{problem or 'There is no token here yet. Make one with `kaiza token new NAME`'}.")
    return output.SUCCESS if problem is None else output.FAILURE


def _run_revoke(args: argparse.Namespace) -> int:
    person, root = find_person_name(args.name), resolve_root(args)
    # Default settings: a kaiza.toml that cannot be read must not stop a person from revoking.
    opening = open_workspace(args, uses_settings=False)
    revoked = revoke_token.decide(root, revoke_token.propose(root, args.token_name), person, opening=opening)
    token, ended = revoked.token, revoked.sessions_ended
    if args.json:
        output.print_json({"name": token.name, "principal": token.label, "sessions_ended": ended})
    else:
        sessions = {0: "It had no open session", 1: "Its session is ended"}.get(
            ended, f"Its {ended} sessions are ended"
        )
        output.print_sentences([f"{token.name} is revoked. {sessions}."])
    return output.SUCCESS


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("token_name", metavar="NAME", type=_parse_name, help="the token's name, shown in the log")


def _parse_name(text: str) -> str:
    if not new_token.is_token_name(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid name. Write up to 32 lower-case letters, digits, dots, hyphens and underscores, "
            "a letter or digit first"
        )
    return text


def _parse_lifetime(text: str) -> timedelta:
    match = _LIFETIME.fullmatch(text)
    lifetime = timedelta(**{_UNITS[match[2]]: int(match[1])}) if match else timedelta(0)
    if not timedelta(0) < lifetime <= _LONGEST_LIFETIME:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a valid lifetime. Write hours, days or weeks: 12h, 30d, 8w; at most 3650d"
        )
    return lifetime
