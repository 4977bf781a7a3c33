"""Reads a file once, from its beginning, in chunks: what the whole is, and the lines that were asked for."""

from kaiza.domain import errors
from kaiza.domain.lines import Text, Whole, Window
from kaiza.tools.view import OpenFile, View

CHUNK = 256 * 1024


def survey(file: OpenFile, view: View, window: Window | Text | None = None) -> Whole | None:
    """What the whole file is; None above the cap, where it is read only as far as the window needs."""
    whole = Whole() if file.size <= view.caps.hashed_bytes else None
    while whole is not None or (window is not None and not window.full):
        chunk = file.read(CHUNK)
        if not chunk:
            break
        in_time(view)
        if whole is not None:
            whole.feed(chunk)
            whole = whole if whole.size <= view.caps.hashed_bytes else None
        if window is not None:
            window.feed(chunk)
    return whole


def in_time(view: View) -> None:
    """CAP_EXCEEDED where the call's time is up."""
    if view.over():
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The call took too long. Ask for less at once.",
            cause={"cap": "timeout", "limit": view.caps.tool_timeout_ms},
        )


def facts(whole: Whole | None) -> dict[str, object]:
    """What an answer says about the whole file, as far as it was looked at."""
    if whole is None:
        return {}
    return {"hash": whole.hash, "total_lines": whole.total_lines, "line_ending": whole.line_ending}
