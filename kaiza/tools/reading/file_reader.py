"""Reads a file once, in chunks, into a digest and other consumers. Stops at the call's deadline."""

import sys
from collections.abc import Callable

from kaiza.domain import errors
from kaiza.domain.text.lines import FileDigest, FileSummary, LineWindow, Utf8Check
from kaiza.tools.view import FileContent, WorkspaceView

CHUNK_BYTES = 256 * 1024
WINDOW_CHUNK_BYTES = 64 * 1024
"""Where no more is read than a window needs, which is seldom more than this."""
NO_HASH = " For its hash pass with_hash: true."
"""End of a summary without the hash that a change needs."""
ChunkConsumer = Callable[[bytes], None]


def summarize_file(
    file: FileContent, view: WorkspaceView, window: LineWindow | Utf8Check, *, with_hash: bool = False
) -> FileSummary | None:
    """Summarize the whole file; None for a large one unless `with_hash`: then only the window's part is read."""
    max_bytes = sys.maxsize if with_hash else view.caps.summarized_bytes
    if file.size <= max_bytes:
        summary = FileSummary()
        scan_file(file, view, summary, window.feed, max_bytes=max_bytes)
        if summary.size <= max_bytes:
            return summary
    while not window.is_full and (chunk := file.read(WINDOW_CHUNK_BYTES)):
        require_time_left(view)
        window.feed(chunk)
    return None


def scan_file(
    file: FileContent, view: WorkspaceView, digest: FileDigest, consume: ChunkConsumer, *, max_bytes: int = sys.maxsize
) -> None:
    """Feed the whole file to the digest and the consumer."""
    # The bound holds while reading: a file may grow after its size was taken.
    while digest.size <= max_bytes and (chunk := file.read(CHUNK_BYTES)):
        require_time_left(view)
        digest.feed(chunk)
        consume(chunk)


def require_time_left(view: WorkspaceView) -> None:
    """Raise CAP_EXCEEDED if the call's deadline has passed."""
    if view.is_out_of_time():
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The call took too long. Ask for less at a time.",
            cause={"cap": "timeout", "limit": view.caps.tool_timeout_ms},
        )
