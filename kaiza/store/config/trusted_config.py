"""Trusted configuration, outside of all workspaces: `/etc/kaiza/config.toml` and `config.toml` of the user.

No agent can write there, so it has authority. It takes the keys of `kaiza.toml`, and a table `[trust]`.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kaiza.store.config.settings_file import FilePlace, file_error, parse_file, read_text
from kaiza.store.disk import small_files

MACHINE_DIRECTORY = Path("/etc/kaiza")
_NAME = "config.toml"


@dataclass(frozen=True, slots=True)
class TrustedMerge:
    """A plan is approved if its bytes are in `ref` of `repository`."""

    repository: str
    """Absolute path of the directory."""
    ref: str
    everything_below: bool = False
    """Whether every repository below the directory is meant as well."""


@dataclass(frozen=True, slots=True)
class TrustedConfig:
    """One configuration file: the settings that it sets, and whom it trusts. Empty if there is no file."""

    title: str
    """What messages call the file."""
    values: Mapping[str, Any] = field(default_factory=dict)
    merged: tuple[TrustedMerge, ...] = ()
    project: str | None = None


def read_machine_config() -> TrustedConfig:
    """The configuration of the machine; BOOTSTRAP_FAILURE if it is invalid or cannot be read."""
    return _read(MACHINE_DIRECTORY, FilePlace("machine", _NAME, "/etc/kaiza/config.toml"))


def read_user_config() -> TrustedConfig:
    """The configuration of the user; BOOTSTRAP_FAILURE if it is invalid or cannot be read."""
    directory = user_directory()
    is_usual = directory == Path("~/.config/kaiza").expanduser()
    title = f"{'~/.config' if is_usual else '$XDG_CONFIG_HOME'}/kaiza/{_NAME}"
    return _read(directory, FilePlace("user", _NAME, title))


def user_directory() -> Path:
    """`$XDG_CONFIG_HOME/kaiza`."""
    # A relative path is ignored, as the XDG specification requires; an agent's working directory would decide on it.
    configured = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (configured if configured.is_absolute() else Path("~/.config").expanduser()) / "kaiza"


def _read(directory: Path, place: FilePlace) -> TrustedConfig:
    text = _read_text(directory, place)
    if text is None or not text.strip():
        return TrustedConfig(place.title)
    file = parse_file(text, place)
    trust = file.model_dump()["trust"]
    merged = tuple(
        TrustedMerge(str(Path(entry["repository"]).expanduser()), entry["ref"], entry.get("everything_below", False))
        for entry in trust["merged"]
    )
    return TrustedConfig(place.title, file.list_values(), merged, trust["project"])


def _read_text(directory: Path, place: FilePlace) -> str | None:
    try:
        # People keep links to their configuration here.
        descriptor = small_files.open_directory(directory, follow=True)
    except OSError as error:
        # A dangling link is not the same as no configuration.
        if isinstance(error, FileNotFoundError | NotADirectoryError) and not os.path.lexists(directory):
            return None
        raise file_error(place, "unreadable") from error
    try:
        return read_text(descriptor, place)
    finally:
        os.close(descriptor)
