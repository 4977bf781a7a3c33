"""Faults of a tool's arguments, as the cause of an error lists them, in words."""

from collections.abc import Mapping
from typing import Any, NamedTuple

_BOUNDS = {
    "minimum": "must be at least {}",
    "maximum": "must be at most {}",
    "minLength": "must be {} or more characters long",
    "maxLength": "must be at most {} characters long",
    "minItems": "must have {} or more items",
    "maxItems": "must have at most {} items",
}
_ARTICLES = {"integer": "an integer", "array": "an array", "object": "an object"}


class ArgumentFault(NamedTuple):
    """One fault as a validator finds it: the keyword of the schema, its value, and the path to the faulty value."""

    keyword: str
    value: Any
    path: tuple[str | int, ...]


def describe_fault(fault: Mapping[str, Any]) -> str:
    """Describe one fault in a clause without a full stop, such as `path is required`."""
    name = fault["argument"]
    if fault["code"] == "MISSING_REQUIRED_FIELD":
        return f"{name} is required"
    if fault.get("unknown"):
        return f"{name} is not an argument of this tool"
    return f"{name} {_describe_bound(fault)}"


def _describe_bound(fault: Mapping[str, Any]) -> str:
    if "expected" in fault:
        return f"must be {fault['expected']}"
    if "type" in fault:
        types = fault["type"] if isinstance(fault["type"], list) else [fault["type"]]
        return f"must be {' or '.join(_ARTICLES.get(name, f'a {name}') for name in types)}"
    if "enum" in fault:
        return f"must be one of {', '.join(map(str, fault['enum']))}"
    return next((phrase.format(fault[bound]) for bound, phrase in _BOUNDS.items() if bound in fault), "is malformed")
