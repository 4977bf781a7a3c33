"""`kaiza init`: makes a directory a workspace and puts Kaiza into a client; shows all of it first, and asks."""

import argparse
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Any

from kaiza.cli import options, say
from kaiza.cli.word import ask_word
from kaiza.domain.diff import File, unified
from kaiza.domain.paths import RelPath
from kaiza.render.terminal import escape
from kaiza.store import making_ready, roots
from kaiza.store.clients import CLIENTS, changes, launch, memory
from kaiza.store.clients.carry import carry_out, taken_away
from kaiza.store.clients.changes import Change, FileFault, Site
from kaiza.store.clients.client import Client
from kaiza.store.clients.fault import ConfigFault
from kaiza.store.clients.memory import Memory

_NOBODY = "There is no terminal to ask at. Say --yes to go on without asking, or --print to look only."


def add(parser: argparse.ArgumentParser) -> None:
    """The command."""
    options.describe(
        parser,
        "Make a directory a workspace (plans/, audit/, docs/reports/, a first plan that explains itself) and put\n"
        "Kaiza into a client's configuration, the client's own writing tools switched off where a file can do that.\n"
        "Shows every change as a diff and asks. Safe to run twice; --remove gives back every byte.\n"
        "Exit status: 0 done or nothing to do, 1 refused or not wanted, 3 nobody to ask (say --yes in a script).",
        "kaiza init --client claude-code\nkaiza init ~/project --client codex --print",
        run=_init,
    )
    parser.add_argument("directory", metavar="DIR", nargs="?", default=".", help="the workspace (default: here)")
    parser.add_argument("--client", choices=CLIENTS, help="the client to configure (default: only say what is found)")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--print", action="store_true", dest="only_print", help="only print what would change")
    how.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--remove", action="store_true", help="take Kaiza out again, and what it made and nobody used")
    options.as_json(parser)


@dataclass(frozen=True, slots=True)
class _Todo:
    """Everything that is to be done, decided before any of it is."""

    files: list[Change]
    directories: list[Path]
    memory: Memory
    """What is remembered once it is done; where something is made, already before."""
    away: list[Path]
    """Directories that go where they are empty then, the inner ones first."""

    @property
    def nothing(self) -> bool:
        return not self.files and not self.directories and not self.away


def _init(args: argparse.Namespace) -> int:
    if args.json and not args.yes and not args.only_print:
        args.parser.error("--json goes with --yes or --print")
    root = Path(args.directory).resolve()
    if not root.is_dir():
        raise say.Stop(f"There is no directory {args.directory}. Make it first, then run kaiza init again.", say.NO)
    site = Site(root, Path.home(), memory.load(str(root)))
    client = CLIENTS[args.client] if args.client else None
    try:
        todo = _removal(site, client) if args.remove else _making(site, client)
    except FileFault as fault:
        raise say.Stop(f"{fault} Nothing was written.", say.NO) from fault
    if not args.json:
        _show(site, todo)
    if not todo.nothing and not args.only_print:
        _ask(args, todo)
        _carry_out(site, todo, removing=args.remove)
    if args.json:
        say.document(_as_json(site, todo, written=not args.only_print and not todo.nothing))
    else:
        _advise(site, client, todo, args)
    return say.YES


def _making(site: Site, client: Client | None) -> _Todo:
    directories, files = making_ready.lacking(site.root)
    if client is not None:
        server = launch.server(site.root)
        try:
            launch.check(server, client)
        except ConfigFault as fault:
            raise FileFault(client.title, fault) from fault
        files += changes.putting(client, server, site)
    known = site.memory
    for change in files:
        known = changes.remembered(change, known)
    made = {str(directory): making_ready.OWNER for directory in directories}
    return _Todo(files, directories, Memory(known.files, {**made, **known.directories}), [])


def _removal(site: Site, client: Client | None) -> _Todo:
    going = [client] if client else list(CLIENTS.values())
    files = [change for one in going for change in changes.taking(one, site)]
    owners = {one.name for one in going}
    known = site.memory
    staying = {done.owner for done in known.files.values()} - owners - {making_ready.OWNER}
    if not staying and making_ready.is_unused(site.root):
        owners.add(making_ready.OWNER)
        files += taken_away(known, making_ready.OWNER, site.root)
    away = [Path(path) for path, owner in reversed(list(known.directories.items())) if owner in owners]
    left = Memory(
        {path: done for path, done in known.files.items() if done.owner not in owners},
        {path: owner for path, owner in known.directories.items() if owner not in owners},
    )
    return _Todo(files, [], left, [path for path in away if path.is_dir()])


