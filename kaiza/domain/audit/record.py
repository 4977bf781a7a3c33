"""What one line of the record is: its members, its bytes, its hash, and its link to the line before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NewType

import kaiza
from kaiza.domain import errors
from kaiza.domain.audit import canonical_json

GENESIS = "0" * 64
MAX_RECORD_BYTES = 256 * 1024
KINDS = ("call", "intent", "plan", "session", "recovery", "person")
FIELDS = (
    "seq",
    "timestamp",
    "kind",
    "request_id",
    "session_id",
    "role",
    "workspace_root",
    "tool_name",
    "phase_id",
    "plan_id",
    "plan_hash",
    "outcome",
    "error_code",
    "human_message",
    "invariant_id",
    "cause",
    "arguments",
    "changes",
    "detail",
    "duration_ms",
    "client",
    "kaiza",
    "prev_hash",
    "entry_hash",
)
_CHAIN_MEMBERS = ("seq", "prev_hash", "entry_hash")
_SHA256 = sha256()
_EMPTY_BODY: dict[str, Any] = {name: None for name in FIELDS if name not in _CHAIN_MEMBERS} | {
    "kaiza": kaiza.__version__
}

Body = NewType("Body", dict[str, Any])
"""A record before it has its place: every member present, and each of them tellable. `compose` makes it."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """The last record of a log: its number, its hash, and the log's bytes up to its end."""

    seq: int
    entry_hash: str
    size: int


@dataclass(frozen=True, slots=True)
class ChainFault:
    """The first record that is not what it was, why, and the byte where its line begins."""

    seq: int
    why: str
    offset: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """What verifying a log came to.

    `verdict` is intact, torn_tail, broken, cut_off, replaced or missing; `records` and `head` are what is sound
    from the beginning on; `anchored` says that a head kept elsewhere is in it.
    """

    verdict: str
    records: int
    head: LogHead | None
    first_fault: ChainFault | None
    anchored: bool


def new_body(kind: str, **members: Any) -> Body:
    """A body with every member present, null where nothing was given (`changes`: empty), made tellable.

    Its number and its link come with `seal`.
    """
    if kind not in KINDS:
        raise ValueError(f"no such kind of record: {kind}")
    if unknown := members.keys() - _EMPTY_BODY.keys():
        raise ValueError(f"no such member of a record: {', '.join(sorted(unknown))}")
    told, places = canonical_json.to_recordable(members)
    body = Body({**_EMPTY_BODY, **told, "kind": kind})
    body["changes"] = body["changes"] or []
    if places:
        body["detail"] = {**(body["detail"] or {}), "escaped": list(places)}
    return body


def serialize_and_hash(body: Body, seq: int, prev_hash: str) -> tuple[bytes, dict[str, Any]]:
    """The line, with its newline, and the whole record. CAP_EXCEEDED where it would be longer than a record may be.

    Under the log's lock, and from a cold cache: a hash is copied rather than begun, which looks up the algorithm anew.
    """
    record = {**body, "seq": seq, "prev_hash": prev_hash}
    told = canonical_json.encode_unchecked(record)
    hashed = _SHA256.copy()
    hashed.update(told)
    digest = hashed.hexdigest()
    line = told[:-1] + b',"entry_hash":"' + digest.encode() + b'"}\n'
    if len(line) > MAX_RECORD_BYTES:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The record of this call would be too long. Ask for less in one call.",
            cause={"cap": "record_bytes", "limit": MAX_RECORD_BYTES, "size": len(line)},
        )
    record["entry_hash"] = digest
    return line, record


_MAX_NUMBER = 1 << 40
"""No file of ours has so many lines or bytes; sums of such numbers still fit into a snapshot."""


def require_texts(told: Mapping[str, Any], *names: str, or_null: bool = False) -> None:
    """TypeError where one of these members is no text. They become keys of the facts, or are read as paths."""
    if not all(isinstance(told[name], str) or (or_null and told[name] is None) for name in names):
        raise TypeError


def _require_numbers(told: Mapping[str, Any], *names: str) -> None:
    """TypeError where one of these members is no plausible number; what is added up has to stay one that JSON holds."""
    if not all(type(told[name]) is int and 0 <= told[name] <= _MAX_NUMBER for name in names):
        raise TypeError


def _require_each_text(told: Iterable[Any]) -> None:
    """TypeError where one of these is no text, as times and paths are."""
    if not all(isinstance(one, str) for one in told):
        raise TypeError


def require_intent(told: Mapping[str, Any]) -> None:
    """TypeError where the members of an intent are not what ours have there."""
    require_texts(told, "session_id", "tool_name", "plan_id", "plan_hash", or_null=True)
    _require_numbers(told, "seq")
    if not isinstance(told["detail"], dict | None) or not isinstance(told["changes"], list):
        raise TypeError
    for change in told["changes"]:
        require_texts(change, "path", "operation")
        require_texts(change, "source", "before_hash", "after_hash", or_null=True)
        _require_numbers(change, "size", "lines_added", "lines_removed")


def require_carried_state(told: Mapping[str, Any]) -> None:
    """TypeError where a part that is carried over does not have the form that `carried.parts` gives it."""
    for lock in told.get("locks", ()):
        require_texts(lock, "role", "error_code", "at")
        require_texts(lock, "session_id", "request_id", or_null=True)
        _require_numbers(lock, "seq")
    for one in told.get("approvals", ()):
        require_texts(one, "plan_id", "plan_hash")
    for one in told.get("withdrawn", ()):
        require_texts(one, "plan_id", "action")
    for one in told.get("released", ()):
        require_texts(one, "role")
    for one in [*told.get("released", ()), *told.get("reports", ())]:
        _require_each_text(one["at"])
    _require_carried_work(told)


def _require_carried_work(told: Mapping[str, Any]) -> None:
    """The same for what was approved, used and left open."""
    for one in told.get("seals", ()):
        require_texts(one, "plan_id")
        require_texts(one["seal"], "plan_hash", "how")
        require_texts(one["seal"], "approved_by", or_null=True)
        _require_numbers(one["seal"], "seq")
    for one in told.get("usage", ()):
        require_texts(one, "plan_id")
        numbers = {name: number for name, number in one["use"].items() if name != "files"}
        files = dict(one["use"]["files"])
        _require_numbers(numbers, *numbers)
        _require_numbers(files, *files)
        _require_each_text(files)
    for one in told.get("intents", ()):
        require_texts(one, "request_id")
        _require_numbers(one, "at")
        require_intent(one["intent"])
