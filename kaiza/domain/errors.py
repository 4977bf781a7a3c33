"""SystemError, the only exception that Kaiza raises on purpose.

The raiser gives code, message and cause; the boundary adds session, role, tool and time. Always written
`errors.SystemError`, because the name is also a builtin.
"""

import re
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from kaiza.domain import error_codes

_ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)*[^\s/'\":]+")
_MAX_MESSAGE = 200


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
    evidence: Mapping[str, object] | None
    stack_trace: str


class SystemError(Exception):  # noqa: A001
    """A failure with a registered code. Use the factory methods; KeyError for a code that is not registered.

    `evidence` is sent to the client as a second content block and is never recorded.
    """

    def __init__(self, error_code: str, context: Mapping[str, Any]) -> None:
        row = error_codes.REGISTRY[error_code]
        self.error_code = error_code
        self.human_message: str = context.get("human_message") or f"{row.meaning}."
        self.invariant_id: str | None = context.get("invariant_id")
        self.cause: object = context.get("cause")
        self.evidence: Mapping[str, object] | None = context.get("evidence")
        self.context: Mapping[str, Any] = dict(context)
        super().__init__(f"{error_code}: {self.human_message}")

    @classmethod
    def from_unknown(
        cls, error: object, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """Wrap any raised value as the cause of a SystemError; a SystemError is returned unchanged."""
        if isinstance(error, SystemError):
            return error
        merged: dict[str, Any] = {**(context or {}), **more}
        merged.setdefault("cause", error)
        return cls(merged.pop("error_code", "UNKNOWN_TOOL_FAILURE"), merged)

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


def describe_exception(error: BaseException) -> dict[str, object]:
    """Describe an exception as {message, code, name}, with absolute paths removed."""
    # str() of an OSError includes the file name; strerror does not.
    message = error.strerror or "" if isinstance(error, OSError) else str(error)
    code = getattr(error, "errno", None) if isinstance(error, OSError) else getattr(error, "code", None)
    return {
        "message": _ABSOLUTE_PATH.sub("<path>", message)[:_MAX_MESSAGE],
        "code": code if isinstance(code, int | str) else None,
        "name": type(error).__name__,
    }
