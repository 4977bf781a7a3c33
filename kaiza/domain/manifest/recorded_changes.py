"""What the log's records say was done to each path, as steps to compare the workspace with."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kaiza.domain.audit.inverse_changes import is_rolled_back, is_undo, took_effect
from kaiza.domain.audit.record import Record, is_well_formed
from kaiza.domain.change import USUAL_MODE
from kaiza.domain.manifest.report import EntryState

_PLAN_DECISIONS = frozenset({"approve", "reject", "revoke"})
_TEMPORARY_PREFIX = ".kaiza-"
DEFAULT_MODE = -1
"""Mode of a created file that no record names: any mode that is not executable."""


class Step(NamedTuple):
    """One recorded change of one path. A state of None: nothing is there."""

    before: EntryState | None
    after: EntryState | None
    is_certain: bool = True
    """Whether it was made before the workspace was looked at. Otherwise the path may be in either state."""
    may_be_earlier: bool = False
    """Whether the file may have been changed before the first record that was read."""


@dataclass(slots=True)
class RecordedChanges:
    """Steps by path, and the files that Kaiza writes without announcing a change: plans, their signatures, reports."""

    steps: dict[str, list[Step]] = field(default_factory=dict)
    documents: dict[str, set[str | None]] = field(default_factory=dict)
    """Hashes that a document may have; None allows any."""
    displaced: dict[str | None, set[str | None]] = field(default_factory=dict)
    """By id of each call that changed files, also of those that have not ended: the contents that it replaced."""
    unsettled: set[str | None] = field(default_factory=set)
    """Ids of the calls that may have been under way when the workspace was looked at."""
    directories: set[str] = field(default_factory=set)
    """Directories with a recorded change somewhere below."""

    def explains_document(self, path: str, state: EntryState | None) -> bool:
        """Whether the file is one that Kaiza, or a person by a command, wrote."""
        hashes = self.documents.get(path, ())
        return state is not None and (None in hashes or state.hash in hashes)

    def is_temporary(self, path: str, state: EntryState | None) -> bool:
        """Whether the entry is a temporary one of a recorded change: of a settled one, only what it replaced."""
        name = path.rpartition("/")[2]
        call = name[len(_TEMPORARY_PREFIX) :].rpartition("-")[0] if name.startswith(_TEMPORARY_PREFIX) else ""
        if call not in self.displaced:
            return False
        return state is None or call in self.unsettled or (bool(state.hash) and state.hash in self.displaced[call])


def collect_changes(records: Iterable[Record], looked_at: int) -> RecordedChanges:
    """Collect the changes of records, oldest first. `looked_at` is the last record when the comparison began."""
    found = RecordedChanges()
    sound = [record for record in records if is_well_formed(record)]
    settled = {record.request_id for record in sound if took_effect(record) or is_rolled_back(record)}
    announced = {record.request_id for record in sound if record.kind == "intent"}
    for record in sound:
        if took_effect(record):
            is_new = record.request_id in announced and record.kind != "recovery"
            _add_steps(found, record, is_certain=record.seq <= looked_at, may_be_earlier=not is_new)
        elif record.kind == "intent" and record.request_id not in settled:
            _add_steps(found, record, is_certain=False, may_be_earlier=False)
        for path, digest in _documents(record):
            found.documents.setdefault(path, set()).add(digest)
            found.directories.update(_parents(path))
    for path in found.steps:
        found.directories.update(_parents(path))
    return found


def _add_steps(found: RecordedChanges, record: Record, *, is_certain: bool, may_be_earlier: bool) -> None:
    displaced = found.displaced.setdefault(record.request_id, set())
    displaced.update(change["before_hash"] for change in record.changes)
    if not is_certain:
        found.unsettled.add(record.request_id)
    modes = record.detail.get("modes") or {}
    default_mode = _created_mode(record)
    for change in record.changes:
        for path, before, after in _transitions(change, modes, default_mode):
            found.steps.setdefault(path, []).append(Step(before, after, is_certain, may_be_earlier))


def _created_mode(record: Record) -> int | None:
    """Mode of the files that a change created without naming one; None where nothing is known of it."""
    # An undo also restores modes that its record does not name.
    if is_undo(record):
        return None
    # An intent cannot know it, nor what completed a change after a crash.
    mode = record.detail.get("created_mode", USUAL_MODE if record.kind == "call" else DEFAULT_MODE)
    return mode if type(mode) is int else DEFAULT_MODE


def _transitions(
    change: Mapping[str, Any], modes: Mapping[str, int], default_mode: int | None
) -> Iterator[tuple[str, EntryState | None, EntryState | None]]:
    path, source = change["path"], change["source"]
    before = _file_state(change["before_hash"], modes.get(source or path))
    after = _file_state(change["after_hash"], change["mode"], change["size"])
    if source is not None:
        moved = after or before
        if moved is not None and moved.mode is None and before is not None:
            moved = moved._replace(mode=before.mode)
        yield source, before, None
        yield path, None, moved
        return
    if before is None and after is not None and after.mode is None:
        after = after._replace(mode=default_mode)
    yield path, before, after


def _file_state(digest: str | None, mode: int | None, size: int | None = None) -> EntryState | None:
    return None if digest is None else EntryState("file", mode, size, digest)


def _documents(record: Record) -> Iterator[tuple[str, str | None]]:
    """Paths and hashes of the documents that a record says were written."""
    detail = record.detail
    if record.kind == "plan":
        yield f"plans/{record.plan_id}.md", record.plan_hash
    elif record.kind == "person" and detail.get("action") in _PLAN_DECISIONS:
        yield f"plans/{record.plan_id}.md", record.plan_hash
        yield f"plans/{record.plan_id}.md.sig", None
    elif record.kind == "call" and record.outcome == "ok":
        content = record.arguments.get("content")
        if record.tool_name == "save_plan" and isinstance(content, Mapping) and isinstance(content.get("sha256"), str):
            yield f"plans/{record.arguments.get('plan_id')}.md", content["sha256"]
        path, digest = detail.get("path"), detail.get("sha256")
        if record.tool_name == "write_report" and isinstance(path, str) and isinstance(digest, str):
            yield path, digest


def _parents(path: str) -> Sequence[str]:
    parts = path.split("/")
    return ["/".join(parts[:depth]) for depth in range(1, len(parts))]
