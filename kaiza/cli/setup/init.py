"""`kaiza init`: makes a directory a workspace and puts Kaiza into a client; shows all of it first, and asks."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from kaiza.cli.console import arguments, output
from kaiza.cli.console.confirm import confirm_by_typing
from kaiza.domain.paths.rel_path import RelPath
from kaiza.domain.text.unified_diff import FileVersion, compare
from kaiza.render.terminal import escape
from kaiza.store.clients import CLIENTS, changes, install_manifest, server_command
from kaiza.store.clients.changes import ConfigChange, ConfigFileError, InstallTarget, apply_changes, removal_changes
from kaiza.store.clients.client import Client
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.install_manifest import InstallManifest
from kaiza.store.config import roots
from kaiza.store.documents import workspace_template

_NO_TERMINAL = "There is no terminal to ask at. Say --yes to go on without asking, or --print to look only."


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    arguments.describe(
        parser,
        "Make a directory a workspace (plans/, audit/, docs/reports/, a first plan that explains itself) and put\n"
        "Kaiza into a client's configuration, the client's own writing tools switched off where a file can do that.\n"
        "Shows every change as a diff and asks. Safe to run twice; --remove gives back every byte.\n"
        "Exit status: 0 done or nothing to do, 1 refused or not wanted, 3 nobody to ask (say --yes in a script).",
        "kaiza init --client claude-code\nkaiza init ~/project --client codex --print",
        run=_run_init,
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="the workspace (default: here)")
    parser.add_argument("--client", choices=CLIENTS, help="the client to configure (default: only say what is found)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", dest="only_print", help="only print what would change")
    how.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--remove", action="store_true", help="take Kaiza out again, and what it made and nobody used")
    arguments.add_json(parser)


@dataclass(frozen=True, slots=True)
class _InitActions:
    """Everything that is to be done, decided before any of it is."""

    files: list[ConfigChange]
    directories: list[Path]
    manifest: InstallManifest
    """What is remembered once it is done; where something is made, already before."""
    removed_directories: list[Path]
    """Directories that go where they are empty then, the inner ones first."""

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.directories and not self.removed_directories


def _run_init(args: argparse.Namespace) -> int:
    if args.json and not args.yes and not args.only_print:
        args.parser.error("--json goes with --yes or --print")
    root = Path(args.directory).resolve()
    if not root.is_dir():
        raise output.CommandError(
            f"There is no directory {args.directory}. Make it first, then run kaiza init again.", output.FAILURE
        )
    site = InstallTarget(root, Path.home(), install_manifest.load(str(root)))
    client = CLIENTS[args.client] if args.client else None
    try:
        todo = _removal_actions(site, client) if args.remove else _install_actions(site, client)
    except ConfigFileError as fault:
        raise output.CommandError(f"{fault} Nothing was written.", output.FAILURE) from fault
    if not args.json:
        _print_changes(site, todo)
    if not todo.is_empty and not args.only_print:
        _confirm_changes(args, todo)
        _apply_actions(site, todo, removing=args.remove)
    if args.json:
        output.print_json(_json_document(site, todo, written=not args.only_print and not todo.is_empty))
    else:
        _print_advice(site, client, todo, args)
    return output.SUCCESS


def _install_actions(site: InstallTarget, client: Client | None) -> _InitActions:
    directories, files = workspace_template.find_missing(site.root)
    if client is not None:
        server = server_command.for_workspace(site.root)
        try:
            server_command.require_startable(server, client)
        except ConfigError as fault:
            raise ConfigFileError(client.title, fault) from fault
        files += changes.plan_install(client, server, site)
    known = site.manifest
    for change in files:
        known = changes.add_to_manifest(change, known)
    made = {str(directory): workspace_template.OWNER for directory in directories}
    return _InitActions(files, directories, InstallManifest(known.files, {**made, **known.directories}), [])


def _removal_actions(site: InstallTarget, client: Client | None) -> _InitActions:
    going = [client] if client else list(CLIENTS.values())
    files = [change for one in going for change in changes.plan_removal(one, site)]
    owners = {one.name for one in going}
    known = site.manifest
    staying = {done.owner for done in known.files.values()} - owners - {workspace_template.OWNER}
    if not staying and workspace_template.is_unused(site.root):
        owners.add(workspace_template.OWNER)
        files += removal_changes(known, workspace_template.OWNER, site.root)
    away = [Path(path) for path, owner in reversed(list(known.directories.items())) if owner in owners]
    left = InstallManifest(
        {path: done for path, done in known.files.items() if done.owner not in owners},
        {path: owner for path, owner in known.directories.items() if owner not in owners},
    )
    return _InitActions(files, [], left, [path for path in away if path.is_dir()])


def _print_changes(site: InstallTarget, todo: _InitActions) -> None:
    made = [f"new directory  {_display_path(site, directory)}/" for directory in todo.directories]
    output.print_lines([*made, *([""] if made and todo.files else [])])
    for change in todo.files:
        output.print_lines(map(_escape_line, _unified_diff(change).rstrip("\n").split("\n")))


def _escape_line(line: str) -> str:
    """A line as a terminal may show it; its tabs stay, so that the diff can be applied."""
    return "\t".join(map(escape, line.split("\t")))


def _json_document(site: InstallTarget, todo: _InitActions, *, written: bool) -> dict[str, Any]:
    return {
        "workspace": str(site.root),
        "directories": [_display_path(site, directory) for directory in todo.directories],
        "files": [
            {"path": change.name, "client": change.owner, "diff": _unified_diff(change)} for change in todo.files
        ],
        "found": [client.name for client in _detect_clients(site)],
        "written": written,
    }


def _unified_diff(change: ConfigChange) -> str:
    path = RelPath(tuple(change.name.split("/")))
    return compare(FileVersion(path, change.before), FileVersion(path, change.after)).text


def _display_path(site: InstallTarget, path: Path) -> str:
    return str(path.relative_to(site.root)) if path.is_relative_to(site.root) else str(path)


def _confirm_changes(args: argparse.Namespace, todo: _InitActions) -> None:
    if args.yes:
        return
    if not any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise output.CommandError(_NO_TERMINAL)
    names = ", ".join(escape(change.name) for change in todo.files)
    what = f"These files will be changed as shown: {names}" if names else "Directories change as shown."
    try:
        agreed = confirm_by_typing(what, "yes")
    except output.CommandError as stop:
        raise output.CommandError(_NO_TERMINAL) from stop
    if not agreed:
        raise output.CommandError("Nothing was written.", output.FAILURE)


def _apply_actions(site: InstallTarget, todo: _InitActions, *, removing: bool) -> None:
    if not removing and not server_command.can_start():
        raise output.CommandError(
            "Kaiza does not start outside of this directory. Install it with pip or uv, then run this again."
        )
    root = str(site.root)
    if not removing:
        install_manifest.save(root, todo.manifest)
    try:
        apply_changes(todo.files, todo.directories, todo.removed_directories)
    except ConfigError as fault:
        raise output.CommandError(f"{fault.sentence}. Everything is as it was.") from fault
    if removing:
        install_manifest.save(root, todo.manifest)


def _print_advice(site: InstallTarget, client: Client | None, todo: _InitActions, args: argparse.Namespace) -> None:
    """What to do next, on standard error."""
    if todo.is_empty:
        output.print_error("Nothing to change: everything is as it should be.")
    if args.remove or args.only_print:
        return
    above = roots.find_nearest(str(site.root.parent))
    if above is not None:
        output.print_error(f"This lies inside the workspace {escape(above)}. A server can serve only one of the two.")
    if client is None:
        output.print_lines(_next_steps(site))
        return
    for file, text, _ in changes.find_entries(client, site):
        remark = file.find_remark(text)
        if remark:
            output.print_error(f"{file.name}: {remark}.")
    output.print_error(client.next_steps)
    output.print_error(
        f"Read plans/{workspace_template.EXAMPLE_PLAN_ID}.md next; kaiza doctor checks that everything is in place."
    )


def _next_steps(site: InstallTarget) -> Iterable[str]:
    found = _detect_clients(site)
    yield f"The workspace is ready: {escape(str(site.root))}"
    if not found:
        yield "No client was found. Name one: kaiza init --client " + "|".join(CLIENTS)
    for client in found:
        configured = any(
            changes.is_for_workspace(entry, site.root) for _, _, entry in changes.find_entries(client, site)
        )
        yield f"{client.title}: " + ("configured." if configured else f"found. Next: kaiza init --client {client.name}")


def _detect_clients(site: InstallTarget) -> list[Client]:
    """The clients that somebody uses on this machine, or in this workspace."""
    return [client for client in CLIENTS.values() if which(client.program) or _has_traces(client, site)]


def _has_traces(client: Client, site: InstallTarget) -> bool:
    return any(
        (site.root if where == "workspace" else site.home).joinpath(path).exists()
        for where, path in client.detection_paths
    )
