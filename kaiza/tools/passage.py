"""Reads a file once, from its beginning, in chunks: what the whole is, and the lines that were asked for."""

import sys
from collections.abc import Callable

from kaiza.domain import errors
from kaiza.domain.lines import Sum, Text, Whole, Window
from kaiza.tools.handles import OpenFile
from kaiza.tools.view import CallView

CHUNK = 256 * 1024
Take = Callable[[bytes], None]


def survey(file: OpenFile, view: CallView, window: Window | Text | None = None) -> Whole | None:
    """What the whole file is; None above the cap, where it is read only as far as the window needs."""
    if file.size > view.caps.hashed_bytes:
        while window is not None and not window.full and (chunk := file.read(CHUNK)):
            in_time(view)
            window.feed(chunk)
        return None
    whole, most = Whole(), view.caps.hashed_bytes
    takers = () if window is None else (window.feed,)
    reckon(file, view, whole, *takers, most=most)
    return whole if whole.size <= most else None


def reckon(file: OpenFile, view: CallView, whole: Sum, *takers: Take, most: int = sys.maxsize) -> None:
    """What the whole file comes to; of one that grows above `most` while it is read, only that it does."""
    while whole.size <= most and (chunk := file.read(CHUNK)):
        in_time(view)
        for take in (whole.feed, *takers):
            take(chunk)


def in_time(view: CallView) -> None:
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
