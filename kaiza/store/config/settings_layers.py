"""Settings of a workspace from several places, and which value is in force.

The configuration of the machine and of the user sets limits. Below them, a person's adopted values and `kaiza.toml`
each count where they are stricter: a file that anybody may have written never loosens anything.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.config.settings import DIRECTIONS, NAME, Settings, Values, choose_stricter, make_settings, parse_values
from kaiza.store.config.trusted_config import TrustedConfig, read_machine_config, read_user_config

ADOPTED = "adopted"
DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class SettingInForce:
    """One setting: its value, and the places that it comes from."""

    key: str
    value: Any
    places: Sequence[str]


@dataclass(frozen=True, slots=True)
class LooseningSetting:
    """A value in `kaiza.toml` that does not count, because a person has not adopted it."""

    key: str
    wanted: Any
    in_force: Any


@dataclass(frozen=True, slots=True)
class SettingsLayers:
    """What each place sets."""

    outside: Sequence[TrustedConfig] = ()
    adopted: Values = field(default_factory=dict)
    text: str | None = None
    """Text of `kaiza.toml`; None if there is no such file."""
    is_foreign: bool = False
    """Whether nothing is adopted, and values may only restrict."""

    @property
    def file_values(self) -> Values:
        """The values that `kaiza.toml` sets."""
        return parse_values(self.text or "")

    def values_in_force(self) -> dict[str, Any]:
        """The value of every setting."""
        return {key: self._value_in_force(key) for key in DIRECTIONS}

    def settings_in_force(self) -> Settings:
        """The settings that apply."""
        return make_settings(self.values_in_force())

    def list_in_force(self) -> list[SettingInForce]:
        """Every setting with the places that it comes from."""
        return [
            SettingInForce(key, value, self._find_places(key, value)) for key, value in self.values_in_force().items()
        ]

    def list_loosening(self) -> list[LooseningSetting]:
        """Values of `kaiza.toml` that do not count until a person adopts them."""
        now = self.values_in_force()
        after = replace(self, adopted=self.file_values, is_foreign=False).values_in_force()
        return [LooseningSetting(key, after[key], now[key]) for key in DIRECTIONS if after[key] != now[key]]

    def list_stricter(self) -> dict[str, Any]:
        """Values of `kaiza.toml` that are stricter than the adopted ones; none if there is no such file."""
        if self.text is None:
            return {}
        stricter = {}
        for key in DIRECTIONS:
            adopted = choose_stricter(key, self.adopted.get(key, self.find_base(key)))
            if (merged := self._merge_file(key, adopted)) != adopted:
                stricter[key] = merged
        exemptions = self._merge_file("allow_read", self.adopted.get("allow_read", self.find_base("allow_read")))
        if "deny_read" in stricter and exemptions:
            # Exemptions hold against the denials of their own place, so they are adopted together.
            stricter["allow_read"] = exemptions
        return stricter

    def find_limit(self, key: str) -> Any:
        """The value set outside of the workspace; None if none is."""
        values = [layer.values[key] for layer in self.outside if key in layer.values]
        return choose_stricter(key, *values) if values else None

    def find_base(self, key: str) -> Any:
        """The value if the workspace sets none."""
        limit = self.find_limit(key)
        return DIRECTIONS[key].default if limit is None else limit

    @property
    def _places(self) -> dict[str, Values]:
        """What each place sets, by its title."""
        outside = {layer.title: layer.values for layer in self.outside}
        return {**outside, NAME: self.file_values, ADOPTED: self.adopted}

    def _value_in_force(self, key: str) -> Any:
        base = self.find_base(key)
        value = self.adopted.get(key, base)
        if self.is_foreign or self.find_limit(key) is not None:
            value = choose_stricter(key, value, base)
        return self._merge_file(key, value)

    def _merge_file(self, key: str, adopted: Any) -> Any:
        """The stricter of a value and that of `kaiza.toml`. Exemptions hold against denials of their own place only."""
        value = choose_stricter(key, adopted, self.file_values.get(key, self.find_base(key)))
        if key != "allow_read" or not value:
            return value
        places = [values for values in self._places.values() if "allow_read" not in values]
        denials = [DenyGlob.parse(glob) for values in places for glob in values.get("deny_read", ())]
        kept = []
        for path in value:
            parts = path.split("/")
            prefixes = [parts[:depth] for depth in range(1, len(parts) + 1)]
            if not any(denial.matches(prefix) for denial in denials for prefix in prefixes):
                kept.append(path)
        return kept

    def _find_places(self, key: str, value: Any) -> list[str]:
        setting = {place: values[key] for place, values in self._places.items() if key in values}
        equal = [place for place, set_value in setting.items() if choose_stricter(key, set_value) == value]
        if value == DIRECTIONS[key].default and not equal:
            return [DEFAULT]
        return equal or list(setting)


def read_outside() -> tuple[TrustedConfig, TrustedConfig]:
    """The configuration of the machine and of the user; BOOTSTRAP_FAILURE if one is invalid."""
    return read_machine_config(), read_user_config()
