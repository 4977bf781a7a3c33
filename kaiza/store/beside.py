"""A file read in pieces, while a thread of its own does something else to every piece.

The same few buffers are used again and again: fresh memory for each piece would cost more than counting its lines.
The thread stays off the processor that the reader is on when it begins. Two threads that wake each other are apt to be
put on one processor, of two, and then nothing is gained.
"""

import ctypes
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Self

from kaiza.domain.paths import RelPath
from kaiza.store.refusal import refusal

PIECE = 1 << 20
PIECES = 3
_CURRENT: Callable[[], int] | None = getattr(ctypes.CDLL(None), "sched_getcpu", None)


class Beside:
    """Pieces for the reader, each of them handed to the work too; all work is done at the end of the `with`.

    A piece stays as it is until the next one is read.
    """

    def __init__(self, fd: int, real: RelPath, work: Callable[[bytearray], None]) -> None:
        self._fd = fd
        self._real = real
        self._work = work
        self._free: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._full: queue.SimpleQueue[bytearray] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._broken = False
        """Whether the work failed in its thread, which told on standard error and is gone."""

    def read(self) -> bytearray:
        """Read the next piece, empty at the end, and hand it over; waits where the work is behind."""
        piece = self._free.get()
        if self._broken:
            raise _unfinished()
        try:
            size = os.readv(self._fd, [piece])
        except OSError as error:
            raise refusal(error, self._real, missing="FILE_NOT_FOUND") from error
        del piece[size:]
        if size and self._thread is None:
            self._work(piece)
            self._free.put(bytearray(PIECE))
        elif size:
            self._full.put(piece)
        return piece

    def __enter__(self) -> Self:
        for _ in range(PIECES):
            self._free.put(bytearray(PIECE))
        thread = threading.Thread(target=self._run, args=(_elsewhere(),), name="kaiza-beside", daemon=True)
        with suppress(RuntimeError):  # where no more threads can be had, the reader does the work itself
            thread.start()
            self._thread = thread
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._full.put(bytearray())
        if self._thread is not None:
            self._thread.join()
        if self._broken and error is None:
            raise _unfinished()

    def _run(self, processors: set[int]) -> None:
        if processors:
            with suppress(OSError):
                os.sched_setaffinity(0, processors)
        sound = False
        try:
            while piece := self._full.get():
                self._work(piece)
                self._free.put(piece if len(piece) == PIECE else bytearray(PIECE))
            sound = True
        finally:
            self._broken = not sound
            self._free.put(bytearray(PIECE))  # for a reader that waits


def _unfinished() -> RuntimeError:
    return RuntimeError("the work beside the reading failed")


def _elsewhere() -> set[int]:
    """The processors that this thread is not on and might be; none where there is no other."""
    if _CURRENT is None or not hasattr(os, "sched_getaffinity"):
        return set()
    return os.sched_getaffinity(0) - {_CURRENT()}
