"""Refs whose plans are approved by merge: for one workspace, for the user, or for the machine."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kaiza.store.config import configuration
from kaiza.store.config.configuration import Configuration
from kaiza.store.disk.byte_io import name_stamp
from kaiza.store.trust.timed_cache import TimedCache
from kaiza.store.trust.trust_file import read_trust

WORKSPACE_SOURCE = "kaiza trust"
# What git gives a meaning of its own in the name of a ref, and what none can contain.
_FORBIDDEN = frozenset(" ~^:?*[\\\x7f")
_configurations: TimedCache[object, tuple[Configuration, ...]] = TimedCache()


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
    for read in read_configurations():
        if read.project is not None:
            return read.project, read.title
    project = read_trust(state_path).project
    return None if project is None else (project, WORKSPACE_SOURCE)


def read_configurations() -> tuple[Configuration, ...]:
    """The machine's and the user's configuration."""
    directories = configuration.MACHINE_DIRECTORY, configuration.user_directory()
    key = tuple((directory, name_stamp(f"{directory}/config.toml")) for directory in directories)
    # An invalid file is an exception and is not kept.
    return _configurations.get(
        key, lambda: (configuration.read_machine_configuration(), configuration.read_user_configuration())
    )


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
    for read in read_configurations():
        for entry in read.merged:
            directory = Path(entry.repository).resolve()
            if Path(root) == directory or (entry.everything_below and directory in Path(root).parents):
                yield TrustedRef(entry.ref, read.title)
