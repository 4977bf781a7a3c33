"""`kaiza token new`: make a token, and print it once."""

import argparse
import re
from datetime import datetime, timedelta

from kaiza.cli.console import arguments, output
from kaiza.cli.console.open_workspace import open_workspace, require_sound_log, resolve_name
from kaiza.render.terminal import format_time
from kaiza.store import human_decisions
from kaiza.store.disk import state_dir
from kaiza.store.trust import http_tokens, identity
from kaiza.store.trust.http_tokens import HttpToken, TokenList

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


def read_usable_tokens(root: str) -> TokenList:
    """The tokens of a workspace; a CommandError if their file cannot be used."""
    tokens = http_tokens.read_tokens(root)
    if tokens.problem is not None:
        raise output.CommandError(f"{tokens.problem}. Nothing was changed.", output.FAILURE)
    return tokens


def _run_new(args: argparse.Namespace) -> int:
    person, created = resolve_name(args.name), http_tokens.read_clock()
    expires = _add_lifetime(created, args.expires)
    with open_workspace(args) as workspace:
        require_sound_log(workspace)
        workspace.begin_recording()  # before the lock, which it takes too
        with identity.lock_identity(state_dir.path_of(workspace.root)):
            tokens = read_usable_tokens(workspace.root)
            _require_free_name(tokens, args.token_name)
            token, kept = http_tokens.new_token(args.token_name, args.role, created, expires)
            # Recorded first: no token without its record.
            detail = {"token": kept.label, "role": kept.role, "expires": kept.expires}
            human_decisions.record_decision(workspace, "new_token", person, detail=detail)
            http_tokens.save_tokens(workspace.root, (*tokens.tokens, kept))
        _print_token(args, workspace.root, token, kept)
    return output.SUCCESS


def _print_token(args: argparse.Namespace, root: str, token: str, kept: HttpToken) -> None:
    if args.json:
        about = {"name": kept.name, "principal": kept.label, "role": kept.role, "expires": kept.expires}
        output.print_json({"token": token, **about, "workspace": root})
        return
    output.print_lines([token])
    output.print_error(
        f"Shown this once. Valid until {format_time(kept.expires)}; records name it {kept.label}. "
        "Give it to the agent in an environment variable such as KAIZA_TOKEN, not in a file of the project. "
        f"End it with `kaiza token revoke {kept.name}`."
    )


def _require_free_name(tokens: TokenList, name: str) -> None:
    if tokens.find(name) is not None:
        raise output.CommandError(
            f"The name {name} was used before, and a name is never used twice: the log would not tell the two apart. "
            "Choose another name; `kaiza token list` shows all.",
            output.FAILURE,
        )
    if len(tokens.tokens) >= http_tokens.MAX_TOKENS:
        raise output.CommandError(
            f"This workspace has had {http_tokens.MAX_TOKENS:,} tokens, the most there can be. Use one of those that "
            "are valid; `kaiza token list` shows them.",
            output.FAILURE,
        )


def _parse_name(text: str) -> str:
    if not http_tokens.is_token_name(text):
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


def _add_lifetime(created: str, lifetime: timedelta) -> str:
    end = datetime.fromisoformat(created) + lifetime
    return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
