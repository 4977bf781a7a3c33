"""Limits on time and size. `kaiza caps` prints them."""

from typing import NamedTuple

KIB = 1024
MIB = 1024 * KIB
MAX_REPORTS_PER_DAY = 200
MAX_WRITTEN_BYTES = 8 * MIB


class Caps(NamedTuple):
    """Limits of one call, in bytes, milliseconds or counts; the suffix of a name is its unit."""

    request_bytes: int = 16 * MIB
    response_bytes: int = 512 * KIB
    answer_bytes: int = 32 * KIB
    record_bytes: int = 256 * KIB
    cause_bytes: int = 4 * KIB
    cause_depth: int = 6
    page_items: int = 200
    default_page_items: int = 50
    total_hits: int = 20_000
    query_characters: int = 512
    read_lines: int = 5_000
    default_read_lines: int = 500
    read_paths: int = 50
    context_lines: int = 5
    hashed_bytes: int = 64 * MIB
    summarized_bytes: int = 4 * MIB
    written_bytes: int = MAX_WRITTEN_BYTES
    edit_items: int = 100
    patch_bytes: int = 512 * KIB
    patch_files: int = 200
    patched_bytes: int = 256 * MIB
    undo_requests: int = 100
    listed_plans: int = 200
    reports: int = MAX_REPORTS_PER_DAY
    report_bytes: int = 256 * KIB
    summary_characters: int = 200
    tool_timeout_ms: int = 30_000
    find_guard_ms: int = 10_000
    search_guard_ms: int = 15_000
    assets_guard_ms: int = 10_000
    references_guard_ms: int = 15_000
    audit_lock_ms: int = 5_000
    session_idle_hours: int = 12

    def lower_times(self, timeout_ms: int | None, guard_ms: int | None) -> "Caps":
        """The caps with lower time limits; one that is not lower has no effect."""
        timeout = {"tool_timeout_ms": timeout_ms or self.tool_timeout_ms}
        guards = {name: guard_ms or limit for name, limit in self._asdict().items() if name.endswith("_guard_ms")}
        limits = {name: min(limit, getattr(self, name)) for name, limit in (timeout | guards).items()}
        return self._replace(**limits)

    def as_json(self) -> dict[str, int]:
        """JSON form for `kaiza caps --json`."""
        return self._asdict()
