"""Checks of clients: whether one starts Kaiza here, and whether its own tools can still write."""

from collections.abc import Iterator
from pathlib import Path

from kaiza.cli.doctor.check import DoctorCheck, ok, problem, warning
from kaiza.cli.doctor.handshake import probe_url
from kaiza.render.terminal import escape
from kaiza.store.clients import CLIENTS, changes, server_command
from kaiza.store.clients.changes import ConfigFileError, InstallTarget
from kaiza.store.clients.client import Client, ConfigFile, HttpServer, ServerCommand
from kaiza.store.clients.install_manifest import InstallManifest
from kaiza.store.trust.http_tokens import has_token


def check_clients(root: Path, *, has_answered: bool) -> Iterator[DoctorCheck]:
    """Check each client that has an entry, given whether the server answered; a warning if none has."""
    target = InstallTarget(root, Path.home(), InstallManifest())
    checks = [
        check for client in CLIENTS.values() for check in _check_client(client, target, has_answered=has_answered)
    ]
    if not any(check.name.startswith("client:") for check in checks):
        todo = "Configure one with `kaiza init --client NAME`: " + ", ".join(CLIENTS) + "."
        checks.append(warning("clients", "no client is configured to start Kaiza here", todo))
    yield from checks


def _check_client(client: Client, target: InstallTarget, *, has_answered: bool) -> Iterator[DoctorCheck]:
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
        if isinstance(entry, HttpServer):
            yield _check_http_entry(client, file, text, entry)
        elif _is_ours(entry, target):
            yield _check_own_entry(client, file, has_answered=has_answered)
        else:
            todo = f"Unless you meant that, run `kaiza init --client {client.name}`: it shows the difference and asks."
            yield warning(name, f"{file.name} starts another command: {escape(entry.command)}", todo)
        remark = file.find_remark(text)
        if remark:
            yield warning(f"{name}:tools", remark, f"Review {file.name}.")
        elif pending and isinstance(entry, ServerCommand) and _is_ours(entry, target):
            todo = f"Run `kaiza init --client {client.name}` again."
            yield warning(f"{name}:tools", f"{client.title}'s own tools may still write", todo)


def _check_http_entry(client: Client, file: ConfigFile, text: str, entry: HttpServer) -> DoctorCheck:
    name = f"client:{client.name}"
    if has_token(text):
        todo = "Put the token into an environment variable, and revoke this one: kaiza token revoke NAME."
        return problem(name, f"{file.name} contains a token that everyone who reads the file can use", todo)
    fault = probe_url(entry.url)
    if fault is not None:
        todo = "Start it with `kaiza serve --http HOST:PORT`, where the workspace is."
        return warning(name, f"no Kaiza answers at the address in {file.name}, {escape(entry.url)}: {fault}", todo)
    return ok(name, f"{client.title} is configured to use a server over HTTP")


def _is_ours(entry: ServerCommand, target: InstallTarget) -> bool:
    """Whether the entry is exactly what `kaiza init` writes."""
    # No other command is ever started from here: an agent may have written the file.
    expected = server_command.for_workspace(target.root)
    return (entry.command, entry.args) == (expected.command, expected.args)


def _check_own_entry(client: Client, file: ConfigFile, *, has_answered: bool) -> DoctorCheck:
    name = f"client:{client.name}"
    if not has_answered:
        return problem(name, f"the server named in {file.name} does not answer", "The line `server` above says why.")
    return ok(name, f"{client.title} is configured to start Kaiza here, and the server answers")
