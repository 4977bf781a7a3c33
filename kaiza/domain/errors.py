"""The one exception. Whoever raises says what; the boundary adds where, when and who.

Always written `errors.SystemError`, because the name is also a builtin.
"""

import re
from collections.abc import Mapping
from typing import Any, TypedDict, Unpack

from kaiza.domain import error_codes

_ABSOLUTE_PATH = re.compile(r"(?<![\w.])/(?:[^\s/'\":]+/)*[^\s/'\":]+")
_MAX_MESSAGE = 200


class ErrorContext(TypedDict, total=False):
    """What a maker may be told beside the code."""

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
    """A failure with a registered code. Made only by the four makers below.

    `evidence` goes to the client as a second block and is never recorded.
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
        """Whatever was thrown, as a SystemError; one that is already ours comes back as it is."""
        if isinstance(error, SystemError):
            return error
        told: dict[str, Any] = {**(context or {}), **more}
        told.setdefault("cause", error)
        return cls(told.pop("error_code", "UNKNOWN_TOOL_FAILURE"), told)

    @classmethod
    def invariant_violation(
        cls, invariant_id: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """A law of the system was broken."""
        told: dict[str, Any] = {**(context or {}), **more, "invariant_id": invariant_id}
        return cls(told.pop("error_code", "INVARIANT_VIOLATION"), told)

    @classmethod
    def tool_failure(
        cls, error_code: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """A failure somebody foresaw."""
        return cls(error_code, {**(context or {}), **more})

    @classmethod
    def startup_failure(
        cls, error_code: str, context: ErrorContext | None = None, /, **more: Unpack[ErrorContext]
    ) -> "SystemError":
        """The server cannot start."""
        return cls(error_code, {"tool_name": "startup", **(context or {}), **more})


def describe_exception(error: BaseException) -> dict[str, object]:
    """An exception as {message, code, name}, without the places and sizes that do not belong to a caller."""
    message = error.strerror or "" if isinstance(error, OSError) else str(error)
    code = getattr(error, "errno", None) if isinstance(error, OSError) else getattr(error, "code", None)
    return {
        "message": _ABSOLUTE_PATH.sub("<path>", message)[:_MAX_MESSAGE],
        "code": code if isinstance(code, int | str) else None,
        "name": type(error).__name__,
    }
