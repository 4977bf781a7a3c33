"""Shape of a request, which selects its dialect. Pure, and needed before the first answer."""

from collections.abc import Mapping
from typing import Any, Final, Literal

from kaiza.wire.message import InvalidMessage, Request

DialectName = Literal["mcp", "editor", "canonical"]

_EDITOR_METHODS: Final = frozenset({"tools/describe", "server/info"})
_NO_NAME: Final = "unknown"


def find_dialect(request: Request) -> DialectName:
    """The dialect of a request; MCP unless another dialect has this shape."""
    params = request.params
    if request.method == "tools/call":
        return "mcp" if "tool" not in params else "canonical" if "input" in params else "editor"
    is_filtered = request.method == "tools/list" and not params.keys().isdisjoint(("category", "tier"))
    return "editor" if is_filtered or request.method in _EDITOR_METHODS else "mcp"


def tool_name(params: Mapping[str, Any]) -> str:
    """The name in the parameters of a tools/call; "unknown" if there is none."""
    name = params.get("tool", params.get("name"))
    return to_unicode(name) if isinstance(name, str) else _NO_NAME


def to_unicode(text: str) -> str:
    """The text with its lone surrogates, which no answer can hold, written as escapes."""
    return text.encode(errors="backslashreplace").decode()


def find_call_fault(request: Request) -> InvalidMessage | None:
    """The fault in the parameters of a tools/call, checked before its tool is looked up; None if there is none."""
    params = request.params
    reason = _find_ambiguity(params)
    if reason is None and "tool" in params:
        if not isinstance(params["tool"], str):
            reason = "tool must be a string, the tool's name."
        elif "input" not in params and not isinstance(params.get("arguments"), Mapping):
            reason = "tools/call with tool needs arguments, an object, or input."
        elif "input" in params and not isinstance(params["input"], Mapping):
            return InvalidMessage(request.id, "INVALID_TOOL_INPUT", "input must be an object.")
    elif reason is None and not isinstance(params.get("name"), str):
        reason = (
            "tools/call needs name (with arguments) or tool (with arguments or input), the tool's name as a string."
        )
    return None if reason is None else InvalidMessage(request.id, "INVALID_PARAMS", reason)


def _find_ambiguity(params: Mapping[str, Any]) -> str | None:
    if "tool" in params and "name" in params:
        return "Name the tool once: either tool or name."
    if "arguments" in params and "input" in params:
        return "Pass the arguments once: either arguments or input."
    return None
