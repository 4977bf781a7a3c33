"""What one line of the record is: its members, its bytes, its hash, and its link to the line before."""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, NamedTuple

import kaiza
from kaiza.domain import canonical, errors

GENESIS = "0" * 64
MAX_RECORD = 256 * 1024
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
_GIVEN_BY_SEAL = ("seq", "prev_hash", "entry_hash")
_SHA256 = sha256()
_EMPTY: dict[str, Any] = {name: None for name in FIELDS if name not in _GIVEN_BY_SEAL} | {"kaiza": kaiza.__version__}
_PREV_HASH, _SEQ = b',"prev_hash":"",', b',"seq":0,'
_PLACE = {"prev_hash": "", "seq": 0}
_STRETCHES = [
    [name for name in sorted(_EMPTY) if before < name < after]
    for before, after in (("", "prev_hash"), ("prev_hash", "seq"), ("seq", "~"))
]


@dataclass(frozen=True, slots=True)
class Head:
    """The last record of a log: its number, its hash, and the log's bytes up to its end."""

    seq: int
    entry_hash: str
    size: int


class Body(NamedTuple):
    """A record before it has its place in the chain. `compose` makes it; an outcome's is made before the log's lock.

    `told` are its bytes but for those that say the place: up to `prev_hash`, from there to `seq`, and the rest.
    """

    members: dict[str, Any]
    told: tuple[bytes, bytes, bytes]


@dataclass(frozen=True, slots=True)
class Fault:
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
    head: Head | None
    first_fault: Fault | None
    anchored: bool


def compose(kind: str, **members: Any) -> Body:
    """A body with every member present, null where nothing was given (`changes`: empty), made tellable.

    Its number and its link come with `seal`. What was given is not to change any more.
    """
    if kind not in KINDS:
        raise ValueError(f"no such kind of record: {kind}")
    if unknown := members.keys() - _EMPTY.keys():
        raise ValueError(f"no such member of a record: {', '.join(sorted(unknown))}")
    body = {**_EMPTY, **members, "kind": kind}
    body["changes"] = body["changes"] or []
    told = canonical.write_tellable(members, {**body, **_PLACE})
    if told is None:
        body, places = canonical.tellable(body)
        if places:
            body["detail"] = {**(body["detail"] or {}), "escaped": list(places)}
        told = canonical.write({**body, **_PLACE})
    return Body(body, _around_place(told, body))


def _around_place(told: bytes, body: dict[str, Any]) -> tuple[bytes, bytes, bytes]:
    """A record's bytes without those that tell its place: before `prev_hash`, up to `seq`, and the rest.

    An argument may look like a place; what follows the last one is a place only if no object ends in there.
    """
    first, _, rest = told.rpartition(_PREV_HASH)
    if rest.find(b"}") == len(rest) - 1:
        second, _, third = rest.partition(_SEQ)
        return first, second, third
    first, second, third = (canonical.write({name: body[name] for name in names}) for names in _STRETCHES)
    return first[:-1], second[1:-1], third[1:]


def seal(body: Body, seq: int, prev_hash: str) -> tuple[bytes, dict[str, Any]]:
    """The line, with its newline, and the whole record. CAP_EXCEEDED where it would be longer than a record may be.

    Under the log's lock, and from a cold cache: a hash is copied rather than begun, which looks up the algorithm anew.
    """
    if seq > canonical.LARGEST:
        raise ValueError("outside the profile: a record's number")
    first, second, third = body.told
    told = b'%b,"prev_hash":"%b",%b,"seq":%d,%b' % (first, prev_hash.encode(), second, seq, third)
    hashed = _SHA256.copy()
    hashed.update(told)
    digest = hashed.hexdigest()
    line = told[:-1] + b',"entry_hash":"' + digest.encode() + b'"}\n'
    if len(line) > MAX_RECORD:
        raise errors.SystemError.tool_failure(
            "CAP_EXCEEDED",
            human_message="The record of this call would be too long. Ask for less in one call.",
            cause={"cap": "record_bytes", "limit": MAX_RECORD, "size": len(line)},
        )
    return line, {**body.members, "seq": seq, "prev_hash": prev_hash, "entry_hash": digest}
