"""Adopted settings of a workspace: `settings.json` in its state directory.

The strictest values seen, so that checking out an older `kaiza.toml` loosens nothing, and the looser ones that a
person adopted.
"""

from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.store.config.settings import NAME, Values, is_valid, make_settings, read_settings_text
from kaiza.store.config.settings_layers import SettingsLayers, read_outside
from kaiza.store.disk import state_dir
from kaiza.store.disk.state_dir import StateFile
from kaiza.store.trust.binding import Binding

_FILE = StateFile("settings.json")


def read_layers(root: str, directory: int, binding: Binding) -> SettingsLayers:
    """The settings of a workspace, whose root is open, from all places. BOOTSTRAP_FAILURE if one cannot be read."""
    text, adopted = read_settings_text(directory), load_adopted(state_dir.path_of(root))
    if binding.is_new:
        adopted = None  # of an earlier workspace at the same path
    return SettingsLayers(read_outside(), adopted or {}, text, binding.is_foreign)


def load_adopted(state_path: Path) -> Values | None:
    """The adopted values; None if nothing was adopted. BOOTSTRAP_FAILURE if the file is damaged."""
    try:
        return _FILE.load(state_path, _parse)
    except (OSError, ValueError) as damage:
        # Taken for missing, it would loosen what was stricter once.
        raise errors.SystemError.startup_failure(
            "BOOTSTRAP_FAILURE",
            human_message="The adopted settings in the state directory cannot be read. Remove settings.json there, "
            "and run kaiza adopt.",
            cause={"file": _FILE.name, "why": "unreadable"},
        ) from damage


def save_adopted(root: str, values: Values) -> None:
    """Replace the adopted values, durable when this returns. OSError on failure."""
    _FILE.replace(state_dir.path_of(root, create=True), {"values": dict(values)}, durable=True)


def find_edits(root: str, layers: SettingsLayers) -> Values:
    """Values that are stricter than the adopted ones, if `kaiza.toml` was edited here. May start git."""
    stricter = {} if layers.is_foreign else layers.list_stricter()
    if not stricter:
        return {}
    from kaiza.store.trust.git_origin import Origin, find_origins  # noqa: PLC0415  most sessions start no git

    [origin] = find_origins(root, ".", [(NAME, (layers.text or "").encode())])
    return stricter if origin is Origin.HERE else {}


def _parse(document: dict[str, Any]) -> Values:
    values: Values = document["values"]
    if not is_valid(values):
        raise ValueError(values)
    make_settings(values)  # ValueError for a glob that cannot be parsed
    return values
