"""Adopted settings of a workspace: `settings.json` in its state directory.

They keep what was stricter once, when a checkout brings an older `kaiza.toml`, and hold what a person allowed.
"""

from pathlib import Path

import orjson

from kaiza.domain import errors
from kaiza.store.config.settings import NAME, make_settings, read_settings_text
from kaiza.store.config.settings_layers import SettingsLayers, read_outside
from kaiza.store.config.settings_merge import Values, is_valid
from kaiza.store.disk import state_dir
from kaiza.store.trust.binding import Binding

_NAME = "settings.json"
_FORMAT = 1


def read_layers(root: str, directory: int, binding: Binding) -> SettingsLayers:
    """The settings of a workspace, whose root is open, from all places. BOOTSTRAP_FAILURE if one cannot be read."""
    text, adopted = read_settings_text(directory), load_adopted(state_dir.path_of(root))
    if binding.is_new:
        adopted = None  # of an earlier workspace at the same path
    return SettingsLayers(read_outside(), adopted or {}, text, binding.is_foreign)


def load_adopted(state_path: Path) -> Values | None:
    """The adopted values; None if nothing was adopted. BOOTSTRAP_FAILURE if the file is damaged."""
    path = state_path / _NAME
    try:
        document = orjson.loads(state_dir.read_file(path))
        if document["format"] != _FORMAT or not is_valid(document["values"]):
            raise ValueError("not a file of adopted settings")  # noqa: TRY301  one handler for every damage
        values: Values = document["values"]
        make_settings(values)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError) as damage:
        # Without it, what was stricter once would be lost.
        raise errors.SystemError.startup_failure(
            "BOOTSTRAP_FAILURE",
            human_message="The adopted settings in the state directory cannot be read. Remove settings.json there, "
            "and run kaiza adopt.",
            cause={"file": _NAME, "why": "unreadable"},
        ) from damage
    return values


def save_adopted(root: str, values: Values) -> None:
    """Replace the adopted values, durable when this returns. OSError on failure."""
    state_path = state_dir.path_of(root, create=True)
    state_dir.replace_file(state_path / _NAME, orjson.dumps({"format": _FORMAT, "values": dict(values)}))
    state_dir.sync_directory(state_path)


def find_edits(root: str, layers: SettingsLayers) -> Values:
    """Values that are stricter than the adopted ones, if `kaiza.toml` was edited here. May start git."""
    stricter = {} if layers.is_foreign else layers.list_stricter()
    if not stricter:
        return {}
    from kaiza.store.trust.git_origin import Origin, find_origins  # noqa: PLC0415  most sessions start no git

    [origin] = find_origins(root, ".", [(NAME, (layers.text or "").encode())])
    return stricter if origin is Origin.HERE else {}
