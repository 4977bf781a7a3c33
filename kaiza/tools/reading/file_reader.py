"""Reads a file once, from its beginning, in chunks: what the whole is, and the lines that were asked for."""

import sys
from collections.abc import Callable

from kaiza.domain import errors
from kaiza.domain.text.lines import FileDigest, FileSummary, LineWindow, Utf8Check
from kaiza.tools.handles import ReadableFile
from kaiza.tools.view import CallView

CHUNK_BYTES = 256 * 1024
ChunkConsumer = Callable[[bytes], None]


def summarize_file(
    file: ReadableFile, view: CallView, window: LineWindow | Utf8Check | None = None
) -> FileSummary | None:
    """What the whole file is; None above the cap, where it is read only as far as the window needs."""
    if file.size > view.caps.hashed_bytes:
        while window is not None and not window.is_full and (chunk := file.read(CHUNK_BYTES)):
            require_time_left(view)
            window.feed(chunk)
        return None
    whole, most = FileSummary(), view.caps.hashed_bytes
    takers = () if window is None else (window.feed,)
    scan_file(file, view, whole, *takers, most=most)
    return whole if whole.size <= most else None


def scan_file(
    file: ReadableFile, view: CallView, whole: FileDigest, *takers: ChunkConsumer, most: int = sys.maxsize
) -> None:
    """What the whole file comes to; of one that grows above `most` while it is read, only that it does."""
    while whole.size <= most and (chunk := file.read(CHUNK_BYTES)):
        require_time_left(view)
        for take in (whole.feed, *takers):
            take(chunk)


def require_time_left(view: CallView) -> None:
    """CAP_EXCEEDED where the call's time is up."""
    if view.is_out_of_time():
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The call took too long. Ask for less at once.",
            cause={"cap": "timeout", "limit": view.caps.tool_timeout_ms},
        )


def summary_fields(whole: FileSummary | None) -> dict[str, object]:
    """What an answer says about the whole file, as far as it was looked at."""
    if whole is None:
        return {}
    return {"hash": whole.hex_digest, "total_lines": whole.total_lines, "line_ending": whole.line_ending}
