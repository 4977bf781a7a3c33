"""Reads a file once, from its beginning, in chunks: what the whole is, and the lines that were asked for."""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Self

from kaiza.domain import errors
from kaiza.domain.lines import Text, Whole, Window
from kaiza.tools.view import OpenFile, View

CHUNK = 256 * 1024
LARGE = 4 * CHUNK
"""From this size on a file is hashed beside the counting of its lines."""

LARGE_CHUNK = 8 * CHUNK
"""Two threads that hand over seldom hinder each other seldom."""

_AHEAD = 2

Take = Callable[[bytes], None]


def survey(file: OpenFile, view: View, window: Window | Text | None = None) -> Whole | None:
    """What the whole file is; None above the cap, where it is read only as far as the window needs."""
    if file.size > view.caps.hashed_bytes:
        while window is not None and not window.full and (chunk := _next(file, view)):
            window.feed(chunk)
        return None
    whole = Whole()
    if file.size < LARGE:
        return _whole(file, view, whole, (whole.digest, *_taker(window)))
    with _Beside(whole.digest) as beside:
        return _whole(file, view, whole, (beside.feed, *_taker(window)))


def _taker(window: Window | Text | None) -> tuple[Take, ...]:
    return () if window is None else (window.feed,)


def _whole(file: OpenFile, view: View, whole: Whole, takers: Sequence[Take]) -> Whole | None:
    while chunk := _next(file, view, CHUNK if file.size < LARGE else LARGE_CHUNK):
        for take in takers:
            take(chunk)
        whole.look(chunk)
        if whole.size > view.caps.hashed_bytes:
            return None
    return whole


def _next(file: OpenFile, view: View, size: int = CHUNK) -> bytes:
    chunk = file.read(size)
    in_time(view)
    return chunk


class _Beside:
    """Does something to every chunk on a thread of its own; all of it is done at the end of the `with`."""

    def __init__(self, work: Take) -> None:
        self._work = work
        self._chunks: queue.Queue[bytes] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._run, name="kaiza-hash", daemon=True)

    def feed(self, chunk: bytes) -> None:
        """Hand the next one over; waits where the other side is behind."""
        self._chunks.put(chunk)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._chunks.put(b"")
        self._thread.join()

    def _run(self) -> None:
        while chunk := self._chunks.get():
            self._work(chunk)


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
