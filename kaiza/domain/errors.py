"""SystemError, the only exception that Kaiza raises on purpose.

The raiser gives code, message and cause; the boundary adds session, role, tool and time. Always written
`errors.SystemError`, because the name is also a builtin.
"""

import traceback
from collections.abc import Mapping
from functools import partial
from typing import Any, TypedDict, Unpack

import orjson

from kaiza.domain import error_codes
from kaiza.domain.error_envelope import KEYS, bound_cause, bound_text
from kaiza.domain.plain_values import ask, copy_value, describe_exception, is_instance

_MAX_STACK = 32 * 1024
_EVIDENCE_DEPTH = 8
_EVIDENCE_VALUES = 4096


class ErrorContext(TypedDict, total=False):
    """Keyword arguments of the factory methods, besides the code."""

    error_code: str
    human_message: str
    role: str | None
    session_id: str | None
    workspace_root: str | None
    tool_name: str | None
    invariant_id: str | None
    phase_id: str | None
    plan_hash: str | None
    cause: object
    timestamp: str
    evidence: Mapping[str, object] | None


class SystemError(Exception):  # noqa: A001
    """A failure with a registered code. Use the factory methods; KeyError for a code that is not registered.

    `evidence` is sent to the client as a second content block and is never recorded.
    """

    def __init__(self, error_code: str, context: Mapping[str, Any]) -> None:
        self.error_code = error_code
        self.human_message: str = (
            context.get("human_message") or f"{error_codes.SYSTEM_ERROR_CODES[error_code].meaning}."
        )
        self.role: str | None = context.get("role")
        self.session_id: str | None = context.get("session_id")
        self.workspace_root: str | None = context.get("workspace_root")
        self.tool_name: str = context.get("tool_name") or "unknown"
        self.invariant_id: str | None = context.get("invariant_id")
        self.phase_id: str | None = context.get("phase_id")
        self.plan_hash: str | None = context.get("plan_hash")
        self.cause: object = context.get("cause")
        if error_code in error_codes.INVALID_PARAMS_CODES and isinstance(self.cause, Mapping | None):
            # The class of an argument's error, so that a client need not know its several codes.
            self.cause = {"class": "INVALID_PARAMS", **(self.cause or {})}
        self.timestamp: str | None = context.get("timestamp")
        self.evidence: Mapping[str, object] | None = context.get("evidence")
        super().__init__(f"{error_code}: {self.human_message}")

    def to_envelope(self, known: ErrorContext | None = None) -> dict[str, Any]:
        """Build the error envelope; `known` is what the boundary knows better than the raiser."""
        members: dict[str, Any] = {key: ask(partial(getattr, self, key), None) for key in KEYS}
        members.update({key: value for key, value in (known or {}).items() if value is not None})
        cause = bound_cause(members.pop("cause"))
        texts = {key: bound_text(member) for key, member in members.items()}
        if texts["error_code"] not in error_codes.SYSTEM_ERROR_CODES:
            texts["error_code"] = "INTERNAL_ERROR"
        return {key: cause if key == "cause" else texts[key] for key in KEYS}

    def copy_plain(self) -> "SystemError":
        """A copy whose members are plain values, whatever they are here. Never raises."""
        members = SystemError.to_envelope(self)
        evidence = _copy_evidence(ask(lambda: self.evidence, None))
        copied = SystemError.tool_failure(members["error_code"], **members, evidence=evidence)
        copied.__cause__ = self  # for the stack trace
        return copied

    def format_stack(self) -> str:
        """Stack trace of the error, including that of an exception it wraps; the end of a long one."""
        text = ask(lambda: "".join(traceback.format_exception(self)), "The stack trace cannot be formatted.\n")
        return text[-_MAX_STACK:].encode("utf-8", "backslashreplace").decode()

    @classmethod
    def from_unknown(
        cls, error: object, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """Wrap any raised value; a SystemError is returned unchanged.

        The cause of a wrapped exception is its message, code and name, with the given details beside them.
        """
        if is_instance(error, SystemError):
            return error
        merged: dict[str, Any] = {**(context or {}), **more}
        details = merged.get("cause")
        if isinstance(error, BaseException) and isinstance(details, Mapping):
            merged["cause"] = {**describe_exception(error), **details}
        else:
            merged.setdefault("cause", error)
        wrapped = cls(merged.pop("error_code", "UNKNOWN_TOOL_FAILURE"), merged)
        wrapped.__cause__ = error if isinstance(error, BaseException) else None
        return wrapped

    @classmethod
    def invariant_violation(
        cls, invariant_id: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """Error for a violated invariant; INVARIANT_VIOLATION unless the context names another code."""
        merged: dict[str, Any] = {**(context or {}), **more, "invariant_id": invariant_id}
        return cls(merged.pop("error_code", "INVARIANT_VIOLATION"), merged)

    @classmethod
    def tool_failure(
        cls, error_code: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """Error for an expected failure, with this code."""
        return cls(error_code, {**(context or {}), **more})

    @classmethod
    def startup_failure(
        cls, error_code: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """Error for a server that cannot start."""
        return cls(error_code, {"tool_name": "startup", **(context or {}), **more})


def _copy_evidence(evidence: object) -> Mapping[str, object] | None:
    """The evidence as a client gets it; bounded only if it is not JSON."""
    if not is_instance(evidence, Mapping):
        return None
    copied = ask(lambda: orjson.loads(orjson.dumps(evidence)), None) or copy_value(
        evidence, _EVIDENCE_DEPTH, _EVIDENCE_VALUES
    )
    return copied if isinstance(copied, dict) else None
