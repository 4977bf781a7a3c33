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

_PIECE = 4 * CHUNK
_PIECES = 3
"""What a large file passes through, again and again: two threads that hand over seldom hinder each other seldom."""

Bytes = bytes | bytearray
Take = Callable[[Bytes], None]


def survey(file: OpenFile, view: View, window: Window | Text | None = None) -> Whole | None:
    """What the whole file is; None above the cap, where it is read only as far as the window needs."""
    if file.size > view.caps.hashed_bytes:
        while window is not None and not window.full and (chunk := file.read(CHUNK)):
            in_time(view)
            window.feed(chunk)
        return None
    whole = Whole()
    if file.size < LARGE:
        return _whole(lambda: file.read(CHUNK), view, whole, (whole.digest, *_taker(window)))
    with _Beside(whole.digest, file) as beside:
        return _whole(beside.read, view, whole, _taker(window))


def _taker(window: Window | Text | None) -> tuple[Take, ...]:
    return () if window is None else (window.feed,)


def _whole(read: Callable[[], Bytes], view: View, whole: Whole, takers: Sequence[Take]) -> Whole | None:
    while chunk := read():
        in_time(view)
        for take in takers:
            take(chunk)
        whole.look(chunk)
        if whole.size > view.caps.hashed_bytes:
            return None
    return whole


class _Beside:
    """Does something to every piece on a thread of its own; all of it is done at the end of the `with`.

    A piece that was read stays as it is until the next is read.
    """

    def __init__(self, work: Take, file: OpenFile) -> None:
        self._work = work
        self._file = file
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._read: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="kaiza-hash", daemon=True)

    def read(self) -> bytearray:
        """Read the next piece and hand it over; waits where the other side is behind."""
        piece = self._free.get()
        size = self._file.fill(piece)
        del piece[size:]
        if size:
            self._read.put(piece)
        return piece

    def __enter__(self) -> Self:
        for _ in range(_PIECES):
            self._free.put(bytearray(_PIECE))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._read.put(bytearray())
        self._thread.join()

    def _run(self) -> None:
        while piece := self._read.get():
            self._work(piece)
            self._free.put(piece if len(piece) == _PIECE else bytearray(_PIECE))


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
