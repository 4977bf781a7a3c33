"""Manifest of a session: taken when it begins, and compared with the workspace and the log when it ends."""

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest import comparison
from kaiza.domain.manifest.comparison import Comparison, Difference
from kaiza.domain.manifest.recorded_changes import RecordedChanges, collect_changes
from kaiza.domain.manifest.report import Coverage, Gap, OutsideReport
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import is_plan_id
from kaiza.store.audit.reader import read_records, search_records
from kaiza.store.disk import small_files
from kaiza.store.workspace import Workspace

if TYPE_CHECKING:
    from kaiza.store.manifest.database import Database, SessionBegin
    from kaiza.store.manifest.differences import LiveComparison, ManifestReference

MAX_SECONDS = 10.0
"""Seconds for one comparison; what it has not reached by then is not covered."""
_MAX_WAIT = 5.0
_MAX_HELD = 50_000
# The log is read to its end even if the walk took all the time: without it, nothing is explained.
_LOG_GRACE = 5.0
_DOCUMENT_TOOLS = frozenset({"save_plan", "write_report"})
_PLANS = "plans/"
_PLAN_SUFFIX = ".md"
_SET_ASIDE = re.compile(r"audit/audit-log\.(damaged-\d+\.jsonl|torn-\d+(-\d+)?)")
_SETTING_ASIDE = (b'"result":"torn_tail_set_aside"', b'"action":"accept"')


def begin_manifest(workspace: Workspace, session_id: str) -> None:
    """Take the manifest of a session that begins; at most 100 ms now, the rest in the background."""
    head = workspace.log.head
    workspace.manifest.begin(session_id, head.seq if head else 0)


def end_manifest(workspace: Workspace, session_id: str, begun_at: str, now: str, seconds: float) -> OutsideReport:
    """Compare a session that ends, and save the report for its review."""
    report = compare_session(workspace, session_id, begun_at, now, seconds)
    if not workspace.binding.is_foreign:
        with suppress(OSError):  # the review then says that the list is missing; the record has its counts
            save_report(workspace.manifest.state_path, report)
    workspace.manifest.forget(session_id)
    return report


def compare_session(workspace: Workspace, session_id: str, begun_at: str, now: str, seconds: float) -> OutsideReport:
    """What changed without Kaiza since a session began, as it is now. It takes about `seconds` at most."""
    report = OutsideReport(session_id, begun_at, now)
    identity = workspace.manifest.find_identity()
    if identity is None:
        return replace(report, coverage=Coverage("partial", gaps=("not_bound",)))
    until = time.monotonic() + seconds
    workspace.manifest.wait(session_id, min(_MAX_WAIT, seconds / 2))
    return _SessionComparison(workspace, report, until).run(identity)


