"""Audit record: members, serialized line, hash, and link to the previous line.

Also checks the types of records that were read from a log: it may come from an untrusted clone.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, NewType

import kaiza
from kaiza.domain import errors
from kaiza.domain.audit import canonical_json

GENESIS = "0" * 64
MAX_RECORD_BYTES = 256 * 1024
KINDS = ("call", "intent", "plan", "session", "recovery", "person")
FIELDS = (
    *("seq", "timestamp", "kind", "request_id", "session_id", "role", "workspace_root", "tool_name"),
    *("phase_id", "plan_id", "plan_hash", "outcome", "error_code", "human_message", "invariant_id", "cause"),
    *("arguments", "changes", "detail", "duration_ms", "client", "principal", "kaiza", "prev_hash"),
    "entry_hash",
)
_KNOWN_MEMBERS = frozenset(FIELDS)
_SHA256 = sha256()  # copied for each record
_EMPTY_BODY: dict[str, Any] = {
    **{name: None for name in FIELDS if name not in ("seq", "prev_hash", "entry_hash")},
    "kaiza": kaiza.__version__,
}

Body = NewType("Body", dict[str, Any])
"""A record without sequence number and link, all members present and in canonical JSON's profile. See `new_body`."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Record:
    """One record of the log, its members as attributes; what a record of an earlier version lacks is None.

    A log that came with a clone may hold anything. Whatever it holds, `seq`, `timestamp`, `kind`, `arguments`,
    `changes` and `detail` have the types given here and are never None; the others do if the record `is_well_formed`.
    """

    # ruff: noqa: D102  docs/audit-format.md explains the members
    # `Final` and not frozen: a long log has millions of records, and a frozen one takes three times as long to make.
    members: Final[dict[str, Any]]
    """The decoded members, also those that are not known here."""

    @property
    def seq(self) -> int:
        return self.members["seq"]  # type: ignore[no-any-return]

    @property
    def timestamp(self) -> str:
        timestamp = self.members.get("timestamp")
        return timestamp if type(timestamp) is str else ""

    @property
    def kind(self) -> str:
        """One of KINDS; another one of records that Kaiza did not write."""
        kind = self.members.get("kind")
        return kind if type(kind) is str else ""

    @property
    def request_id(self) -> str | None:
        return self.members.get("request_id")

    @property
    def session_id(self) -> str | None:
        """None for what a person or Kaiza itself did."""
        return self.members.get("session_id")

    @property
    def role(self) -> str | None:
        return self.members.get("role")

    @property
    def workspace_root(self) -> str | None:
        return self.members.get("workspace_root")

    @property
    def tool_name(self) -> str | None:
        return self.members.get("tool_name")

    @property
    def plan_id(self) -> str | None:
        return self.members.get("plan_id")

    @property
    def plan_hash(self) -> str | None:
        return self.members.get("plan_hash")

    @property
    def outcome(self) -> str | None:
        """`ok`, `error` or None."""
        return self.members.get("outcome")

    @property
    def error_code(self) -> str | None:
        return self.members.get("error_code")

    @property
    def human_message(self) -> str | None:
        return self.members.get("human_message")

    @property
    def invariant_id(self) -> str | None:
        return self.members.get("invariant_id")

    @property
    def cause(self) -> Any:
        return self.members.get("cause")

    @property
    def arguments(self) -> Mapping[str, Any]:
        arguments = self.members.get("arguments")
        return arguments if type(arguments) is dict else _NOTHING

    @property
    def changes(self) -> Sequence[Mapping[str, Any]]:
        """The changed files, each with the members of `Change.as_record`."""
        changes = self.members.get("changes")
        return changes if type(changes) is list else ()

    @property
    def detail(self) -> Mapping[str, Any]:
        """What only records of this kind, or of this tool, have."""
        detail = self.members.get("detail")
        return detail if type(detail) is dict else _NOTHING

    @property
    def duration_ms(self) -> int | None:
        return self.members.get("duration_ms")

    @property
    def client(self) -> str | None:
        return self.members.get("client")

    @property
    def principal(self) -> str | None:
        """Label of the token that a call over HTTP came with."""
        return self.members.get("principal")

    @property
    def entry_hash(self) -> str:
        return self.members.get("entry_hash") or ""


@dataclass(frozen=True, slots=True)
class LogHead:
    """Last record of a log: its sequence number, its hash, and the offset of its end."""

    seq: int
    entry_hash: str
    size: int


