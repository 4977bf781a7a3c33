"""A thread that waits for the disk in somebody's place, one errand after the other, while they go on."""

import queue
import threading
from collections.abc import Callable

Work = Callable[[], None]


class Errand:
    """One thing that is being done elsewhere."""

    __slots__ = ("_done", "_failed", "_work")

    def __init__(self, work: Work) -> None:
        self._work = work
        self._failed: BaseException | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def run(self) -> None:
        """Do it, and let whoever waits go on."""
        try:
            self._work()
        except BaseException as failed:  # noqa: BLE001  it is raised where it is waited for
            self._failed = failed
        finally:
            self._done.release()

    def wait(self) -> None:
        """Return when it is done; what it raised is raised here. To be called once."""
        self._done.acquire()
        if self._failed is not None:
            raise self._failed


class Errands:
    """The thread, started with the first errand."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sent: queue.SimpleQueue[Errand | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def send(self, work: Work) -> Errand:
        """Have it done; it has to be waited for."""
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        errand = Errand(work)
        self._sent.put(errand)
        return errand

    def close(self) -> None:
        """Every errand is done, and the thread gone, when this returns."""
        with self._starting:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._sent.put(None)
            thread.join()

    def _run(self) -> None:
        while errand := self._sent.get():
            errand.run()
