"""What `kaiza doctor` asks of the clients: whether one starts Kaiza here, and whether its own tools still write."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson

from kaiza.cli.check import Check, ok, problem, warning
from kaiza.render.terminal import escape
from kaiza.store.clients import CLIENTS, changes, launch
from kaiza.store.clients.changes import FileFault, Site
from kaiza.store.clients.client import Client, File, Server
from kaiza.store.clients.memory import Memory

_PATIENCE = 20
_HELLO = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "kaiza-doctor", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
)


def clients(root: Path) -> Iterator[Check]:
    """A line for each client that has an entry; one that says so where none has."""
    site = Site(root, Path.home(), Memory())
    found = [check for client in CLIENTS.values() for check in _client(client, site)]
    if not any(check.name.startswith("client:") for check in found):
        todo = "kaiza init --client " + "|".join(CLIENTS)
        found.append(warning("clients", "no client starts Kaiza for this workspace", todo))
    yield from found


def _client(client: Client, site: Site) -> Iterator[Check]:
    name = f"client:{client.name}"
    try:
        told = list(changes.entries(client, site))
        pending = changes.putting(client, launch.server(site.root), site)
    except FileFault as fault:
        yield problem(name, escape(str(fault)), "Mend the file.")
        return
    for file, text, entry in told:
        if file.where == "home" and not changes.serves(entry, site.root):
            continue
        yield _entry(name, client, file, entry, site)
        remark = file.remark(text)
        if remark:
            yield warning(f"{name}:tools", remark, f"Look at {file.name}.")
        elif pending and _is_ours(entry, site):
            todo = f"Run kaiza init --client {client.name} again."
            yield warning(f"{name}:tools", f"{client.title}'s own tools may still write", todo)


def _is_ours(entry: Server, site: Site) -> bool:
    """Whether it is word for word what `kaiza init` writes; only that is ever started from here."""
    wanted = launch.server(site.root)
    return (entry.command, entry.args) == (wanted.command, wanted.args)


def _entry(name: str, client: Client, file: File, entry: Server, site: Site) -> Check:
    if not _is_ours(entry, site):
        todo = f"If that is not meant, run kaiza init --client {client.name}: it shows the difference and asks."
        return warning(name, f"{file.name} starts something else: {escape(entry.command)}", todo)
    fault = starts(entry)
    if fault is not None:
        return problem(name, f"the server that {file.name} names does not answer: {fault}", "Run kaiza serve by hand.")
    return ok(name, f"{client.title} starts Kaiza here, and it answers")


def starts(entry: Server) -> str | None:
    """None where the server answers as a client expects, else what went wrong."""
    asked = b"".join(orjson.dumps(one) + b"\n" for one in _HELLO)
    words = [entry.command, *entry.args]
    try:
        done = subprocess.run(words, input=asked, capture_output=True, check=False, timeout=_PATIENCE)  # noqa: S603  ours
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    try:
        answers = [orjson.loads(line) for line in done.stdout.splitlines()]
    except orjson.JSONDecodeError:
        return "it does not speak JSON"
    tools = [one["result"]["tools"] for one in answers if "tools" in one.get("result", {})]
    return None if tools and tools[0] else f"it ended with status {done.returncode}"
