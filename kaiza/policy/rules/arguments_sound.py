"""Arguments match the tool's schema, and paths in them are inside the workspace. Nothing is coerced."""

from collections.abc import Iterable
from typing import Any

from kaiza.domain import errors
from kaiza.domain.argument_faults import ArgumentFault, describe_fault
from kaiza.policy.case import Case

# One code names the whole error: that of the first kind in this order which occurs.
_CODE_ORDER = ("MISSING_REQUIRED_FIELD", "INVALID_INPUT_TYPE", "INVALID_INPUT_FORMAT", "INVALID_INPUT_VALUE")
_CODES = {
    "required": "MISSING_REQUIRED_FIELD",
    "type": "INVALID_INPUT_TYPE",
    "pattern": "INVALID_INPUT_FORMAT",
    "format": "INVALID_INPUT_FORMAT",
    "unicode": "INVALID_INPUT_FORMAT",
}
# The cause is written to the log, and names and faults come from the caller.
_MAX_FAULTS = 20
# Keywords whose value is a list of names, with what their faults say besides.
_ABOUT_NAMES: dict[str, dict[str, bool]] = {"required": {}, "additionalProperties": {"unknown": True}}
_HINTS = {"expected_hash": "It is the hash from read_file, for a large file with with_hash: true. "}
_UNUSABLE = ("range", "unicode")
"""Keywords of values that no schema has to forbid; the fault's value says what is expected."""
_MAX_NAME = 64
_REPORTED_BOUNDS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "enum", "type")


def check_arguments_sound(faults: Iterable[ArgumentFault]) -> errors.SystemError | None:
    """Refuse arguments with faults, and report all of them at once."""
    # A validator may report one fault several times, once for each branch of an alternative.
    described = (entry for fault in faults for entry in _describe_fault(fault))
    found = list({(entry["argument"], entry["code"]): entry for entry in described}.values())
    if not found:
        return None
    found.sort(key=lambda entry: (_CODE_ORDER.index(entry["code"]), entry["argument"]))
    first, others = found[0], f", and {len(found) - 1} more; see cause" if len(found) > 1 else ""
    hint = _HINTS.get(first["argument"], "") if first["code"] == "MISSING_REQUIRED_FIELD" else ""
    return errors.SystemError.tool_failure(
        first["code"],
        human_message=f"{describe_fault(first)}{others}. {hint}Correct the arguments and call again.",
        cause={"faults": found[:_MAX_FAULTS], "count": len(found)},
    )


def check_path_sound(case: Case) -> errors.SystemError | None:
    """Refuse a path that is absolute, not normal or outside the workspace, with the error of parsing it."""
    return case.fault


def _describe_fault(fault: ArgumentFault) -> list[dict[str, Any]]:
    path = [str(step)[:_MAX_NAME] for step in fault.path]
    code = _CODES.get(fault.keyword, "INVALID_INPUT_VALUE")
    if fault.keyword in _ABOUT_NAMES:
        names = [str(name)[:_MAX_NAME] for name in fault.value[:_MAX_FAULTS]]
        return [{"argument": ".".join([*path, name]), "code": code, **_ABOUT_NAMES[fault.keyword]} for name in names]
    described = {"argument": ".".join(path) or "arguments", "code": code}
    if fault.keyword in _UNUSABLE:
        described["expected"] = fault.value
    if fault.keyword in _REPORTED_BOUNDS:
        described[fault.keyword] = fault.value
    return [described]
