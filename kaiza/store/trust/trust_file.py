"""What a person trusts: refs whose plans are approved by merge, and the project's name in signatures.

For one workspace in `trust.json` in its state directory, written only by `kaiza trust`; for the user and the machine in
their configuration. `trust.json` holds the workspace's id: another workspace that comes to be at the same path is not
trusted.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.store.config import trusted_config
from kaiza.store.config.trusted_config import TrustedConfig
from kaiza.store.disk import state_dir
from kaiza.store.disk.byte_io import name_stamp
from kaiza.store.disk.state_dir import StateFile
from kaiza.store.trust.identity import read_known_id
from kaiza.store.trust.timed_cache import TimedCache

FILE = StateFile("trust.json")
SIGNERS_NAME = "allowed_signers"


@dataclass(frozen=True, slots=True)
class WorkspaceTrust:
    """Trusted refs by their full names, and the project's name in signatures."""

    merged_refs: tuple[str, ...] = ()
    project: str | None = None
    problem: str | None = None
    """Why the file cannot be read; it then gives no authority."""


def read_trust(state_path: Path) -> WorkspaceTrust:
    """What is trusted for the workspace; nothing if there is no file, it is damaged or another workspace's."""
    try:
        found = FILE.load(state_path, _parse)
        is_own = found is not None and found[0] == read_known_id(state_path)
        return found[1] if found is not None and is_own else WorkspaceTrust()
    except (OSError, ValueError):
        return WorkspaceTrust(problem=f"{FILE.path_in(state_path)} cannot be read; delete it and run kaiza trust again")


def is_of_another_workspace(state_path: Path) -> bool:
    """Whether a workspace that was at this path before is trusted, and this one is not."""
    try:
        found = FILE.load(state_path, _parse)
        return found is not None and found[0] != read_known_id(state_path)
    except (OSError, ValueError):
        return True


def save_trust(root: str, trust: WorkspaceTrust) -> None:
    """Replace the file; durable when this returns. The workspace has its id: the decision is recorded before."""
    state_path = state_dir.path_of(root, create=True)
    if is_of_another_workspace(state_path):
        (state_path / SIGNERS_NAME).unlink(missing_ok=True)  # the signers were that workspace's
    members = {
        "workspace": read_known_id(state_path),
        "merged": [{"ref": ref} for ref in trust.merged_refs],
        "project": trust.project,
    }
    FILE.replace(state_path, members, durable=True)


def _parse(document: dict[str, Any]) -> tuple[str | None, WorkspaceTrust]:
    """The id of the workspace that is trusted, and what is trusted for it."""
    refs, project = tuple(entry["ref"] for entry in document["merged"]), document["project"]
    if not all(isinstance(ref, str) for ref in refs) or not isinstance(project, str | None):
        raise TypeError
    return document["workspace"], WorkspaceTrust(refs, project)


WORKSPACE_SOURCE = "kaiza trust"
# What git gives a meaning of its own in the name of a ref, and what none can contain.
_FORBIDDEN = frozenset(" ~^:?*[\\\x7f")
_trusted_configs: TimedCache[object, tuple[TrustedConfig, ...]] = TimedCache()


@dataclass(frozen=True, slots=True)
class TrustedRef:
    """The full name of a ref, and where it is trusted: `kaiza trust` or the title of a configuration file."""

    name: str
    source: str


def list_trusted_refs(root: str, state_path: Path) -> list[TrustedRef]:
    """The refs trusted for a workspace. BOOTSTRAP_FAILURE if a configuration file is invalid."""
    own = [TrustedRef(name, WORKSPACE_SOURCE) for name in read_trust(state_path).merged_refs]
    return [*own, *_configured_refs(root)]


def find_project(state_path: Path) -> tuple[str, str] | None:
    """The project's name in signatures, and where it is set; None if it is not. BOOTSTRAP_FAILURE as above."""
    for read in read_trusted_configs():
        if read.project is not None:
            return read.project, read.title
    project = read_trust(state_path).project
    return None if project is None else (project, WORKSPACE_SOURCE)


def read_trusted_configs() -> tuple[TrustedConfig, ...]:
    """The machine's and the user's configuration."""
    directories = trusted_config.MACHINE_DIRECTORY, trusted_config.user_directory()
    key = tuple((directory, name_stamp(f"{directory}/config.toml")) for directory in directories)
    # An invalid file is an exception and is not kept.
    return _trusted_configs.get(key, lambda: (trusted_config.read_machine_config(), trusted_config.read_user_config()))


def expand_ref(name: str) -> str:
    """The full name of a ref: `origin/main` is the remote-tracking branch. ValueError if it cannot be one.

    git itself would prefer a tag of that name, and anyone who can push to the remote can make one.
    """
    if (
        not name
        or ".." in name
        or "@{" in name
        or any(character < " " or character in _FORBIDDEN for character in name)
    ):
        raise ValueError(f"{name!r} is not the name of a ref")
    return name if name.startswith("refs/") else f"refs/remotes/{name}"


def _configured_refs(root: str) -> Iterator[TrustedRef]:
    for read in read_trusted_configs():
        for entry in read.merged:
            directory = Path(entry.repository).resolve()
            if Path(root) == directory or (entry.everything_below and directory in Path(root).parents):
                yield TrustedRef(entry.ref, read.title)
