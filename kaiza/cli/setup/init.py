"""`kaiza init`: set up a workspace and configure a client. Every change is decided, shown and confirmed first."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kaiza.cli.call import parse_server_url
from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm
from kaiza.cli.console.open_workspace import open_root
from kaiza.cli.setup.adopt import confirm_adoption
from kaiza.decisions import init
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.domain.text.unified_diff import FileVersion, compare
from kaiza.queries import setup_advice
from kaiza.queries.setup_advice import ALIASES, CLIENTS, TOKEN_VARIABLE
from kaiza.queries.workspaces import find_above, find_person_name, is_foreign, require_utf8
from kaiza.render.terminal import escape, wrap

_NO_TERMINAL = "There is no terminal to ask at. Use --yes to write without asking, or --print to only show the changes."


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    arguments.describe(
        parser,
        "Set up a workspace (plans/, audit/, docs/reports/ and an example plan) and add Kaiza to a client's "
        "configuration, with the client's own writing tools switched off where its configuration allows that. Shows "
        "every change as a diff and asks. Running it twice is safe; --remove restores every byte.\n"
        "Exit status: 0 done or nothing to do, 1 refused or declined, 3 no terminal to ask at (use --yes).",
        "kaiza init --client claude-code\nkaiza init ~/project --client codex --print",
        run=_run_init,
    )
    parser.add_argument(
        "directory", metavar="DIR", nargs="?", default=".", help="the workspace (default: the current directory)"
    )
    parser.add_argument(
        "--client",
        metavar="CLIENT",
        choices=CLIENTS,
        type=lambda name: ALIASES.get(name, name),
        help=f"the client to configure: {', '.join(CLIENTS)} (default: only list the clients found)",
    )
    parser.add_argument(
        "--http",
        metavar="URL",
        help=f"let the client use a running `kaiza serve --http` with the token in ${TOKEN_VARIABLE} "
        "(default: let it start a server)",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--print", action="store_true", dest="only_print", help="only print what would change")
    mode.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument(
        "--remove",
        action="store_true",
        help="remove Kaiza's configuration and any files it created that are still unused",
    )
    arguments.add_json(parser)


def _run_init(args: argparse.Namespace) -> int:
    if args.json and not args.yes and not args.only_print:
        args.parser.error("--json needs --yes or --print")
    root = Path(args.directory).resolve()
    if not root.is_dir():
        raise RefusedError(
            f"There is no directory {escape(args.directory)}. Create it first, then run `kaiza init` again."
        )
    require_utf8(str(root))
    if not args.remove and not args.only_print:
        _adopt_if_foreign(args, str(root))
    proposal = init.propose(root, args.client, _choose_url(args), removes=args.remove)
    if not args.json:
        _print_changes(root, proposal)
    done = None
    if not proposal.is_empty and not args.only_print:
        _confirm_changes(args, proposal)
        done = init.decide(root, proposal)
        if done.problem:
            output.print_error(done.problem)
    if args.json:
        output.print_json(_json_document(root, proposal, written=done is not None))
    else:
        _print_advice(root, proposal, done, args)
    return output.SUCCESS


def _adopt_if_foreign(args: argparse.Namespace, root: str) -> None:
    """Ask for the adoption of a workspace from elsewhere, which setting it up would otherwise hide."""
    if not is_foreign(root):
        return
    if args.yes:
        raise RefusedError(
            "This workspace came from elsewhere, and --yes does not adopt it. Nothing was written. "
            "Run `kaiza adopt` first."
        )
    with open_root(root) as workspace:
        confirm_adoption(workspace, find_person_name(None))


def _choose_url(args: argparse.Namespace) -> str | None:
    """The address of a running server, with which a client is configured; None without `--http`."""
    if args.http is None:
        return None
    if args.client is None or args.remove:
        args.parser.error("--http needs --client, and is not for --remove")
    url = parse_server_url(args.http)
    if not url.is_loopback and not url.is_encrypted:
        raise output.CommandError(
            "The token would be sent unencrypted. Nothing was written. Use https://, or run the client where the "
            "server has a loopback address.",
            output.USAGE_ERROR,
        )
    return url.url


def _print_changes(root: Path, proposal: init.Proposal) -> None:
    created = [f"new directory  {_display_path(root, directory)}/" for directory in proposal.directories]
    output.print_lines([*created, *([""] if created and proposal.files else [])])
    for change in proposal.files:
        for line in _unified_diff(change).rstrip("\n").split("\n"):
            # In a file the diff keeps its tabs, so that it applies.
            escaped, width = "\t".join(map(escape, line.split("\t"))), output.terminal_width()
            output.print_lines(wrap([escaped if width is None else escaped.expandtabs()], width))


def _json_document(root: Path, proposal: init.Proposal, *, written: bool) -> dict[str, Any]:
    return {
        "workspace": str(root),
        "directories": [_display_path(root, directory) for directory in proposal.directories],
        "files": [
            {
                "path": change.name,
                "client": change.owner,
                "deed": setup_advice.deed_of(change),
                "diff": _unified_diff(change),
            }
            for change in proposal.files
        ],
        "found": [client.name for client in setup_advice.detect_clients(root)],
        "written": written,
    }


def _unified_diff(change: setup_advice.ConfigChange) -> str:
    path = RelPath(tuple(change.name.split("/")))
    return compare(FileVersion(path, change.before), FileVersion(path, change.after)).text


def _display_path(root: Path, path: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)


def _confirm_changes(args: argparse.Namespace, proposal: init.Proposal) -> None:
    if args.yes:
        return
    if not any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UndeterminedError(_NO_TERMINAL)
    lines = [
        f"To be {deed}: {', '.join(escape(change.name) for change in group)}"
        for deed, group in setup_advice.list_by_deed(proposal.files)
    ]
    facts = "\n".join(lines) or "Only directories change, as shown."
    if not confirm(facts, "Remove this?" if args.remove else "Write this?", missing=_NO_TERMINAL):
        raise RefusedError("Cancelled. Nothing was written.")


def _print_advice(root: Path, proposal: init.Proposal, done: init.Decision | None, args: argparse.Namespace) -> None:
    """What was done and what to do next; on standard error where a client was configured."""
    if proposal.is_empty:
        output.print_error("Nothing to change: everything is set up." if not args.remove else "Nothing to remove.")
    if args.only_print:
        return
    sentences: Iterable[str] = ()
    if args.remove:
        if done is not None:
            sentences = setup_advice.describe_removal(root, proposal.files, done.removed_directories)
    else:
        outer = find_above(str(root))
        if outer is not None:
            output.print_error(
                f"This directory is inside the workspace {escape(outer)}. A server can serve only one of them."
            )
        if args.client is None:
            output.print_sentences(setup_advice.describe_workspace(root))
        else:
            sentences = setup_advice.describe_setup(root, args.client, over_http=args.http is not None)
    for sentence in sentences:
        output.print_error(sentence)
