"""Shapes of the members of records that become facts; TypeError or KeyError where a member is not what ours have there.

The chain says nothing about a record's members, and a log that came with a clone may hold any.
"""

from collections.abc import Iterable, Mapping
from typing import Any

_MAX_NUMBER = 1 << 40
"""No file of ours has so many lines or bytes; sums of such numbers still fit into a snapshot."""


def require_texts(told: Mapping[str, Any], *names: str, or_null: bool = False) -> None:
    """TypeError where one of these members is no text. They become keys of the facts, or are read as paths."""
    if not all(isinstance(told[name], str) or (or_null and told[name] is None) for name in names):
        raise TypeError


def _require_numbers(told: Mapping[str, Any], *names: str) -> None:
    """TypeError where one of these members is no plausible number; what is added up has to stay one that JSON holds."""
    if not all(type(told[name]) is int and 0 <= told[name] <= _MAX_NUMBER for name in names):
        raise TypeError


def _require_each_text(told: Iterable[Any]) -> None:
    """TypeError where one of these is no text, as times and paths are."""
    if not all(isinstance(one, str) for one in told):
        raise TypeError


def require_intent(told: Mapping[str, Any]) -> None:
    """TypeError where the members of an intent are not what ours have there."""
    require_texts(told, "session_id", "tool_name", "plan_id", "plan_hash", or_null=True)
    _require_numbers(told, "seq")
    if not isinstance(told["detail"], dict | None) or not isinstance(told["changes"], list):
        raise TypeError
    for change in told["changes"]:
        require_texts(change, "path", "operation")
        require_texts(change, "source", "before_hash", "after_hash", or_null=True)
        _require_numbers(change, "size", "lines_added", "lines_removed")


def require_carried_state(told: Mapping[str, Any]) -> None:
    """TypeError where a part that is carried over does not have the form that `carried.parts` gives it."""
    for lock in told.get("locks", ()):
        require_texts(lock, "role", "error_code", "at")
        require_texts(lock, "session_id", "request_id", or_null=True)
        _require_numbers(lock, "seq")
    for one in told.get("approvals", ()):
        require_texts(one, "plan_id", "plan_hash")
    for one in told.get("withdrawn", ()):
        require_texts(one, "plan_id", "action")
    for one in told.get("released", ()):
        require_texts(one, "role")
    for one in [*told.get("released", ()), *told.get("reports", ())]:
        _require_each_text(one["at"])
    _require_carried_work(told)


def _require_carried_work(told: Mapping[str, Any]) -> None:
    """The same for what was approved, used and left open."""
    for one in told.get("seals", ()):
        require_texts(one, "plan_id")
        require_texts(one["seal"], "plan_hash", "how")
        require_texts(one["seal"], "approved_by", or_null=True)
        _require_numbers(one["seal"], "seq")
    for one in told.get("usage", ()):
        require_texts(one, "plan_id")
        numbers = {name: number for name, number in one["use"].items() if name != "files"}
        files = dict(one["use"]["files"])
        _require_numbers(numbers, *numbers)
        _require_numbers(files, *files)
        _require_each_text(files)
    for one in told.get("intents", ()):
        require_texts(one, "request_id")
        _require_numbers(one, "at")
        require_intent(one["intent"])
