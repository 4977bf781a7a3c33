"""Settings of a workspace, and their file `kaiza.toml`."""

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from kaiza.domain.caps import Caps
from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.config.settings_file import FilePlace, parse_file, read_text
from kaiza.store.config.settings_merge import DIRECTIONS, Values, count_days

NAME = "kaiza.toml"
_PLACE = FilePlace("workspace", NAME, NAME)


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings of a workspace."""

    deny_read: tuple[DenyGlob, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    required_approval: str = "edit"
    release_by_person: bool = False
    checks_seconds: int = 300
    checks_network: bool = False
    checks_writable: tuple[str, ...] = ()
    answer_bytes: int = Caps().answer_bytes
    keep_days: int = 30
    """Days for which `kaiza gc` keeps objects."""


def make_settings(values: Values) -> Settings:
    """Settings from values by key; ValueError if a glob is invalid."""
    full = {key: values.get(key, direction.default) for key, direction in DIRECTIONS.items()}
    return Settings(
        deny_read=tuple(DenyGlob.parse(glob) for glob in full["deny_read"]),
        allow_read=frozenset(full["allow_read"]),
        sync_every=full["audit.sync"] == "every",
        required_approval=full["approval.require"],
        release_by_person=full["lock.release"] == "person",
        checks_seconds=full["checks.seconds"],
        checks_network=full["checks.network"],
        checks_writable=tuple(full["checks.writable"]),
        answer_bytes=full["answers.bytes"],
        keep_days=count_days(full["objects.keep"]),
    )


def read_settings_text(directory: int) -> str | None:
    """Text of the `kaiza.toml` in an open directory, None if there is none; BOOTSTRAP_FAILURE if it is invalid."""
    text = read_text(directory, _PLACE)
    if text is not None:
        parse_values(text)
    return text


@lru_cache(maxsize=16)
def parse_values(text: str) -> Values:
    """Values that the text of a `kaiza.toml` sets; BOOTSTRAP_FAILURE with the line of the first error."""
    return MappingProxyType(parse_file(text, _PLACE).list_values() if text.strip() else {})
