"""Settings of a workspace: the default of each, which of two values is stricter, and their file `kaiza.toml`."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from kaiza.domain.caps import Caps
from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.config.settings_file import FilePlace, parse_file, read_text

PERIOD_PATTERN = "[1-9][0-9]{0,3}[dw]"
_PERIOD = re.compile("([1-9][0-9]{0,3})([dw])")
Values = Mapping[str, Any]
"""Settings by dotted key; a key that is not set is missing."""


@dataclass(frozen=True, slots=True)
class Direction:
    """Default of a setting, and a function that returns the stricter of two values."""

    default: Any
    choose_stricter: Callable[[Any, Any], Any]


def _unite(one: list[str], other: list[str]) -> list[str]:
    return sorted({*one, *other})


def _intersect(one: list[str], other: list[str]) -> list[str]:
    return sorted({*one} & {*other})


def _in_order(*words: str) -> Callable[[str, str], str]:
    """Choose the word that comes later. ValueError for another word."""
    return lambda one, other: words[max(words.index(one), words.index(other))]


def count_days(period: str) -> int:
    """Days of a period such as `30d` or `8w`; ValueError for anything else."""
    match = _PERIOD.fullmatch(period)
    if match is None:
        raise ValueError(period)
    return int(match[1]) * (7 if match[2] == "w" else 1)


DIRECTIONS: Mapping[str, Direction] = MappingProxyType(
    {
        "deny_read": Direction([], _unite),
        "allow_read": Direction([], _intersect),
        "approval.require": Direction("edit", _in_order("edit", "command", "signature")),
        "approval.confirm": Direction("yes", _in_order("yes", "id")),
        "lock.release": Direction("report", _in_order("report", "person")),
        "audit.sync": Direction("batched", _in_order("batched", "every")),
        "checks.seconds": Direction(300, min),
        "checks.network": Direction(False, min),
        "checks.writable": Direction([], _intersect),
        "answers.bytes": Direction(Caps().answer_bytes, min),
        "objects.keep": Direction("30d", lambda one, other: max(one, other, key=count_days)),
    }
)


def choose_stricter(key: str, *values: Any) -> Any:
    """The strictest of the values of one setting; its default if there is no value."""
    if not values:
        return DIRECTIONS[key].default
    result = values[0]
    for value in values:  # the first one too: lists come out sorted
        result = DIRECTIONS[key].choose_stricter(result, value)
    return result


def is_valid(values: object) -> bool:
    """Whether these are settings: known keys with values of the right type."""
    return isinstance(values, dict) and all(_is_valid_value(key, value) for key, value in values.items())


def _is_valid_value(key: object, value: object) -> bool:
    if not isinstance(key, str) or key not in DIRECTIONS or type(value) is not type(DIRECTIONS[key].default):
        return False
    try:
        choose_stricter(key, value)
    except (TypeError, ValueError):
        return False
    return not isinstance(value, list) or all(isinstance(item, str) for item in value)


NAME = "kaiza.toml"
_PLACE = FilePlace("workspace", NAME, NAME)


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings of a workspace."""

    deny_read: tuple[DenyGlob, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    required_approval: str = "edit"
    confirm_by_word: bool = False
    """Whether a person confirms by typing the plan's id, or a word, instead of `y`."""
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
        confirm_by_word=full["approval.confirm"] == "id",
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