@dataclass(frozen=True, slots=True)
class ChainFault:
    """First invalid record: its sequence number, the kind of fault, and the offset of its line."""

    seq: int
    why: str
    offset: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of verifying a log.

    `verdict` is intact, torn_tail, broken, cut_off, replaced or missing. `records` and `head` describe the valid lines
    before the first fault. `anchored`: the log contains the checkpoint kept outside the workspace.
    """

    verdict: str
    records: int
    head: LogHead | None
    first_fault: ChainFault | None
    anchored: bool


def new_body(kind: str, **members: Any) -> Body:
    """Create a body with every member, null if not given (`changes`: an empty list).

    Values outside canonical JSON's profile are converted; `detail.escaped` lists their paths. See `recorded_names`.
    """
    if kind not in KINDS:
        raise ValueError(f"no such kind of record: {kind}")
    if unknown := members.keys() - _EMPTY_BODY.keys():
        raise ValueError(f"no such member of a record: {', '.join(sorted(unknown))}")
    converted, escaped_paths = canonical_json.to_recordable(members)
    body = Body({**_EMPTY_BODY, **converted, "kind": kind})
    body["changes"] = body["changes"] or []
    if escaped_paths:
        marks = {"escaped": list(escaped_paths), "escaping": canonical_json.DOUBLED_BACKSLASHES}
        body["detail"] = {**(body["detail"] or {}), **marks}
    return body


def serialize_and_hash(body: Body, seq: int, prev_hash: str) -> tuple[bytes, Record]:
    """Serialize a body as a log line, with its newline; returns the line and the whole record.

    CAP_EXCEEDED if the line is longer than MAX_RECORD_BYTES.
    """
    record = {**body, "seq": seq, "prev_hash": prev_hash}
    encoded = canonical_json.encode_unchecked(record)
    # Runs under the log's lock. Copying a hash object is cheaper than creating one, which looks up the algorithm.
    sha = _SHA256.copy()
    sha.update(encoded)
    digest = sha.hexdigest()
    line = encoded[:-1] + b',"entry_hash":"' + digest.encode() + b'"}\n'
    if len(line) > MAX_RECORD_BYTES:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The audit record of this call would be too long. Use fewer paths or files in one call.",
            cause={"cap": "record_bytes", "limit": MAX_RECORD_BYTES, "size": len(line)},
        )
    return line, Record({**record, "entry_hash": digest})


# Larger than any count of lines or bytes in a file, and small enough for sums of such numbers to stay below 2**53.
_MAX_NUMBER = 1 << 40
_INTENT_MEMBERS = ("seq", "session_id", "tool_name", "plan_id", "plan_hash", "detail", "changes")
_DIGEST = re.compile("[0-9a-f]{64}")
_OTHER_MEMBERS: Mapping[str, Any] = {
    **dict.fromkeys(("timestamp", "prev_hash", "entry_hash"), str),
    **dict.fromkeys(("workspace_root", "phase_id", "kaiza"), str | None),
    "cause": str | dict | None,
    "arguments": dict | None,
    "duration_ms": int | None,
}
_CHANGE_MEMBERS = frozenset(
    {"path", "source", "operation", "before_hash", "after_hash", "size", "lines_added", "lines_removed", "mode"}
)
_read_texts = itemgetter(
    *("timestamp", "request_id", "session_id", "role", "tool_name", "plan_id", "plan_hash"),
    *("outcome", "error_code", "human_message", "invariant_id", "client", "principal"),
)
_TEXT_TYPES = frozenset((str, type(None)))
_DICT_OR_NULL = (dict, type(None))
_LIST_OR_NULL = (list, type(None))


def require_texts(members: Mapping[str, Any], *names: str) -> list[str]:
    """The named members, which are used as keys of the state or as paths. TypeError if one of them is not a string."""
    texts = [members[name] for name in names]
    _require_all_texts(texts)
    return texts


def _require_all_texts(values: Iterable[Any]) -> None:
    if not all(isinstance(value, str) for value in values):
        raise TypeError


def _require_texts_or_null(members: Mapping[str, Any], *names: str) -> None:
    if not all(members[name] is None or isinstance(members[name], str) for name in names):
        raise TypeError


def _require_numbers(members: Mapping[str, Any], *names: str) -> None:
    # `type`, not `isinstance`: true is an int.
    if not all(type(members[name]) is int and 0 <= members[name] <= _MAX_NUMBER for name in names):
        raise TypeError


def _require_changes(changes: Iterable[Mapping[str, Any]]) -> None:
    for change in changes:
        require_texts(change, "path", "operation")
        _require_texts_or_null(change, "source", "before_hash", "after_hash")
        _require_numbers(change, "size", "lines_added", "lines_removed")


def require_members(record: Record) -> None:
    """TypeError or KeyError if a member that state is computed from is missing or has the wrong type."""
    members = record.members
    # All types at once: a long log is read at the speed of this function.
    if not _TEXT_TYPES.issuperset(map(type, _read_texts(members))):
        raise TypeError
    seq = members["seq"]
    if type(seq) is not int or not 0 <= seq <= _MAX_NUMBER:
        raise TypeError
    if not isinstance(members["detail"], _DICT_OR_NULL) or not isinstance(members["changes"], _LIST_OR_NULL):
        raise TypeError


def extract_intent(record: Record) -> Record:
    """The members of an intent that are kept until its outcome is recorded. TypeError if a change has a wrong type.

    `require_members` has checked the others.
    """
    members = {name: record.members[name] for name in _INTENT_MEMBERS}
    members["changes"] = members["changes"] or []
    _require_changes(members["changes"])
    return Record(members)


def is_complete(record: Record) -> bool:
    """Whether a record has every member."""
    return record.members.keys() >= _KNOWN_MEMBERS


def is_well_formed(record: Record) -> bool:
    """Whether the members that sessions and undos are computed from have the right types.

    A valid chain says nothing about them: a log that came with a clone may contain anything.
    """
    try:
        require_members(record)
        detail, changes = record.detail, record.changes
        _require_changes(changes)
        _require_all_texts(detail.get("undone") or ())
        modes = [*(detail.get("modes") or {}).values(), *(change["mode"] for change in changes)]
    except (KeyError, TypeError, AttributeError):
        return False
    return all(type(mode) is int or mode is None for mode in modes)


def has_known_form(record: Record) -> bool:
    """Whether every member of a whole record is one that Kaiza writes, with a value of its kind."""
    members = record.members
    return (
        members.keys() <= _KNOWN_MEMBERS
        and record.kind in KINDS
        and record.outcome in ("ok", "error", None)
        and is_well_formed(record)
        and record.seq > 0
        and all(isinstance(members.get(name), kind) for name, kind in _OTHER_MEMBERS.items())
        and all(_DIGEST.fullmatch(members[name]) for name in ("prev_hash", "entry_hash"))
        and type(record.duration_ms) is not bool  # true is an int
        and all(change.keys() <= _CHANGE_MEMBERS for change in record.changes)
    )


def require_carried_state(part: Mapping[str, Any]) -> None:
    """TypeError if a part of carried-over state does not have the form that `carry_over.split` creates."""
    for lock in part.get("locks", ()):
        require_texts(lock, "role", "error_code", "at")
        _require_texts_or_null(lock, "session_id", "request_id")
        _require_numbers(lock, "seq")
    for piece in part.get("approvals", ()):
        require_texts(piece, "plan_id", "plan_hash")
    for piece in part.get("withdrawn", ()):
        require_texts(piece, "plan_id", "action")
    for piece in part.get("released", ()):
        require_texts(piece, "role")
    for piece in [*part.get("released", ()), *part.get("reports", ())]:
        _require_all_texts(piece["at"])
    _require_carried_plans(part)


def _require_carried_plans(part: Mapping[str, Any]) -> None:
    """The same for seals, usage and open intents."""
    for piece in part.get("seals", ()):
        require_texts(piece, "plan_id")
        require_texts(piece["seal"], "plan_hash", "how")
        _require_texts_or_null(piece["seal"], "approved_by")
        _require_numbers(piece["seal"], "seq")
    for piece in part.get("usage", ()):
        require_texts(piece, "plan_id")
        numbers = {name: number for name, number in piece["use"].items() if name != "files"}
        files = dict(piece["use"]["files"])
        _require_numbers(numbers, *numbers)
        _require_numbers(files, *files)
        _require_all_texts(files)
    for piece in part.get("intents", ()):
        require_texts(piece, "request_id")
        _require_numbers(piece, "at")
        intent = piece["intent"]
        _require_texts_or_null(intent, "session_id", "tool_name", "plan_id", "plan_hash")
        _require_numbers(intent, "seq")
        if not isinstance(intent["detail"], _DICT_OR_NULL) or not isinstance(intent["changes"], list):
            raise TypeError
        _require_changes(intent["changes"])
