"""`kaiza token new`: make a token, and print it once."""

import argparse
import re
from datetime import timedelta

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace
from kaiza.decisions import new_token
from kaiza.queries.workspaces import find_person_name
from kaiza.render.terminal import format_time

# Not \d, which also matches the digits of other scripts.
_LIFETIME = re.compile(r"([0-9]{1,5})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_DEFAULT_LIFETIME = "90d"
_LONGEST_LIFETIME = timedelta(days=3650)


def add(commands: arguments.Subparsers) -> None:
    """Add the subcommand."""
    parser = commands.add_parser("new", help="make a token and print it once")
    arguments.describe(
        parser,
        "Make a token for this workspace and print it, this once: only its SHA-256 is kept. With it, an agent begins "
        "sessions here over HTTP. The log records its name; a name is never used twice.\n"
        "Exit status: 0 made, 1 refused, and no token was made.",
        "kaiza token new ci --role executor --expires 30d\nKAIZA_TOKEN=$(kaiza token new laptop)",
        run=_run_new,
    )
    add_name(parser)
    arguments.add_role(parser, "begin sessions of this role only (default: of either)")
    parser.add_argument(
        "--expires",
        metavar="TIME",
        type=_parse_lifetime,
        default=_DEFAULT_LIFETIME,
        help="how long it is valid: 12h, 30d, 8w (default: 90d)",
    )
    arguments.add_operator(parser)
    arguments.add_workspace(parser)
    arguments.add_json(parser)


def add_name(parser: argparse.ArgumentParser) -> None:
    """Add the name of a token."""
    parser.add_argument("token_name", metavar="NAME", type=_parse_name, help="the token's name, shown in the log")


def _run_new(args: argparse.Namespace) -> int:
    with open_workspace(args) as workspace:
        proposal = new_token.propose(workspace, args.token_name, args.role, args.expires)
        made = new_token.decide(workspace, proposal, find_person_name(args.name))
        _print_token(args, workspace.root, made)
    return output.SUCCESS


def _print_token(args: argparse.Namespace, root: str, made: new_token.Decision) -> None:
    kept = made.kept
    if args.json:
        about = {"name": kept.name, "principal": kept.label, "role": kept.role, "expires": kept.expires}
        output.print_json({"token": made.token, **about, "workspace": root})
        return
    output.print_lines([made.token])
    output.print_error(
        f"Shown this once. Valid until {format_time(kept.expires)}; records name it {kept.label}. "
        "Give it to the agent in an environment variable such as KAIZA_TOKEN, not in a file of the project. "
        f"End it with `kaiza token revoke {kept.name}`."
    )


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
