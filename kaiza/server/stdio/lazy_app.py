"""Builds the application once, in a background thread, on first use."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from kaiza.domain import errors

Built = TypeVar("Built")


class LazyApp(Generic[Built]):
    """An object that takes long to build: `start` builds it in a thread, `get` waits for it."""

    def __init__(self, factory: Callable[[], Built], on_failure: Callable[[], None]) -> None:
        self._factory = factory
        self._on_failure = on_failure
        self._lock = threading.Lock()  # so that only one thread is started
        self._thread: threading.Thread | None = None
        self._done = threading.Event()
        self._built: list[Built] = []
        self._failure: Exception | None = None

    def start(self) -> None:
        """Start building, unless already started."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._build, name="kaiza-app", daemon=True)
                self._thread.start()

    def get(self) -> Built | None:
        """Wait for the object, starting to build it if necessary; None if building it failed."""
        self.start()
        self._done.wait()
        return self.get_if_ready()

    def get_if_ready(self) -> Built | None:
        """The object, if it is built already."""
        return self._built[0] if self._built else None

    def get_if_started(self) -> Built | None:
        """The object, waiting for it if it is being built; None if that was never started."""
        return None if self._thread is None else self.get()

    def failure(self) -> Exception | None:
        """The error that building raised, if any. The traceback of an unexpected one has been printed then."""
        if self._failure is not None and self._thread is not None:
            self._thread.join()
        return self._failure

    def _build(self) -> None:
        try:
            self._built.append(self._factory())
        except _system_error_class() as error:
            self._failure = error
        finally:
            # Any other exception goes on to threading's hook, which prints its traceback.
            if not self._built:
                self._failure = self._failure or _bootstrap_failure()
                self._on_failure()
            self._done.set()


def _system_error_class() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  not before the first answer: start-up time

    return errors.SystemError


def _bootstrap_failure() -> Exception:
    message = "The server could not be started because of a bug in Kaiza. Report it with the traceback above."
    return _system_error_class().startup_failure("BOOTSTRAP_FAILURE", human_message=message)
