"""Records of a review: those that are selected, those that explain them, and later changes to the same files."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kaiza.domain.audit.inverse_changes import took_effect, touched_paths
from kaiza.domain.audit.record import Record, is_complete, is_well_formed
from kaiza.domain.audit.recorded_names import recorded_form
from kaiza.domain.review.evidence import InterruptedChange
from kaiza.domain.review.records import is_locking
from kaiza.domain.review.report import ReviewSelection
from kaiza.domain.timestamps import format_timestamp
from kaiza.store.audit.reader import member_text, read_since, search_backward, search_records
from kaiza.store.open_changes import find_abandoned
from kaiza.store.workspace import Workspace

MAX_SELECTED = 100_000
"""Records of one review. They are held in memory."""
_MEMBERS = {"session": "session_id", "plan": "plan_id", "request": "request_id"}
_HAS_CHANGES = b'"changes":[{'
# With the member that follows in canonical JSON: longer texts are found faster.
_EXPLAINING = (
    b'"kind":"plan","outcome":null',
    b'"kind":"person","outcome":"',
    b'"kind":"recovery","outcome":null',
    b'"unlocked":true',
    b'"outcome":"error"',  # another session's refusal may have locked the role
)
_MAX_PATH_TEXTS = 64


class TooManyRecordsError(Exception):
    """The selection has more than MAX_SELECTED records."""


@dataclass(slots=True)
class SelectedRecords:
    """Records of a selection in the order of the log, with their lines, and others that explain them."""

    selected: list[Record] = field(default_factory=list)
    context: list[Record] = field(default_factory=list)
    lines: dict[int, bytes] = field(default_factory=dict)

    def add(self, line: bytes, record: Record) -> None:
        """Add a selected record."""
        if len(self.selected) >= MAX_SELECTED:
            raise TooManyRecordsError
        self.selected.append(record)
        self.lines[record.seq] = line


def find_ids(root: str, kind: str, prefix: str) -> set[str]:
    """The ids in the log that begin with a prefix; only the id itself if there is one that equals it."""
    member, found = _MEMBERS[kind], set()
    for _line, record in search_records(root, [member_text(member, prefix)[:-1]]):
        value = record.members.get(member)
        if isinstance(value, str) and value.startswith(prefix) and is_usable(record):
            found.add(value)
    return {prefix} if prefix in found else found


def find_last_session(root: str) -> str | None:
    """The session that made the last change of the log that is not an undo by a person."""
    for record in search_backward(root, _HAS_CHANGES):
        if is_usable(record) and took_effect(record) and record.session_id is not None:
            return record.session_id
    return None


def find_interrupted(workspace: Workspace, records: Iterable[Record]) -> list[InterruptedChange]:
    """Changes that a crash interrupted and that no process has recovered yet.

    Those that the records announce, and those of other calls to a file that the records are about.
    """
    abandoned = find_abandoned(workspace)
    if not abandoned:
        return []
    listed = [record for record in records if record.changes]
    announced = {record.request_id for record in listed}
    paths = {path for record in listed for path in touched_paths(record)}
    return [
        InterruptedChange(txn, intent.seq, intent.tool_name or "kaiza undo", list(touched_paths(intent)))
        for txn, intent in abandoned.items()
        if txn in announced or not paths.isdisjoint(touched_paths(intent))
    ]


def is_usable(record: Record) -> bool:
    """Whether a record has every member, with a value of its type. A log from elsewhere may contain anything."""
    return is_complete(record) and is_well_formed(record) and isinstance(record.members["kind"], str)


def read_selected(root: str, selection: ReviewSelection) -> SelectedRecords:
    """The selected records, and decisions, seals, recoveries and reports that may explain them."""
    if selection.kind == "time":
        return _read_span(root, selection.since, selection.until)
    member, value = _MEMBERS[selection.kind], selection.id or ""
    found = SelectedRecords()
    for line, record in search_records(root, [member_text(member, value), *_EXPLAINING]):
        if not is_usable(record):
            continue
        if record.members[member] == value:
            found.add(line, record)
        elif _may_explain(record):
            found.context.append(record)
    return found


def _may_explain(record: Record) -> bool:
    return record.kind in ("plan", "person", "recovery") or record.tool_name == "write_report" or is_locking(record)


def _read_span(root: str, since: str | None, until: str | None) -> SelectedRecords:
    found = SelectedRecords()
    earliest = ""
    if since is not None:
        # A call's record has the time at which it began, so records are out of order by as long as a call takes.
        earliest = format_timestamp(datetime.fromisoformat(since) - timedelta(hours=1))
    for line, record in read_since(root, earliest):
        is_after = since is None or str(record.timestamp) >= since
        if is_after and (until is None or str(record.timestamp) < until) and is_usable(record):
            found.add(line, record)
    for _, record in search_records(root, _EXPLAINING):
        if record.seq not in found.lines and is_usable(record) and _may_explain(record):
            found.context.append(record)
    return found


def read_other_changes(root: str, paths: AbstractSet[str], since_seq: int, known: AbstractSet[int]) -> list[Record]:
    """Records of changes to these paths from a number on, except those that are known. Follows renames."""
    followed = set(paths)
    found: dict[int, Record] = {}
    while True:
        before = len(followed)
        texts: Sequence[bytes] = [_HAS_CHANGES]
        if len(followed) <= _MAX_PATH_TEXTS:
            forms = list(map(recorded_form, followed))
            texts = [member_text(name, form) for name in ("path", "source") for form in forms]
        for _, record in search_records(root, texts, since_seq=since_seq):
            if record.seq in known or not is_usable(record) or not took_effect(record):
                continue
            if not followed.isdisjoint(touched_paths(record)):
                followed.update(change["path"] for change in record.changes if change["source"] in followed)
                found[record.seq] = record
        if len(followed) == before:
            return [found[seq] for seq in sorted(found)]
