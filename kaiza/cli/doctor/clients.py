"""What `kaiza doctor` asks of the clients: whether one starts Kaiza here, and whether its own tools still write."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import orjson

from kaiza.cli.doctor.check import DoctorCheck, ok, problem, warning
from kaiza.render.terminal import escape
from kaiza.store.clients import CLIENTS, changes, server_command
from kaiza.store.clients.changes import ConfigFileError, InstallTarget
from kaiza.store.clients.client import Client, ConfigFile, ServerCommand
from kaiza.store.clients.install_manifest import InstallManifest

_TIMEOUT_SECONDS = 20
_HANDSHAKE = (
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


def check_clients(root: Path) -> Iterator[DoctorCheck]:
    """A line for each client that has an entry; one that says so where none has."""
    site = InstallTarget(root, Path.home(), InstallManifest())
    found = [check for client in CLIENTS.values() for check in _check_client(client, site)]
    if not any(check.name.startswith("client:") for check in found):
        todo = "kaiza init --client " + "|".join(CLIENTS)
        found.append(warning("clients", "no client starts Kaiza for this workspace", todo))
    yield from found


def _check_client(client: Client, site: InstallTarget) -> Iterator[DoctorCheck]:
    name = f"client:{client.name}"
    try:
        told = list(changes.find_entries(client, site))
        pending = changes.plan_install(client, server_command.for_workspace(site.root), site)
    except ConfigFileError as fault:
        yield problem(name, escape(str(fault)), "Mend the file.")
        return
    for file, text, entry in told:
        if file.location == "home" and not changes.is_for_workspace(entry, site.root):
            continue
        yield _check_entry(name, client, file, entry, site)
        remark = file.find_remark(text)
        if remark:
            yield warning(f"{name}:tools", remark, f"Look at {file.name}.")
        elif pending and _is_ours(entry, site):
            todo = f"Run kaiza init --client {client.name} again."
            yield warning(f"{name}:tools", f"{client.title}'s own tools may still write", todo)


def _is_ours(entry: ServerCommand, site: InstallTarget) -> bool:
    """Whether it is word for word what `kaiza init` writes; only that is ever started from here."""
    wanted = server_command.for_workspace(site.root)
    return (entry.command, entry.args) == (wanted.command, wanted.args)


def _check_entry(name: str, client: Client, file: ConfigFile, entry: ServerCommand, site: InstallTarget) -> DoctorCheck:
    if not _is_ours(entry, site):
        todo = f"If that is not meant, run kaiza init --client {client.name}: it shows the difference and asks."
        return warning(name, f"{file.name} starts something else: {escape(entry.command)}", todo)
    fault = probe_server(entry)
    if fault is not None:
        return problem(name, f"the server that {file.name} names does not answer: {fault}", "Run kaiza serve by hand.")
    return ok(name, f"{client.title} starts Kaiza here, and it answers")


def probe_server(entry: ServerCommand) -> str | None:
    """None where the server answers as a client expects, else what went wrong."""
    asked = b"".join(orjson.dumps(one) + b"\n" for one in _HANDSHAKE)
    words = [entry.command, *entry.args]
    try:
        done = subprocess.run(words, input=asked, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS)  # noqa: S603  ours
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    try:
        answers = [orjson.loads(line) for line in done.stdout.splitlines()]
    except orjson.JSONDecodeError:
        return "it does not speak JSON"
    tools = [one["result"]["tools"] for one in answers if "tools" in one.get("result", {})]
    return None if tools and tools[0] else f"it ended with status {done.returncode}"
