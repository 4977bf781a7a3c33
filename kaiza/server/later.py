"""The house is built while, or after, the opening is answered: once, by whoever first needs it."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from kaiza.domain import errors

Built = TypeVar("Built")


class Later(Generic[Built]):
    """Something that takes long to make. `begin` makes it in a thread of its own, `get` waits for it."""

    def __init__(self, make: Callable[[], Built], on_failure: Callable[[], None]) -> None:
        self._make = make
        self._on_failure = on_failure
        self._lock = threading.Lock()
        """Protects the beginning."""
        self._maker: threading.Thread | None = None
        self._done = threading.Event()
        self._made: list[Built] = []
        self._failure: Exception | None = None

    def begin(self) -> None:
        """Start making it, unless that was done already."""
        with self._lock:
            if self._maker is None:
                self._maker = threading.Thread(target=self._build, name="kaiza-house", daemon=True)
                self._maker.start()

    def get(self) -> Built | None:
        """The thing, made now if it must be; None where making it failed."""
        self.begin()
        self._done.wait()
        return self._made[0] if self._made else None

    def made(self) -> Built | None:
        """The thing, if it is there already."""
        return self._made[0] if self._made else None

    def begun(self) -> Built | None:
        """The thing, if somebody has wanted it."""
        return None if self._maker is None else self.get()

    def failure(self) -> Exception | None:
        """Why it could not be made; what nobody foresaw has been traced on standard error when this returns."""
        if self._failure is not None and self._maker is not None:
            self._maker.join()
        return self._failure

    def _build(self) -> None:
        try:
            self._made.append(self._make())
        except _ours() as failure:
            self._failure = failure
        finally:
            if not self._made:
                self._failure = self._failure or _unforeseen()
                self._on_failure()
            self._done.set()


def _ours() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  loaded only when something has failed

    return errors.SystemError


def _unforeseen() -> Exception:
    told = "The server could not be put together. Read the trace above, and report it."
    return _ours().startup_failure("BOOTSTRAP_FAILURE", human_message=told)
