"""Several files synced at once: the kernel is asked for all of them before the first is waited for.

Side by side they share the file system's commit and the disk's flush, which one after the other they cannot. Where the
system lacks the calls, or filters them away, they are synced one by one.
"""

import ctypes
import errno
import os
from collections.abc import Sequence
from contextlib import suppress

MOST = 32
_MOST_IDLE = 4
_FSYNC = 2
_NUMBERS = {("Linux", "x86_64"): (206, 207, 208, 209), ("Linux", "aarch64"): (0, 1, 4, 2)}
_SYSTEM = os.uname()
_CALLS = _NUMBERS.get((_SYSTEM.sysname, _SYSTEM.machine)) if ctypes.sizeof(ctypes.c_long) == 8 else None  # noqa: PLR2004
_SETUP, _DESTROY, _EVENTS, _SUBMIT = _CALLS or (-1, -1, -1, -1)
_SYSCALL = ctypes.CDLL(None, use_errno=True).syscall
_SYSCALL.restype = ctypes.c_long
_SYSCALL.argtypes = (ctypes.c_long,) * 6


def sync(fds: Sequence[int]) -> None:
    """Each of them is on disk when this returns; OSError where one is not, and then nothing is under way any more."""
    queue = _queue() if 1 < len(fds) <= MOST else None
    taken = failed = 0
    if queue is not None:
        taken, failed = queue.sync(fds)
        queue.rest()
    for fd in fds[taken:]:
        os.fsync(fd)
    if failed:
        raise OSError(failed, os.strerror(failed))


class _Wish(ctypes.Structure):
    """What the kernel is asked for (`iocb`)."""

    _fields_ = (
        ("mark", ctypes.c_uint64),
        ("key", ctypes.c_uint32),
        ("how", ctypes.c_uint32),
        ("operation", ctypes.c_uint16),
        ("priority", ctypes.c_int16),
        ("fd", ctypes.c_uint32),
        ("rest", ctypes.c_uint64 * 5),
    )


class _Event(ctypes.Structure):
    """What became of a wish (`io_event`)."""

    _fields_ = (
        ("mark", ctypes.c_uint64),
        ("wish", ctypes.c_uint64),
        ("result", ctypes.c_int64),
        ("more", ctypes.c_int64),
    )


class _Queue:
    """A queue of the kernel's for asynchronous work; one thread at a time."""

    def __init__(self) -> None:
        context = ctypes.c_ulong(0)
        if _call(_SETUP, MOST, ctypes.addressof(context)) < 0:
            raise _problem()
        self._context = context.value
        self._wishes = (_Wish * MOST)()
        size = ctypes.sizeof(_Wish)
        begin = ctypes.addressof(self._wishes)
        self._list = (ctypes.c_uint64 * MOST)(*range(begin, begin + size * MOST, size))
        self._events = (_Event * MOST)()

    def sync(self, fds: Sequence[int]) -> tuple[int, int]:
        """How many of them the kernel took, and is done with; and the number of what went wrong with one of those."""
        for wish, fd in zip(self._wishes, fds, strict=False):
            wish.operation, wish.fd = _FSYNC, fd
        taken = max(0, _call(_SUBMIT, self._context, len(fds), ctypes.addressof(self._list)))
        return taken, self._wait(taken)

    def rest(self) -> None:
        """Wait for the next who needs one; the system has only so many, so that few of them do."""
        if len(_idle) < _MOST_IDLE:
            _idle.append(self)
        else:
            _call(_DESTROY, self._context)

    def _wait(self, left: int) -> int:
        failed = 0
        while left > 0:
            done = _call(_EVENTS, self._context, left, left, ctypes.addressof(self._events))
            if done < 0:
                raise _problem()
            left -= done
            failed = next((-one.result for one in self._events[:done] if one.result < 0), failed)
        return failed


_idle: list[_Queue] = []


def _queue() -> _Queue | None:
    """One that nobody uses, or a new one; None where the system has none to give."""
    with suppress(IndexError):
        return _idle.pop()
    if _CALLS is not None:
        with suppress(OSError):
            return _Queue()
    return None


def _call(number: int, *arguments: int) -> int:
    while True:
        result: int = _SYSCALL(number, *arguments, *(0,) * (5 - len(arguments)))
        if result >= 0 or ctypes.get_errno() != errno.EINTR:
            return result


def _problem() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
