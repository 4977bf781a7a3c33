"""What changed without Kaiza in one session: its saved report, or a comparison made now while it is open."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest.report import Coverage, OutsideReport
from kaiza.store.manifest import report_files
from kaiza.store.session_manifest import MAX_SECONDS, compare_session
from kaiza.store.workspace import Workspace

ReportSource = Literal["saved", "compared", "missing", "altered", "not_taken"]
"""`saved`: the report of `end_session`, whose list has the hash in the log. `compared`: made now, of an open session.
`missing`, `altered`: only the counts of the log's record are known. `not_taken`: the record has none."""


@dataclass(frozen=True, slots=True)
class SessionOutside:
    """A report, and where it came from."""

    report: OutsideReport
    source: ReportSource


def read_outside_changes(
    workspace: Workspace, session_id: str, begun_at: str, end_record: Record | None, now: str
) -> SessionOutside:
    """What changed without Kaiza in a session. `end_record` is that of its `end_session`; None compares now.

    Takes ten seconds at most; what was not compared by then is in the report's coverage.
    """
    if end_record is None:
        return SessionOutside(compare_session(workspace, session_id, begun_at, now, MAX_SECONDS), "compared")
    recorded = _recorded_counts(end_record)
    ended_at = end_record.timestamp
    if recorded is None:
        return SessionOutside(OutsideReport(session_id, begun_at, ended_at, coverage=_NOT_COVERED), "not_taken")
    saved = report_files.load_report(workspace.manifest.state_path, session_id)
    if saved is not None and saved.list_hash == recorded["sha256"]:
        return SessionOutside(saved, "saved")
    report = OutsideReport(
        session_id,
        begun_at,
        ended_at,
        ungoverned_count=recorded["ungoverned"],
        governed_count=recorded["governed"],
        already_there_count=recorded["already_there"],
        coverage=_NOT_COVERED if recorded["state"] == "partial" else Coverage(),
    )
    return SessionOutside(report, "missing" if saved is None else "altered")


_NOT_COVERED = Coverage("partial", gaps=("no_manifest",))


def _recorded_counts(record: Record) -> Mapping[str, Any] | None:
    """The counts in a record of `end_session`; None if it has none."""
    counts = record.detail.get("manifest")
    if not isinstance(counts, Mapping) or not isinstance(counts.get("sha256"), str):
        return None
    numbers = [counts.get("ungoverned"), counts.get("governed"), counts.get("already_there") or 0]
    return counts if all(type(number) is int for number in numbers) else None
