"""What to say after a setup: what was done, what stays, which files are personal, and what to do next."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

from kaiza.domain.server_url import TOKEN_VARIABLE
from kaiza.render.terminal import escape, format_count
from kaiza.store import git
from kaiza.store.clients import changes, install_manifest
from kaiza.store.clients.changes import ConfigChange, InstallTarget
from kaiza.store.clients.client import Client, ServerCommand
from kaiza.store.clients.registry import ALIASES, CLIENTS
from kaiza.store.documents import workspace_template

__all__ = ["ALIASES", "CLIENTS", "TOKEN_VARIABLE", "ConfigChange"]

_KEPT = ("plans", "audit", ".kaiza")
_DEEDS = ("created", "changed", "deleted")


def deed_of(change: ConfigChange) -> str:
    """What happens to the file: created, changed or deleted."""
    if change.after is None:
        return "deleted"
    return "created" if change.before is None else "changed"


def list_by_deed(files: Sequence[ConfigChange]) -> Iterator[tuple[str, list[ConfigChange]]]:
    """The files, grouped by what happens to them."""
    for deed in _DEEDS:
        group = [change for change in files if deed_of(change) == deed]
        if group:
            yield deed, group


def list_kept(root: Path) -> list[str]:
    """What `--remove` leaves in the workspace."""
    return [f"{name}/" for name in _KEPT if (root / name).is_dir()]


def describe_removal(root: Path, files: Sequence[ConfigChange], removed_directories: int) -> Iterator[str]:
    """Sentences on what was removed, and on what stays."""
    for deed, group in list_by_deed(files):
        yield f"{format_count(len(group), 'file')} {deed}: {', '.join(escape(change.name) for change in group)}"
    if removed_directories:
        noun = "directory" if removed_directories == 1 else "directories"
        yield f"{removed_directories} empty {noun} removed."
    kept = list_kept(root)
    if kept:
        yield f"Kept, with your plans and the log: {', '.join(kept)}. Delete them if you no longer need them."


def describe_setup(root: Path, client_name: str, *, over_http: bool) -> Iterator[str]:
    """Sentences on what to know and do once a client is configured."""
    client, target = CLIENTS[client_name], _target(root)
    entries = list(changes.find_entries(client, target))
    for file, text, _ in entries:
        remark = file.find_remark(text)
        if remark:
            yield f"{file.name}: {remark}."
    yield client.next_steps
    if not client.is_tried:
        yield f"This configuration is written from {client.title}'s documentation. It is not tested with the program."
    personal = [
        file.name
        for file, _, entry in entries
        if file.location == "workspace" and isinstance(entry, ServerCommand) and Path(entry.command).is_absolute()
    ]
    # Not where git has been asked to ignore it already.
    ignored = git.run(str(root), "check-ignore", "-q", personal[0]) if personal else None
    if ignored is not None and ignored.returncode == 1:
        yield (
            f"Do not commit {personal[0]}: it contains paths of this machine. To keep it out of git in this clone, add "
            "it to .git/info/exclude. Others run `kaiza init` themselves."
        )
    if over_http:
        yield f"Set {TOKEN_VARIABLE} where you start it to what `kaiza token new NAME` prints on the server's side."
    example = f"plans/{workspace_template.EXAMPLE_PLAN_ID}.md"
    yield f"Next, read {example}. `kaiza doctor` checks that everything is in place."


def describe_workspace(root: Path) -> Iterator[str]:
    """Sentences for a setup without a client: the clients found."""
    yield f"The workspace is ready: {escape(str(root))}"
    detected, target = detect_clients(root), _target(root)
    if not detected:
        yield f"No client was found. Name one with `kaiza init --client NAME`: {', '.join(CLIENTS)}"
    for client in detected:
        entries = changes.find_entries(client, target)
        is_configured = any(changes.is_for_workspace(entry, root) for _, _, entry in entries)
        yield f"{client.title}: " + (
            "configured" if is_configured else f"found; next: `kaiza init --client {client.name}`"
        )


def detect_clients(root: Path) -> list[Client]:
    """Clients that are installed on this machine or have files in the workspace."""
    places = {"workspace": root, "home": Path.home()}
    return [
        client
        for client in CLIENTS.values()
        if which(client.program) or any(places[where].joinpath(path).exists() for where, path in client.detection_paths)
    ]


def _target(root: Path) -> InstallTarget:
    return InstallTarget(root, Path.home(), install_manifest.load(str(root)))
