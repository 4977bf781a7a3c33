"""Report on one session: what changed without Kaiza, what had changed before it began, and what was compared."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, NamedTuple, cast, get_args

from kaiza.domain.audit import canonical_json

EntryKind = Literal["file", "directory", "link", "fifo", "socket", "device"]
ChangeKind = Literal["created", "modified", "deleted", "renamed", "mode", "kind"]
CoverageState = Literal["whole", "partial"]
Gap = Literal[
    "not_bound", "no_manifest", "begin_unfinished", "end_unfinished", "unlisted", "log_unreadable", "no_times"
]
"""Why a comparison is partial. `begin_unfinished`: the server ended before the manifest was complete. `unlisted`:
directories that could not be read, or had changed before they were seen for the first time. `no_times`: files in
memory, of which a change may leave the times as they are; one made before the content was read is not known."""
CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
MAX_LISTED = 10_000
"""Most changes in a report; the counts are exact beyond it."""
MAX_ANSWERED = 200
"""Most changes in the answer of `end_session`."""


class EntryState(NamedTuple):
    """What is at a path. `mode` is the permission bits; None is unknown."""

    kind: EntryKind
    mode: int | None = None
    size: int | None = None
    hash: str | None = None
    """SHA-256 of a file's content or of a link's target; None where it was not read."""
    lines: int | None = None
    """Lines of a file whose content was read."""


@dataclass(frozen=True, slots=True)
class OutsideChange:
    """A change that the log does not explain. `source` is the earlier path of a renamed entry."""

    path: str
    change: ChangeKind
    source: str | None = None
    before: EntryState | None = None
    """Last known state before the change; None where there was nothing, or where it is unknown."""
    after: EntryState | None = None
    is_before_known: bool = True
    is_ignored: bool = False
    """Whether `.gitignore` excludes the path. Its content is then not read, and changes are seen by size and times."""
    is_overwritten: bool = False
    """Whether a recorded change replaced it afterwards; it is then no longer in the workspace."""

    def as_answer(self) -> dict[str, str]:
        """The entry of `ungoverned` in the answer of `end_session`."""
        source = {} if self.source is None else {"from": self.source}
        return {"path": self.path, "change": self.change, **source}

    def as_json(self) -> dict[str, Any]:
        """JSON form; `from_json` reads it."""
        return {
            **self.as_answer(),
            "before": _state_json(self.before),
            "after": _state_json(self.after),
            "before_known": self.is_before_known,
            "ignored": self.is_ignored,
            "overwritten": self.is_overwritten,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "OutsideChange":
        """Parse the JSON form. TypeError, KeyError or ValueError if it has another form."""
        if not isinstance(value["path"], str) or not isinstance(value.get("from"), str | None):
            raise TypeError
        flags = (value["before_known"], value["ignored"], value["overwritten"])
        if not all(isinstance(flag, bool) for flag in flags):
            raise TypeError
        change = CHANGE_KINDS[CHANGE_KINDS.index(value["change"])]
        states = _parse_state(value["before"]), _parse_state(value["after"])
        return cls(value["path"], change, value.get("from"), *states, *flags)


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of the workspace was compared."""

    state: CoverageState = "whole"
    entries: int = 0
    """Entries that were compared."""
    uncovered: int = 0
    """Entries and directories that are known and were not compared."""
    gaps: tuple[Gap, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """JSON form; `from_json` reads it."""
        return {"state": self.state, "entries": self.entries, "uncovered": self.uncovered, "gaps": list(self.gaps)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Coverage":
        """Parse the JSON form. TypeError, KeyError or ValueError if it has another form."""
        numbers = value["entries"], value["uncovered"]
        gaps = tuple(get_args(Gap)[get_args(Gap).index(gap)] for gap in value["gaps"])
        if not all(type(number) is int for number in numbers):
            raise TypeError
        return cls("partial" if gaps else "whole", *numbers, gaps)


@dataclass(frozen=True, slots=True)
class OutsideReport:
    """Changes of a session's time that Kaiza did not make. Of changes that were already there, the list is a sample."""

    session_id: str
    begun_at: str
    compared_at: str
    ungoverned: tuple[OutsideChange, ...] = ()
    """At most MAX_LISTED; ignored paths last, then by path."""
    ungoverned_count: int = 0
    governed_count: int = 0
    """Paths that differ from the start of the session in the way the log says."""
    already_there: tuple[OutsideChange, ...] = ()
    """Changes between the earlier manifest and the session's begin that the log does not explain."""
    already_there_count: int | None = None
    """None where there was no earlier manifest to compare with."""
    coverage: Coverage = field(default_factory=Coverage)

    @property
    def list_hash(self) -> str:
        """SHA-256 of the listed changes, which the record of `end_session` carries."""
        return hash_changes(self.ungoverned)

    def as_json(self) -> dict[str, Any]:
        """JSON form; `from_json` reads it."""
        return {
            "session_id": self.session_id,
            "begun_at": self.begun_at,
            "compared_at": self.compared_at,
            "ungoverned": [change.as_json() for change in self.ungoverned],
            "ungoverned_count": self.ungoverned_count,
            "governed_count": self.governed_count,
            "already_there": [change.as_json() for change in self.already_there],
            "already_there_count": self.already_there_count,
            "coverage": self.coverage.as_json(),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "OutsideReport":
        """Parse the JSON form. TypeError, KeyError or ValueError if it has another form."""
        texts = {name: value[name] for name in ("session_id", "begun_at", "compared_at")}
        counts = {name: value[name] for name in ("ungoverned_count", "governed_count")}
        earlier = value["already_there_count"]
        if not all(isinstance(text, str) for text in texts.values()):
            raise TypeError
        if not all(type(count) is int for count in (*counts.values(), earlier or 0)):
            raise TypeError
        return cls(
            **texts,
            **counts,
            ungoverned=tuple(map(OutsideChange.from_json, value["ungoverned"])),
            already_there=tuple(map(OutsideChange.from_json, value["already_there"])),
            already_there_count=earlier,
            coverage=Coverage.from_json(value["coverage"]),
        )


def hash_changes(changes: Sequence[OutsideChange]) -> str:
    """SHA-256 of the canonical JSON of the changes."""
    listed, _ = canonical_json.to_recordable([change.as_json() for change in changes])
    return sha256(canonical_json.encode(listed)).hexdigest()


def _state_json(state: EntryState | None) -> dict[str, Any] | None:
    return None if state is None else {name: value for name, value in state._asdict().items() if value is not None}


def _parse_state(value: Mapping[str, Any] | None) -> EntryState | None:
    if value is None:
        return None
    kind = get_args(EntryKind)[get_args(EntryKind).index(value["kind"])]
    numbers = [value.get(name) for name in ("mode", "size", "lines")]
    if not all(number is None or type(number) is int for number in numbers):
        raise TypeError
    if not isinstance(value.get("hash"), str | None):
        raise TypeError
    mode, size, lines = numbers
    return EntryState(cast("EntryKind", kind), mode, size, value.get("hash"), lines)
