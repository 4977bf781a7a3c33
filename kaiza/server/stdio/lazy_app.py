"""Builds the application once, in a background thread, on first use."""

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from kaiza.domain import errors

Built = TypeVar("Built")


class LazyApp(Generic[Built]):
    """An object that takes long to build. `on_built` gets it, or None if it could not be built."""

    def __init__(self, factory: Callable[[], Built], on_built: Callable[[Built | None], None]) -> None:
        self._factory = factory
        self._on_built = on_built
        self._lock = threading.Lock()  # so that only one thread is started
        self._thread: threading.Thread | None = None
        self._built: Built | None = None
        self._failure: Exception | None = None

    def start(self) -> None:
        """Start building, unless already started."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._build, name="kaiza-app", daemon=True)
                self._thread.start()

    def wait(self) -> Built | None:
        """Wait until it is built; None if that was never started, or failed."""
        if self._thread is not None:
            self._thread.join()
        return self._built

    def failure(self) -> Exception | None:
        """The error that building raised, if any. The traceback of an unexpected one has been printed then."""
        self.wait()
        return self._failure

    def _build(self) -> None:
        try:
            self._built = self._factory()
        except _system_error_class() as error:
            self._failure = error
        finally:
            # Any other exception goes on to threading's hook, which prints its traceback.
            if self._built is None and self._failure is None:
                reason = (
                    "The server could not be started because of a bug in Kaiza. Report it with the traceback above."
                )
                self._failure = _system_error_class().startup_failure("BOOTSTRAP_FAILURE", human_message=reason)
            self._on_built(self._built)


def _system_error_class() -> "type[errors.SystemError]":
    from kaiza.domain import errors  # noqa: PLC0415  not before the first answer: start-up time

    return errors.SystemError
