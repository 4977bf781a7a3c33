"""How long a scan may take: an unpaged one stops softly and says so, every one stops hard."""

import time

from kaiza.tools.handles import Walk
from kaiza.tools.reading import file_reader
from kaiza.tools.view import CallView


class ScanTimeout:
    """The time of one scan. Without a soft limit only the call's own holds."""

    def __init__(self, view: CallView, soft_ms: int | None) -> None:
        self._view = view
        self._soft_ms = soft_ms
        self._started = time.monotonic()

    @property
    def elapsed_ms(self) -> int:
        """How long it has taken so far."""
        return int((time.monotonic() - self._started) * 1000)

    def has_expired(self) -> bool:
        """Whether the scan must stop."""
        return self._view.is_out_of_time() or (self._soft_ms is not None and self.elapsed_ms >= self._soft_ms)

    def diagnostics(self, walk: Walk) -> list[str]:
        """What limited a scan that has ended; CAP_EXCEEDED if it was the call's own time."""
        told = []
        if walk.stopped_early:
            file_reader.require_time_left(self._view)
            told.append(
                f"Scan stopped after {self.elapsed_ms}ms. "
                f"Processed {walk.visited_count} of {walk.listed_count} items. Results may be partial."
            )
        if walk.unlisted_count:
            told.append(f"Could not list {walk.unlisted_count} directories.")
        return told
