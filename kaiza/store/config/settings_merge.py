"""Direction of each setting: its default, and which of two values is the stricter one."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from kaiza.domain.caps import Caps

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
