"""The real time as records write it: UTC, milliseconds, `Z`. Two such texts compare as the times do."""

import time
from datetime import UTC, datetime
from functools import lru_cache


def current_timestamp() -> str:
    """The time now."""
    milliseconds = time.time_ns() // 1_000_000
    return f"{_format_second(milliseconds // 1000)}.{milliseconds % 1000:03d}Z"


@lru_cache(maxsize=2)
def _format_second(since_epoch: int) -> str:
    # Cached because it is asked several times a call, and most of those are in the same second.
    return datetime.fromtimestamp(since_epoch, UTC).isoformat()[:19]