class _SessionComparison:
    """One comparison, and what it read of manifest and log."""

    def __init__(self, workspace: Workspace, report: OutsideReport, until: float) -> None:
        self._workspace = workspace
        self._report = report
        self._until = until
        self._gaps: set[Gap] = set()

    def run(self, identity: str) -> OutsideReport:
        import sqlite3  # noqa: PLC0415  sessions that do not end need it in the background only

        from kaiza.store.manifest.database import open_database  # noqa: PLC0415  as above

        opened = open_database(self._workspace.manifest.state_path, identity)
        if opened is None:
            return self._compare(None)
        with closing(opened):
            try:
                return self._compare(opened)
            except sqlite3.Error:  # damaged; the next session begins a new one
                return self._compare(None)

    def _compare(self, database: "Database | None") -> OutsideReport:
        from kaiza.store.manifest.differences import LiveComparison  # noqa: PLC0415  as above
        from kaiza.store.manifest.ignored_paths import IgnoredPaths  # noqa: PLC0415  as above

        workspace = self._workspace
        begin = database.session(self._report.session_id) if database else None
        reference = self._load_reference(database, begin)
        ignored = IgnoredPaths(workspace.files, workspace.is_unreadable)
        live = LiveComparison(
            workspace.files, database if begin else None, reference, ignored, lambda: time.monotonic() > self._until
        )
        found = self._classify(live, begin)
        earlier = self._compare_earlier(database, reference, begin) if database and begin else None
        gaps: tuple[Gap, ...] = tuple(sorted(self._gaps | live.gaps))
        return replace(
            self._report,
            ungoverned=tuple(found.changes),
            ungoverned_count=found.outside_count,
            governed_count=found.governed_count,
            already_there=tuple(earlier.changes) if earlier else (),
            already_there_count=earlier.outside_count if earlier else None,
            coverage=Coverage("partial" if gaps else "whole", live.entries, live.uncovered, gaps),
        )

    def _load_reference(self, database: "Database | None", begin: "SessionBegin | None") -> "ManifestReference":
        from kaiza.store.manifest.differences import ManifestReference  # noqa: PLC0415  as above

        if database is None or begin is None:
            self._gaps.add("no_manifest")
            begun = datetime.fromisoformat(self._report.begun_at).timestamp()
            return ManifestReference(int(begun * 1000) * 1_000_000)
        scan = database.scan(begin.scan)
        if scan is None or scan.ended_ns is None:
            self._gaps.add("begin_unfinished")
        unlisted = frozenset(database.unlisted(begin.scan))
        if unlisted:
            self._gaps.add("unlisted")
        return ManifestReference(begin.begun_ns, scan, begin.previous, unlisted)

    def _classify(self, live: "LiveComparison", begin: "SessionBegin | None") -> Comparison:
        """Compare with the records up to now, also with those that were appended during the walk."""
        begin_seq = begin.seq if begin else self._find_begin()
        seen = list(self._read_from(begin_seq))
        looked_at = seen[-1].seq if seen else 0
        touched = {path.encode(errors="surrogateescape") for path in collect_changes(seen, looked_at).steps}
        # A log that came with a clone may name anything as a path.
        sound = {path for path in touched if {b"", b".", b".."}.isdisjoint(path.split(b"/")) and b"\0" not in path}
        differences = live.iterate(frozenset(sound))
        held = list(islice(differences, _MAX_HELD))
        later = self._read_from(looked_at or begin_seq)
        recorded = collect_changes([*seen, *later], looked_at)
        self._add_decisions(held, recorded)
        self._add_set_aside(held, recorded)
        return comparison.compare(chain(held, differences), recorded)

    def _compare_earlier(
        self, database: "Database", reference: "ManifestReference", begin: "SessionBegin"
    ) -> Comparison | None:
        from kaiza.store.manifest.differences import iterate_earlier  # noqa: PLC0415  as above

        previous = database.scan(reference.previous) if reference.previous else None
        if previous is None or time.monotonic() > self._until:
            return None
        records = (record for record in self._read_from(previous.seq) if record.seq <= begin.seq)
        recorded = collect_changes(list(records), begin.seq)
        differences = list(islice(iterate_earlier(database, reference), _MAX_HELD))
        self._add_decisions(differences, recorded)
        self._add_set_aside(differences, recorded)
        return comparison.compare(differences, recorded)

    def _read_from(self, seq: int) -> Iterator[Record]:
        """The records after a number that may explain a difference."""
        for record in read_records(self._workspace.root, since_seq=seq + 1):
            if time.monotonic() > self._until + _LOG_GRACE:
                self._gaps.add("log_unreadable")
                return
            if _may_explain(record):
                yield record

    def _find_begin(self) -> int:
        """Number of the session's first record; 0 if the log does not have it."""
        for record in read_records(self._workspace.root, reverse=True):
            if record.session_id == self._report.session_id and record.tool_name == "begin_session":
                return record.seq
            if time.monotonic() > self._until:
                self._gaps.add("log_unreadable")
                break
        return 0

    def _add_set_aside(self, differences: list[Difference], recorded: RecordedChanges) -> None:
        """Add the torn tails and damaged logs that the log says were set aside. Anyone else may use such names."""
        names = {each.path for each in differences if _SET_ASIDE.fullmatch(each.path)}
        for _, record in search_records(self._workspace.root, _SETTING_ASIDE) if names else ():
            name = record.detail.get("file")
            if isinstance(name, str) and name in names:
                recorded.documents.setdefault(name, set()).add(record.detail.get("sha256"))

    def _add_decisions(self, differences: list[Difference], recorded: RecordedChanges) -> None:
        """Add the plans of which only status and approval were edited: a person's decision, which the plan shows."""
        for difference in differences:
            plan_id = difference.path.removeprefix(_PLANS).removesuffix(_PLAN_SUFFIX)
            if f"{_PLANS}{plan_id}{_PLAN_SUFFIX}" == difference.path and is_plan_id(plan_id):
                stored, draft = self._workspace.plans.read(plan_id), self._workspace.load_seen_draft(plan_id)
                body_hash = stored.parsed.body_hash if stored else None
                if stored and draft and body_hash and parser.parse(draft, plan_id).body_hash == body_hash:
                    recorded.documents.setdefault(difference.path, set()).add(stored.parsed.plan_hash)


def _may_explain(record: Record) -> bool:
    if record.kind == "call":
        return bool(record.changes) or record.tool_name in _DOCUMENT_TOOLS
    return record.kind in ("intent", "recovery", "person", "plan")


REPORTS = "outside"
"""Directory of the reports of ended sessions, one file each. The log's record has the hash of the list."""
_MAX_BYTES = 64 << 20
_SESSION_ID = re.compile(r"[0-9a-f-]{36}")


def save_report(state_path: Path, report: OutsideReport) -> None:
    """Save a session's report, durable when this returns, in place of an older one. OSError if that fails."""
    if not _SESSION_ID.fullmatch(report.session_id):
        return
    directory = state_path / REPORTS
    directory.mkdir(mode=0o700, exist_ok=True)
    # ASCII: a file name may have bytes that are not UTF-8, which JSON can carry only as escapes.
    content = json.dumps(report.as_json(), separators=(",", ":"))
    small_files.replace(directory / f"{report.session_id}.json", content.encode("ascii"), durable=True)


def load_report(state_path: Path, session_id: str) -> OutsideReport | None:
    """The saved report of a session; None if there is none that can be read."""
    if not _SESSION_ID.fullmatch(session_id):
        return None
    try:
        content = small_files.read(state_path / REPORTS / f"{session_id}.json", _MAX_BYTES)
        report = OutsideReport.from_json(json.loads(content))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return report if report.session_id == session_id else None