def _show(site: Site, todo: _Todo) -> None:
    made = [f"new directory  {_name(site, directory)}/" for directory in todo.directories]
    say.lines([*made, *([""] if made and todo.files else [])])
    for change in todo.files:
        say.lines(map(_shown, _diff(change).rstrip("\n").split("\n")))


def _shown(line: str) -> str:
    """A line as a terminal may show it; its tabs stay, so that the diff can be applied."""
    return "\t".join(map(escape, line.split("\t")))


def _as_json(site: Site, todo: _Todo, *, written: bool) -> dict[str, Any]:
    return {
        "workspace": str(site.root),
        "directories": [_name(site, directory) for directory in todo.directories],
        "files": [{"path": change.name, "client": change.owner, "diff": _diff(change)} for change in todo.files],
        "found": [client.name for client in _found(site)],
        "written": written,
    }


def _diff(change: Change) -> str:
    path = RelPath(tuple(change.name.split("/")))
    return unified(File(path, change.before), File(path, change.after)).text


def _name(site: Site, path: Path) -> str:
    return str(path.relative_to(site.root)) if path.is_relative_to(site.root) else str(path)


def _ask(args: argparse.Namespace, todo: _Todo) -> None:
    if args.yes:
        return
    if not any(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise say.Stop(_NOBODY)
    names = ", ".join(escape(change.name) for change in todo.files)
    what = f"These files will be changed as shown: {names}" if names else "Directories change as shown."
    try:
        agreed = ask_word(what, "yes")
    except say.Stop as stop:
        raise say.Stop(_NOBODY) from stop
    if not agreed:
        raise say.Stop("Nothing was written.", say.NO)


def _carry_out(site: Site, todo: _Todo, *, removing: bool) -> None:
    if not removing and not launch.works():
        raise say.Stop(
            "Kaiza does not start outside of this directory. Install it with pip or uv, then run this again."
        )
    root = str(site.root)
    if not removing:
        memory.save(root, todo.memory)
    try:
        carry_out(todo.files, todo.directories, todo.away)
    except ConfigFault as fault:
        raise say.Stop(f"{fault.sentence}. Everything is as it was.") from fault
    if removing:
        memory.save(root, todo.memory)


def _advise(site: Site, client: Client | None, todo: _Todo, args: argparse.Namespace) -> None:
    """What to do next, on standard error."""
    if todo.nothing:
        say.note("Nothing to change: everything is as it should be.")
    if args.remove or args.only_print:
        return
    above = roots.nearest(str(site.root.parent))
    if above is not None:
        say.note(f"This lies inside the workspace {escape(above)}. A server can serve only one of the two.")
    if client is None:
        say.lines(_next_steps(site))
        return
    for file, text, _ in changes.entries(client, site):
        remark = file.remark(text)
        if remark:
            say.note(f"{file.name}: {remark}.")
    say.note(client.after)
    say.note(f"Read plans/{making_ready.EXAMPLE}.md next; kaiza doctor checks that everything is in place.")


def _next_steps(site: Site) -> Iterable[str]:
    found = _found(site)
    yield f"The workspace is ready: {escape(str(site.root))}"
    if not found:
        yield "No client was found. Name one: kaiza init --client " + "|".join(CLIENTS)
    for client in found:
        configured = any(changes.serves(entry, site.root) for _, _, entry in changes.entries(client, site))
        yield f"{client.title}: " + ("configured." if configured else f"found. Next: kaiza init --client {client.name}")


def _found(site: Site) -> list[Client]:
    """The clients that somebody uses on this machine, or in this workspace."""
    return [client for client in CLIENTS.values() if which(client.program) or _has_traces(client, site)]


def _has_traces(client: Client, site: Site) -> bool:
    return any(
        (site.root if where == "workspace" else site.home).joinpath(path).exists() for where, path in client.traces
    )
