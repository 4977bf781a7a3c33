"""Set up a workspace and configure a client, or remove both again. Every change is known before the first is made."""

from dataclasses import dataclass, field
from pathlib import Path

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.caps import Caps
from kaiza.domain.refusal import RefusedError, UndeterminedError
from kaiza.render.terminal import escape
from kaiza.store.clients import changes, install_manifest, server_command
from kaiza.store.clients.changes import ConfigChange, ConfigFileError, InstallTarget
from kaiza.store.clients.client import Client, ConfigError, HttpServer, ServerEntry
from kaiza.store.clients.install_manifest import InstallManifest
from kaiza.store.clients.registry import CLIENTS
from kaiza.store.documents import workspace_template
from kaiza.store.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Proposal:
    """The files and directories that would change, and the manifest afterwards."""

    files: list[ConfigChange]
    manifest: InstallManifest
    directories: list[Path] = field(default_factory=list)
    """Directories to create."""
    removed_directories: list[Path] = field(default_factory=list)
    """Directories to remove if they are empty then, inner ones first."""
    is_removal: bool = False
    starts_server: bool = False
    """Whether a client would start the server with the program of this installation."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.files and not self.directories and not self.removed_directories


@dataclass(frozen=True, slots=True)
class Decision:
    """What was done besides: how many directories are gone, and why the example plan was not noted as seen."""

    removed_directories: int
    problem: str | None


def propose(root: Path, client_name: str | None, url: str | None, *, removes: bool) -> Proposal:
    """The setup of a workspace and a client, by a server at `url` or by one that it starts; or their removal.

    Refused if a file of the client cannot be changed safely, or cannot take the token from the environment.
    """
    target = InstallTarget(root, Path.home(), install_manifest.load(str(root)))
    client = CLIENTS[client_name] if client_name else None
    if client is not None and url is not None and client.http_members is None:
        raise RefusedError(
            f"{client.title}'s configuration file cannot take the token from an environment variable, and a token does "
            f"not belong in a file. Nothing was written. Add the server by hand, with {escape(url)} and the "
            "header Authorization: Bearer TOKEN."
        )
    try:
        return _propose_removal(target, client) if removes else _propose_setup(target, client, url)
    except ConfigFileError as fault:
        raise RefusedError(f"{fault} Nothing was written.") from fault


def _propose_setup(target: InstallTarget, client: Client | None, url: str | None) -> Proposal:
    directories, files = workspace_template.find_missing(target.root)
    if client is not None:
        server: ServerEntry
        if url is not None and client.http_members is not None:
            server = HttpServer(client.http_members(url))
        else:
            server = server_command.for_workspace(target.root)
            try:
                server_command.require_startable(server, client)
            except ConfigError as fault:
                raise ConfigFileError(client.title, fault) from fault
        files += changes.plan_install(client, server, target)
    manifest = target.manifest
    for change in files:
        manifest = changes.add_to_manifest(change, manifest)
    owners = {str(directory): workspace_template.OWNER for directory in directories}
    manifest = InstallManifest(manifest.files, {**owners, **manifest.directories})
    return Proposal(files, manifest, directories, starts_server=url is None)


def _propose_removal(target: InstallTarget, client: Client | None) -> Proposal:
    removed_clients = [client] if client else list(CLIENTS.values())
    files = [change for one in removed_clients for change in changes.plan_removal(one, target)]
    owners = {one.name for one in removed_clients}
    manifest = target.manifest
    remaining = {done.owner for done in manifest.files.values()} - owners - {workspace_template.OWNER}
    # The workspace's own files go with the last client, and only if they were never used.
    if not remaining and workspace_template.is_unused(target.root):
        owners.add(workspace_template.OWNER)
        files += changes.removal_changes(manifest, workspace_template.OWNER, target.root)
    directories = [Path(path) for path, owner in reversed(list(manifest.directories.items())) if owner in owners]
    left = InstallManifest(
        {path: done for path, done in manifest.files.items() if done.owner not in owners},
        {path: owner for path, owner in manifest.directories.items() if owner not in owners},
    )
    removed_directories = [path for path in directories if path.is_dir()]
    return Proposal(files, left, removed_directories=removed_directories, is_removal=True)


def decide(root: Path, proposal: Proposal) -> Decision:
    """Change all files or none. Nothing is recorded: a setup allows nothing by itself.

    Each file is compared again with what was shown, while it is replaced.
    """
    if proposal.starts_server and not server_command.can_start():
        raise UndeterminedError(
            "Kaiza cannot be started from other directories. Install it with pip or uv, then run this again."
        )
    # The manifest is there before the files that it lists, and stays until they are gone: after a crash
    # a removal still knows what to restore.
    if not proposal.is_removal:
        install_manifest.save(str(root), proposal.manifest)
    try:
        changes.apply_changes(proposal.files, proposal.directories, proposal.removed_directories)
    except ConfigError as fault:
        raise UndeterminedError(f"{fault.sentence}. Nothing was changed.") from fault
    if proposal.is_removal:
        install_manifest.save(str(root), proposal.manifest)
        return Decision(sum(not directory.is_dir() for directory in proposal.removed_directories), None)
    # The example plan counts as seen, so that a person may approve it in an editor before a server runs.
    try:
        workspace = Workspace(str(root), Caps())
    except errors.SystemError as fault:
        return Decision(0, f"The example plan was not noted as seen. {escape(fault.human_message)}")
    workspace.look_at_plans()
    workspace.close(current_timestamp())
    return Decision(0, None)
