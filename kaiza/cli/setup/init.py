"""`kaiza init`: set up a workspace and configure a client. Every change is decided, shown and confirmed first."""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.cli.console.open_workspace import open_root
from kaiza.cli.setup import advice
from kaiza.cli.setup.adopt import confirm_adoption
from kaiza.cli.setup.http_entry import make_http_server
from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text.unified_diff import FileVersion, compare
from kaiza.queries.workspaces import find_person_name, require_utf8
from kaiza.render.terminal import escape, wrap
from kaiza.store.clients import CLIENTS, changes, install_manifest, server_command
from kaiza.store.clients.changes import ConfigChange, ConfigFileError, InstallTarget, apply_changes, removal_changes
from kaiza.store.clients.client import Client, HttpServer, ServerCommand
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.install_manifest import InstallManifest
from kaiza.store.clients.registry import ALIASES, TOKEN_VARIABLE
from kaiza.store.disk import state_dir
from kaiza.store.documents import workspace_template
from kaiza.store.trust.binding import read_binding
from kaiza.store.workspace import Workspace

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


@dataclass(frozen=True, slots=True)
class _InitActions:
    """All changes to make, decided before the first is made."""

    files: list[ConfigChange]
    directories: list[Path]
    manifest: InstallManifest
    """The manifest afterwards."""
    removed_directories: list[Path]
    """Directories to remove if they are empty then, inner ones first."""

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.directories and not self.removed_directories


def _run_init(args: argparse.Namespace) -> int:
    if args.json and not args.yes and not args.only_print:
        args.parser.error("--json needs --yes or --print")
    root = Path(args.directory).resolve()
    if not root.is_dir():
        raise output.CommandError(
            f"There is no directory {escape(args.directory)}. Create it first, then run `kaiza init` again.",
            output.FAILURE,
        )
    require_utf8(str(root))
    if not args.remove and not args.only_print:
        _adopt_if_foreign(args, str(root))
    target = InstallTarget(root, Path.home(), install_manifest.load(str(root)))
    client = CLIENTS[args.client] if args.client else None
    http_server = make_http_server(args)
    try:
        actions = _removal_actions(target, client) if args.remove else _install_actions(target, client, http_server)
    except ConfigFileError as fault:
        raise output.CommandError(f"{fault} Nothing was written.", output.FAILURE) from fault
    if not args.json:
        _print_changes(target, actions)
    if not actions.is_empty and not args.only_print:
        _confirm_changes(args, actions)
        _apply_actions(target, actions, args)
    if args.json:
        output.print_json(_json_document(target, actions, written=not args.only_print and not actions.is_empty))
    else:
        _print_advice(target, client, actions, args)
    return output.SUCCESS


def _adopt_if_foreign(args: argparse.Namespace, root: str) -> None:
    """Ask for the adoption of a workspace from elsewhere, which setting it up would otherwise hide."""
    if not read_binding(root, state_dir.path_of(root)).is_foreign:
        return
    if args.yes:
        raise output.CommandError(
            "This workspace came from elsewhere, and --yes does not adopt it. Nothing was written. "
            "Run `kaiza adopt` first.",
            output.FAILURE,
        )
    with open_root(root) as workspace:
        confirm_adoption(workspace, find_person_name(None))


def _install_actions(
    target: InstallTarget, client: Client | None, http_server: HttpServer | None = None
) -> _InitActions:
    directories, files = workspace_template.find_missing(target.root)
    if client is not None:
        files += changes.plan_install(client, http_server or _find_command(target, client), target)
    manifest = target.manifest
    for change in files:
        manifest = changes.add_to_manifest(change, manifest)
    owners = {str(directory): workspace_template.OWNER for directory in directories}
    return _InitActions(files, directories, InstallManifest(manifest.files, {**owners, **manifest.directories}), [])


def _find_command(target: InstallTarget, client: Client) -> ServerCommand:
    server = server_command.for_workspace(target.root)
    try:
        server_command.require_startable(server, client)
    except ConfigError as fault:
        raise ConfigFileError(client.title, fault) from fault
    return server


def _removal_actions(target: InstallTarget, client: Client | None) -> _InitActions:
    removed_clients = [client] if client else list(CLIENTS.values())
    files = [change for one in removed_clients for change in changes.plan_removal(one, target)]
    owners = {one.name for one in removed_clients}
    manifest = target.manifest
    remaining = {done.owner for done in manifest.files.values()} - owners - {workspace_template.OWNER}
    # The workspace's own files go with the last client, and only if they were never used.
    if not remaining and workspace_template.is_unused(target.root):
        owners.add(workspace_template.OWNER)
        files += removal_changes(manifest, workspace_template.OWNER, target.root)
    directories = [Path(path) for path, owner in reversed(list(manifest.directories.items())) if owner in owners]
    left = InstallManifest(
        {path: done for path, done in manifest.files.items() if done.owner not in owners},
        {path: owner for path, owner in manifest.directories.items() if owner not in owners},
    )
    return _InitActions(files, [], left, [path for path in directories if path.is_dir()])


