"""Checks of clients: whether one starts Kaiza here, and whether its own tools can still write."""

from collections.abc import Iterator
from pathlib import Path

from kaiza.queries.doctor.check import DoctorCheck, ok, problem, warning
from kaiza.queries.doctor.client_listing import LIST_COMMANDS, Listing, ask_client
from kaiza.queries.doctor.server_probe import probe_url
from kaiza.render.terminal import escape
from kaiza.store.clients import changes, server_command
from kaiza.store.clients.changes import ConfigFileError, InstallTarget
from kaiza.store.clients.client import SERVER_NAME, Client, ConfigFile, HttpServer, ServerCommand
from kaiza.store.clients.install_manifest import InstallManifest
from kaiza.store.clients.registry import CLIENTS
from kaiza.store.disk import state_dir
from kaiza.store.trust.binding import read_binding
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
        has_writers = changes.leaves_writers(client, target)
        is_outdated = bool(changes.plan_install(client, server_command.for_workspace(target.root), target))
    except ConfigFileError as fault:
        yield problem(name, escape(str(fault)), "Correct the file.")
        return
    for file, text, entry in entries:
        if file.location == "home" and not changes.is_for_workspace(entry, target.root):
            continue
        if isinstance(entry, HttpServer):
            yield _check_http_entry(client, file, text, entry)
        elif _is_ours(entry, target):
            yield _check_own_entry(client, (file, text, entry), target, has_answered=has_answered)
        else:
            todo = f"Unless you meant that, run `kaiza init --client {client.name}`: it shows the difference and asks."
            yield warning(name, f"{file.name} starts another command: {escape(entry.command)}", todo)
        is_outdated = is_outdated and isinstance(entry, ServerCommand) and _is_ours(entry, target)
        yield from _check_tools(client, file, text, has_writers=has_writers, is_outdated=is_outdated)


def _check_tools(
    client: Client, file: ConfigFile, text: str, *, has_writers: bool, is_outdated: bool
) -> Iterator[DoctorCheck]:
    name, again = f"client:{client.name}:tools", f"Run `kaiza init --client {client.name}` again."
    remark = file.find_remark(text)
    if remark:
        yield warning(name, escape(remark), f"Review {file.name}.")
    elif has_writers:
        yield warning(name, f"{client.title}'s own tools may still write", again)
    elif client.own_tools:
        todo = "Tell it to use Kaiza's, and look at `git status` afterwards: Kaiza does not record these tools."
        yield warning(name, f"{client.title} can write without Kaiza: {client.own_tools}", todo)
    elif is_outdated:
        yield warning(name, f"{file.name} is not as this version of Kaiza would write it", again)


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


def _check_own_entry(
    client: Client, found: tuple[ConfigFile, str, ServerCommand], target: InstallTarget, *, has_answered: bool
) -> DoctorCheck:
    name, (file, text, entry) = f"client:{client.name}", found
    if not has_answered:
        return problem(name, f"the server named in {file.name} does not answer", "The line `server` above says why.")
    configured = f"{client.title} is configured to start Kaiza here, and the server answers"
    if client.name not in LIST_COMMANDS:
        return ok(name, configured)
    command = f"`{client.program} {LIST_COMMANDS[client.name].command_line}`"
    obstacle = _find_obstacle(client, file, text, target.root)
    if entry.env != server_command.for_workspace(target.root).env:
        # A variable can make any program load a file of the workspace.
        obstacle = f"{file.name} gives the server other variables"
    if obstacle:
        return ok(name, f"{configured}. Whether {client.title} uses it was not asked: {obstacle}. {command} says so")
    return _judge_listing(client, ask_client(client, target.root), configured, command)


def _find_obstacle(client: Client, file: ConfigFile, text: str, root: Path) -> str | None:
    """Why the client is not asked: it could start what the workspace brought, and an agent may have written that."""
    if read_binding(str(root), state_dir.path_of(str(root))).is_foreign:
        return "this workspace came from elsewhere"
    if any(name != SERVER_NAME for name in file.list_servers(text)):
        return f"{file.name} names other servers, which it would start"
    return next(
        (f"it would use {name}" for name in LIST_COMMANDS[client.name].starters if (root / name).exists()), None
    )


def _judge_listing(client: Client, listing: Listing, configured: str, command: str) -> DoctorCheck:
    name = f"client:{client.name}"
    if listing is Listing.USED:
        return ok(name, f"{client.title} says that it uses Kaiza here ({command})")
    if listing is Listing.NO_PROGRAM:
        return ok(name, f"{configured}; {client.program} was not found to ask it")
    if listing is Listing.IGNORED:
        todo = f"Start `{client.program}` in the workspace, and trust the folder or allow the server when it asks."
        return warning(name, f"configured, but not trusted: {client.title} ignores it ({command})", todo)
    said = "says that it cannot start Kaiza" if listing is Listing.FAILED else "did not answer"
    return warning(name, f"{configured}, but {client.title} {said} ({command})", f"Run {command} here to see why.")
