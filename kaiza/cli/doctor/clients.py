"""Checks of clients: whether one starts Kaiza here, and whether its own tools can still write."""

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
    """Check each client that has an entry; a warning if none has."""
    target = InstallTarget(root, Path.home(), InstallManifest())
    checks = [check for client in CLIENTS.values() for check in _check_client(client, target)]
    if not any(check.name.startswith("client:") for check in checks):
        todo = "Configure one with `kaiza init --client NAME`: " + ", ".join(CLIENTS) + "."
        checks.append(warning("clients", "no client is configured to start Kaiza here", todo))
    yield from checks


def _check_client(client: Client, target: InstallTarget) -> Iterator[DoctorCheck]:
    name = f"client:{client.name}"
    try:
        entries = list(changes.find_entries(client, target))
        pending = changes.plan_install(client, server_command.for_workspace(target.root), target)
    except ConfigFileError as fault:
        yield problem(name, escape(str(fault)), "Correct the file.")
        return
    for file, text, entry in entries:
        if file.location == "home" and not changes.is_for_workspace(entry, target.root):
            continue
        yield _check_entry(name, client, file, entry, target)
        remark = file.find_remark(text)
        if remark:
            yield warning(f"{name}:tools", remark, f"Review {file.name}.")
        elif pending and _is_ours(entry, target):
            todo = f"Run `kaiza init --client {client.name}` again."
            yield warning(f"{name}:tools", f"{client.title}'s own tools may still write", todo)


def _is_ours(entry: ServerCommand, target: InstallTarget) -> bool:
    """Whether the entry is exactly what `kaiza init` writes."""
    # No other command is ever started from here: an agent may have written the file.
    expected = server_command.for_workspace(target.root)
    return (entry.command, entry.args) == (expected.command, expected.args)


def _check_entry(
    name: str, client: Client, file: ConfigFile, entry: ServerCommand, target: InstallTarget
) -> DoctorCheck:
    if not _is_ours(entry, target):
        todo = f"Unless you meant that, run `kaiza init --client {client.name}`: it shows the difference and asks."
        return warning(name, f"{file.name} starts another command: {escape(entry.command)}", todo)
    fault = probe_server(entry)
    if fault is not None:
        todo = "Run `kaiza serve` in a terminal to see why."
        return problem(name, f"the server named in {file.name} does not answer: {fault}", todo)
    return ok(name, f"{client.title} is configured to start Kaiza here, and the server answers")


def probe_server(entry: ServerCommand) -> str | None:
    """Start the server and list its tools; None if it answers as a client expects, else the reason."""
    requests = b"".join(orjson.dumps(message) + b"\n" for message in _HANDSHAKE)
    command = [entry.command, *entry.args]
    try:
        done = subprocess.run(command, input=requests, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS)  # noqa: S603  ours
    except (OSError, subprocess.TimeoutExpired) as error:
        return type(error).__name__
    try:
        answers = [orjson.loads(line) for line in done.stdout.splitlines()]
    except orjson.JSONDecodeError:
        return "its output is not JSON"
    tools = [answer["result"]["tools"] for answer in answers if "tools" in answer.get("result", {})]
    return None if tools and tools[0] else f"it ended with status {done.returncode}"
