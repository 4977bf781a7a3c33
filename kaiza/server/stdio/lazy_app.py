"""The house is built while, or after, the opening is answered: once, by whoever first needs it."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from kaiza.domain import errors

Built = TypeVar("Built")


class LazyApp(Generic[Built]):
    """Something that takes long to make. `begin` makes it in a thread of its own, `get` waits for it."""

    def __init__(self, make: Callable[[], Built], on_failure: Callable[[], None]) -> None:
        self._factory = make
        self._on_failure = on_failure
        self._lock = threading.Lock()
        """Protects the beginning."""
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._built: list[Built] = []
        self._failure: Exception | None = None

    def start(self) -> None:
        """Start making it, unless that was done already."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._build, name="kaiza-house", daemon=True)
                self._thread.start()

    def get(self) -> Built | None:
        """The thing, made now if it must be; None where making it failed."""
        self.start()
        self._done.wait()
        return self._built[0] if self._built else None

    def get_if_ready(self) -> Built | None:
        """The thing, if it is there already."""
        return self._built[0] if self._built else None

    def get_if_started(self) -> Built | None:
        """The thing, if somebody has wanted it."""
        return None if self._thread is None else self.get()

    def failure(self) -> Exception | None:
        """Why it could not be made; what nobody foresaw has been traced on standard error when this returns."""
        if self._failure is not None and self._thread is not None:
            self._thread.join()
        return self._failure

    def _build(self) -> None:
        try:
            self._built.append(self._factory())
        except _system_error_class() as failure:
            self._failure = failure
        finally:
            if not self._built:
                self._failure = self._failure or _bootstrap_failure()
                self._on_failure()
            self._done.set()


def _system_error_class() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  loaded only when something has failed

    return errors.SystemError


def _bootstrap_failure() -> Exception:
    told = "The server could not be put together. Read the trace above, and report it."
    return _system_error_class().startup_failure("BOOTSTRAP_FAILURE", human_message=told)
