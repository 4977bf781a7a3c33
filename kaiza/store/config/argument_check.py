"""Finds the faults of a tool's arguments with jsonschema-rs, which is loaded anyway; importing jsonschema takes 90 ms.

It accepts 5.0 as an integer, as JSON Schema says. Kaiza does not, so floats are checked once more.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kaiza.domain.argument_faults import ArgumentFault

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator, ValidationError


def find_faults(validator: "Draft202012Validator", value: object) -> Iterator[ArgumentFault]:
    """All faults of a value; none if it is valid. What the validator cannot take is reported alone."""
    unusable = list(_find_unusable(value, ()))
    if unusable:
        yield from unusable
        return
    if not has_float(value):
        yield from map(_convert, validator.iter_errors(value))
        return
    faults = map(_convert, validator.iter_errors(value))
    yield from (fault for fault in faults if fault.keyword != "type")
    faults = map(_convert, validator.iter_errors(_without_whole_floats(value)))
    yield from (fault for fault in faults if fault.keyword == "type")


def has_float(value: object) -> bool:
    """Whether the value contains a float."""
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    if isinstance(value, list):
        return any(map(has_float, value))
    return isinstance(value, float)


def _without_whole_floats(value: object) -> object:
    """The value with each float replaced by one that is no integer."""
    if isinstance(value, dict):
        return {name: _without_whole_floats(member) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(_without_whole_floats, value))
    return 0.5 if isinstance(value, float) else value


def _find_unusable(value: object, path: tuple[str | int, ...]) -> Iterator[ArgumentFault]:
    """Numbers beyond 64 bits, and text that UTF-8 cannot hold: JSON has them, and no file or record."""
    if isinstance(value, dict):
        for name, member in value.items():
            shown = name.encode(errors="backslashreplace").decode()
            yield from _find_unusable(name, (*path, shown))
            yield from _find_unusable(member, (*path, shown))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _find_unusable(item, (*path, index))
    elif isinstance(value, str):
        if value.encode(errors="replace").decode() != value:
            yield ArgumentFault("unicode", "text without lone surrogates", path)
    elif isinstance(value, float) and not math.isfinite(value):
        yield ArgumentFault("range", "a number that 64 bits hold", path)


def _convert(error: "ValidationError") -> ArgumentFault:
    kind: Any = error.kind
    return ArgumentFault(kind.name, _value_of(kind), tuple(error.instance_path))


def _value_of(kind: Any) -> Any:
    """The value of a fault's keyword; the missing or unknown names where it is about names."""
    if kind.name == "required":
        return [kind.property]
    if kind.name == "additionalProperties":
        return kind.unexpected
    # A schema that names one type does not name a list.
    return kind.types[0] if kind.name == "type" and len(kind.types) == 1 else kind.value
