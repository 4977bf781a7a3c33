"""What tools that walk the tree share: the glob filter, the time limit of a walk, its progress, the cap on hits."""

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.domain.paths.glob import Glob
from kaiza.domain.paths.glob_parser import GlobError
from kaiza.domain.paths.protected_names import is_in_log_directory
from kaiza.domain.paths.rel_path import ROOT, RelPath
from kaiza.tools.reading import file_reader
from kaiza.tools.view import Walk, WalkEntry, WorkspaceView

PROGRESS_EVERY = 50
"""Entries of a walk from one report of progress to the next."""
LOG_NOT_SEARCHED = "The log is not searched. Call read_audit_log."
_LITERAL_SUFFIX = re.compile(r"[^*?\[\]/]*\Z")


@dataclass(frozen=True, slots=True)
class GlobFilter:
    """A parsed glob that rejects most paths by their ending, without matching the whole glob."""

    glob: Glob
    suffix: str
    is_suffix_only: bool
    """Whether the ending alone decides: `**/*.py`."""

    @classmethod
    def parse(cls, text: str, argument: str) -> "GlobFilter":
        """Parse a glob argument; INVALID_INPUT_VALUE with a fix if it is malformed."""
        try:
            glob = Glob.parse(text)
        except GlobError as error:
            raise errors.SystemError.tool_failure(
                "INVALID_INPUT_VALUE",
                human_message=f"{error.message}. {error.fix}.",
                cause={"argument": argument, "offset": error.offset},
            ) from None
        match = _LITERAL_SUFFIX.search(text)
        suffix = match[0] if match else ""
        return cls(glob, suffix, text == f"**/*{suffix}")

    def matches(self, path: str) -> bool:
        """Whether the glob matches a path."""
        return path.endswith(self.suffix) and (self.is_suffix_only or self.glob.matches_text(path))

    def is_past(self, path: str) -> bool:
        """Whether no path from this one on can match; a walk in the order of paths ends here."""
        return path > self.glob.prefix and not path.startswith(self.glob.prefix)


def iterate_with_progress(walk: Walk, view: WorkspaceView) -> Iterator[WalkEntry]:
    """Iterate over a walk, and report its progress."""
    for entry in walk:
        if walk.visited_count % PROGRESS_EVERY == 0:
            view.report_progress(walk.visited_count, None)  # the total is unknown
        yield entry


class ScanTimeout:
    """Time limit of one walk. The soft limit ends it with a partial page, the call's deadline with an error."""

    def __init__(self, view: WorkspaceView, soft_ms: int | None) -> None:
        self._view = view
        self._soft_ms = soft_ms
        self._started = time.monotonic()
        self._has_stopped = False

    @property
    def elapsed_ms(self) -> int:
        """Milliseconds since the start."""
        return int((time.monotonic() - self._started) * 1000)

    def has_expired(self) -> bool:
        """Whether the walk must stop."""
        self._has_stopped = self._view.is_out_of_time() or (
            self._soft_ms is not None and self.elapsed_ms >= self._soft_ms
        )
        return self._has_stopped

    def may_stop_counting(self, guard_ms: int, *, is_continued: bool) -> bool:
        """Whether a walk whose page is full may end: its hits were counted for the first page, or take too long."""
        return is_continued or self.elapsed_ms >= guard_ms

    def diagnostics(self, walk: Walk, start: RelPath = ROOT) -> list[str]:
        """Sentences about what a finished walk left out; CAP_EXCEEDED if the call's deadline ended it."""
        notes = [LOG_NOT_SEARCHED] if is_in_log_directory(start) else []
        if self._has_stopped:
            file_reader.require_time_left(self._view)
            notes.append(
                f"Scan stopped after {self.elapsed_ms}ms. "
                f"Processed {walk.visited_count} of {walk.listed_count} items. Results may be partial."
            )
        if walk.unlisted_count:
            notes.append(f"Could not list {walk.unlisted_count} directories.")
        return notes


def require_hits_within_cap(count: int, view: WorkspaceView) -> None:
    """Raise CAP_EXCEEDED if a scan finds more than can sensibly be paged through."""
    if count > view.caps.total_hits:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="There are too many hits. Narrow the search down.",
            cause={"cap": "total_set", "limit": view.caps.total_hits},
        )
