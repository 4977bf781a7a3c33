"""Arguments are what the tool's schema says, never coerced; all faults are told at once."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from kaiza.domain import errors

_CODE_ORDER = ("MISSING_REQUIRED_FIELD", "INVALID_INPUT_TYPE", "INVALID_INPUT_FORMAT", "INVALID_INPUT_VALUE")
_CODES = {
    "required": "MISSING_REQUIRED_FIELD",
    "type": "INVALID_INPUT_TYPE",
    "pattern": "INVALID_INPUT_FORMAT",
    "format": "INVALID_INPUT_FORMAT",
}
_MAX_FAULTS = 20
_MAX_NAME = 64
_REPORTED_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enum", "type")


class SchemaFault(Protocol):
    """What a JSON Schema validator says of one place."""

    validator: Any
    validator_value: Any
    instance: Any

    @property
    def absolute_path(self) -> Iterable[Any]:
        """The way from the root to the place."""
        ...

    @property
    def context(self) -> Any:
        """What each branch of an alternative said."""
        ...


def check_arguments_sound(faults: Iterable[SchemaFault]) -> errors.SystemError | None:
    """Refuse arguments with faults, named by the first kind that occurs."""
    found = list({(one["argument"], one["code"]): one for fault in faults for one in _describe_fault(fault)}.values())
    if not found:
        return None
    found.sort(key=lambda one: (_CODE_ORDER.index(one["code"]), one["argument"]))
    return errors.SystemError.tool_failure(
        found[0]["code"],
        human_message=_fault_sentence(found),
        cause={"faults": found[:_MAX_FAULTS], "count": len(found)},
    )


def _describe_fault(fault: SchemaFault) -> list[dict[str, Any]]:
    way = [str(step)[:_MAX_NAME] for step in fault.absolute_path]
    code = _CODES.get(fault.validator, "INVALID_INPUT_VALUE")
    if fault.validator == "required" and isinstance(fault.instance, Mapping):
        names = [name for name in fault.validator_value if name not in fault.instance]
        return [{"argument": ".".join([*way, name]), "code": code} for name in names]
    if fault.validator == "additionalProperties":
        return [{"argument": ".".join([*way, name]), "code": code, "unknown": True} for name in _unknown_names(fault)]
    told = {"argument": ".".join(way) or "arguments", "code": code}
    if fault.validator in _REPORTED_BOUNDS:
        told[fault.validator] = fault.validator_value
    return [told]


def _unknown_names(fault: SchemaFault) -> list[str]:
    known = getattr(fault, "schema", {}).get("properties", {})
    return [str(name)[:_MAX_NAME] for name in fault.instance if name not in known][:_MAX_FAULTS]


def _fault_sentence(found: list[dict[str, Any]]) -> str:
    first = found[0]
    name = first["argument"]
    if first["code"] == "MISSING_REQUIRED_FIELD":
        wrong = f"{name} is required"
    elif first.get("unknown"):
        wrong = f"{name} is not an argument of this tool"
    else:
        wrong = f"{name} {_describe_bound(first)}"
    others = f", and {len(found) - 1} more; cause lists them all" if len(found) > 1 else ""
    return f"{wrong}{others}. Correct the arguments and call again."


def _describe_bound(fault: Mapping[str, Any]) -> str:
    if "type" in fault:
        return f"must be of type {fault['type']}"
    if "enum" in fault:
        return f"must be one of {', '.join(map(str, fault['enum']))}"
    words = {
        "minimum": "must be at least",
        "maximum": "must be at most",
        "minLength": "must have a length of at least",
        "maxLength": "must have a length of at most",
        "minItems": "must have a number of items of at least",
        "maxItems": "must have a number of items of at most",
    }
    return next((f"{words[key]} {fault[key]}" for key in words if key in fault), "is malformed")