def _print_changes(target: InstallTarget, actions: _InitActions) -> None:
    created = [f"new directory  {_display_path(target, directory)}/" for directory in actions.directories]
    output.print_lines([*created, *([""] if created and actions.files else [])])
    for change in actions.files:
        for line in _unified_diff(change).rstrip("\n").split("\n"):
            output.print_lines(_format_diff_line(line, output.terminal_width()))


def _format_diff_line(line: str, width: int | None) -> Iterator[str]:
    """A line of a diff, escaped; with its tabs and in one piece where it is not for a terminal, so that it applies."""
    escaped = "\t".join(map(escape, line.split("\t")))
    return wrap([escaped if width is None else escaped.expandtabs()], width)


def _json_document(target: InstallTarget, actions: _InitActions, *, written: bool) -> dict[str, Any]:
    return {
        "workspace": str(target.root),
        "directories": [_display_path(target, directory) for directory in actions.directories],
        "files": [
            {"path": change.name, "client": change.owner, "deed": advice.deed_of(change), "diff": _unified_diff(change)}
            for change in actions.files
        ],
        "found": [client.name for client in advice.detect_clients(target)],
        "written": written,
    }


def _unified_diff(change: ConfigChange) -> str:
    path = RelPath(tuple(change.name.split("/")))
    return compare(FileVersion(path, change.before), FileVersion(path, change.after)).text


def _display_path(target: InstallTarget, path: Path) -> str:
    return str(path.relative_to(target.root)) if path.is_relative_to(target.root) else str(path)


def _confirm_changes(args: argparse.Namespace, actions: _InitActions) -> None:
    if args.yes:
        return
    if not any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise output.CommandError(_NO_TERMINAL)
    facts = [
        f"To be {deed}: {', '.join(escape(change.name) for change in group)}"
        for deed, group in advice.list_by_deed(actions.files)
    ]
    question = "\n".join(facts) or "Only directories change, as shown."
    is_confirmed = confirm_by_typing(question, "remove" if args.remove else "init", _NO_TERMINAL)
    if not is_confirmed:
        raise output.CommandError("Cancelled. Nothing was written.", output.FAILURE)


def _apply_actions(target: InstallTarget, actions: _InitActions, args: argparse.Namespace) -> None:
    if not args.remove and args.http is None and not server_command.can_start():
        raise output.CommandError(
            "Kaiza cannot be started from other directories. Install it with pip or uv, then run this again."
        )
    root = str(target.root)
    # The manifest is there before the files that it lists, and stays until they are gone: after a crash
    # `--remove` still knows what to restore.
    if not args.remove:
        install_manifest.save(root, actions.manifest)
    try:
        apply_changes(actions.files, actions.directories, actions.removed_directories)
    except ConfigError as fault:
        raise output.CommandError(f"{fault.sentence}. Nothing was changed.") from fault
    if args.remove:
        install_manifest.save(root, actions.manifest)
    else:
        _note_drafts(root)


def _note_drafts(root: str) -> None:
    """Note the example plan as seen, so that a person may approve it in an editor before a server runs."""
    try:
        workspace = Workspace(root, Caps())
    except errors.SystemError as fault:
        output.print_error(f"The example plan was not noted as seen. {escape(fault.human_message)}")
        return
    workspace.look_at_plans()
    workspace.close(current_timestamp())


def _print_advice(
    target: InstallTarget, client: Client | None, actions: _InitActions, args: argparse.Namespace
) -> None:
    """What was done and what to do next; on standard error where a client was configured."""
    if actions.is_empty:
        output.print_error("Nothing to change: everything is set up." if not args.remove else "Nothing to remove.")
    if args.only_print:
        return
    if args.remove:
        if not actions.is_empty:
            gone = sum(not directory.is_dir() for directory in actions.removed_directories)
            advice.print_sentences(advice.describe_removal(target.root, actions.files, gone))
        return
    advice.warn_if_nested(target.root)
    if client is None:
        output.print_sentences(advice.describe_workspace(target))
    else:
        advice.print_sentences(advice.describe_setup(target, client, over_http=args.http is not None))
