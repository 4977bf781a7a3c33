"""Records of a review: those that are selected, those that explain them, and later changes to the same files."""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kaiza.domain.audit.inverse_changes import took_effect, touched_paths
from kaiza.domain.audit.record import Record, is_complete, is_well_formed
from kaiza.domain.audit.recorded_names import recorded_form
from kaiza.domain.review.actors import is_locking
from kaiza.domain.review.report import ReviewSelection
from kaiza.domain.timestamps import format_timestamp
from kaiza.store.audit.record_search import member_text, read_since, search_backward, search_records

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
        self.lines[record["seq"]] = line


def find_ids(root: str, kind: str, prefix: str) -> set[str]:
    """The ids in the log that begin with a prefix; only the id itself if there is one that equals it."""
    member = _MEMBERS[kind]
    found = {str(record[member]) for _, record in _search_member(root, member, prefix)}
    return {prefix} if prefix in found else found


def _search_member(root: str, member: str, prefix: str) -> Iterator[tuple[bytes, Record]]:
    text = member_text(member, prefix)[:-1]
    for line, record in search_records(root, [text]):
        value = record.get(member)
        if isinstance(value, str) and value.startswith(prefix) and is_usable(record):
            yield line, record


def find_last_session(root: str) -> str | None:
    """The session that made the last change of the log that is not an undo by a person."""
    for record in search_backward(root, _HAS_CHANGES):
        if is_usable(record) and took_effect(record) and isinstance(record["session_id"], str):
            return record["session_id"]
    return None


def is_usable(record: Record) -> bool:
    """Whether a record has every member, with a value of its type. A log from elsewhere may contain anything."""
    return is_complete(record) and is_well_formed(record) and isinstance(record["kind"], str)


def read_selected(root: str, selection: ReviewSelection) -> SelectedRecords:
    """The selected records, and decisions, seals, recoveries and reports that may explain them."""
    if selection.kind == "time":
        return _read_span(root, selection.since, selection.until)
    member, value = _MEMBERS[selection.kind], selection.id or ""
    found = SelectedRecords()
    for line, record in search_records(root, [member_text(member, value), *_EXPLAINING]):
        if not is_usable(record):
            continue
        if record[member] == value:
            found.add(line, record)
        elif _may_explain(record):
            found.context.append(record)
    return found


def _may_explain(record: Record) -> bool:
    return (
        record["kind"] in ("plan", "person", "recovery") or record["tool_name"] == "write_report" or is_locking(record)
    )


def _read_span(root: str, since: str | None, until: str | None) -> SelectedRecords:
    found = SelectedRecords()
    for line, record in read_since(root, _an_hour_before(since) if since else ""):
        at = str(record.get("timestamp"))
        if (since is None or at >= since) and (until is None or at < until) and is_usable(record):
            found.add(line, record)
    for _, record in search_records(root, _EXPLAINING):
        if record["seq"] not in found.lines and is_usable(record) and _may_explain(record):
            found.context.append(record)
    return found


def _an_hour_before(timestamp: str) -> str:
    """A call's record has the time of its begin, so records are out of order by as long as a call takes."""
    return format_timestamp(datetime.fromisoformat(timestamp) - timedelta(hours=1))


def read_other_changes(root: str, paths: AbstractSet[str], since_seq: int, known: AbstractSet[int]) -> list[Record]:
    """Records of changes to these paths from a number on, except those that are known. Follows renames."""
    followed = set(paths)
    found: dict[int, Record] = {}
    while True:
        before = len(followed)
        for _, record in search_records(root, _path_texts(followed), since_seq=since_seq):
            if record["seq"] in known or not is_usable(record) or not took_effect(record):
                continue
            if not followed.isdisjoint(touched_paths(record)):
                followed.update(change["path"] for change in record["changes"] if change["source"] in followed)
                found[record["seq"]] = record
        if len(followed) == before:
            return [found[seq] for seq in sorted(found)]


def _path_texts(paths: AbstractSet[str]) -> Sequence[bytes]:
    """Texts of which records of changes to the paths have at least one."""
    if len(paths) > _MAX_PATH_TEXTS:
        return [_HAS_CHANGES]
    spelled = [recorded_form(path) for path in paths]
    return [member_text(name, form) for name in ("path", "source") for form in spelled]


def plan_ids_of(records: Iterable[Record]) -> list[str]:
    """Ids of the plans that the records name, sorted."""
    return sorted({record["plan_id"] for record in records if isinstance(record["plan_id"], str)})
