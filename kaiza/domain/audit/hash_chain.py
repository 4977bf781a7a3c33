"""Whether lines are a chain: each sound in itself, numbered without a gap, naming the hash of the one before.

Bytes, canonical form, numbers and links are judged, not which members a body has.
"""

from collections.abc import Callable, Iterable
from hashlib import sha256
from itertools import chain as joined
from typing import Any

import orjson

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.record import GENESIS, ChainFault, LogHead

_HASH_SUFFIX = ',"entry_hash":"%s"}\n'
_HASH_SUFFIX_LENGTH = len(_HASH_SUFFIX % GENESIS)
_SECTOR_BYTES = 512
_MIN_ZERO_BYTES = 8


class InvalidLineError(ValueError):
    """A line that is not sound in itself, or does not continue its chain."""


def parse_and_verify(line: bytes) -> dict[str, Any]:
    """The record in a line that is sound in itself: its hash is right and its body canonical. Else FaultyLineError."""
    told = line[:-_HASH_SUFFIX_LENGTH] + b"}"
    digest = sha256(told).hexdigest()
    if not line.endswith((_HASH_SUFFIX % digest).encode()):
        raise InvalidLineError
    record = canonical_json.decode(told)
    if record is None or "entry_hash" in record:
        raise InvalidLineError
    record["entry_hash"] = digest
    return record


class Chain:
    """Judges lines one by one, each against the one before; starts at a head that is believed, or at the beginning."""

    __slots__ = ("before", "entry_hash", "last", "seq", "size")

    def __init__(self, head: LogHead | None = None) -> None:
        self.seq, self.entry_hash, self.size = 0, GENESIS, 0
        self.before = 0
        """Where the line of the last sound record begins."""
        self.last = b""
        """That line, if it was seen."""
        if head is not None:
            self.resume_at(head)

    @property
    def head(self) -> LogHead | None:
        """The last record that was sound."""
        return LogHead(self.seq, self.entry_hash, self.size) if self.seq else None

    def is_at(self, head: LogHead) -> bool:
        """Whether this is where the chain stands."""
        return head == LogHead(self.seq, self.entry_hash, self.size)

    def resume_at(self, head: LogHead) -> None:
        """Everything up to here is known to be sound."""
        self.seq, self.entry_hash, self.size, self.last = head.seq, head.entry_hash, head.size, b""

    def feed(self, line: bytes) -> dict[str, Any]:
        """The record of the next line. FaultyLineError, and nothing moved, where it does not continue the chain."""
        told: list[dict[str, Any]] = []
        if not self.extend((line,), told.append, strictly=True):
            raise InvalidLineError
        return told[0]

    def extend(
        self, lines: Iterable[bytes], tell: Callable[[dict[str, Any]], object] | None = None, *, strictly: bool = False
    ) -> bool:
        """Go on over these lines as far as each continues the chain, and tell its record; whether all of them do.

        `strictly`: what `feed` judges. Else the canonical form is left to a verification, at half the price. One loop
        without a call of our own in it: what others wrote is followed from a cold cache, where calls are dear.
        """
        read = canonical_json.decode if strictly else orjson.loads
        seq, entry_hash, size, before, last = self.seq, self.entry_hash, self.size, self.before, self.last
        try:
            for line in lines:
                told = line[:-_HASH_SUFFIX_LENGTH] + b"}"
                digest = sha256(told).hexdigest()
                try:
                    record = read(told) if line.endswith((_HASH_SUFFIX % digest).encode()) else None
                except orjson.JSONDecodeError:
                    return False
                if not record or "entry_hash" in record or record.get("prev_hash") != entry_hash:
                    return False
                if record.get("seq") != seq + 1 or type(record["seq"]) is not int:
                    return False
                seq, entry_hash, before, last = seq + 1, digest, size, line
                size += len(line)
                if tell is not None:
                    record["entry_hash"] = digest
                    tell(record)
        finally:
            self.seq, self.entry_hash, self.size, self.before, self.last = seq, entry_hash, size, before, last
        return True

    def append_own(self, entry_hash: str, line: bytes) -> None:
        """The next record is the one in this line."""
        self.seq += 1
        self.entry_hash = entry_hash
        self.before, self.last = self.size, line
        self.size += len(line)


def is_torn(line: bytes, offset: int) -> bool:
    """Whether a crash could have left this faulty last line: no newline, or a sector of it was never written."""
    if not line.endswith(b"\n"):
        return True
    cuts = range(_SECTOR_BYTES - offset % _SECTOR_BYTES, len(line), _SECTOR_BYTES)
    pieces = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    return any(len(piece) >= _MIN_ZERO_BYTES and not any(piece) for piece in pieces)


def diagnose(chain: Chain, line: bytes, rest: Iterable[bytes]) -> ChainFault:
    """What was done to a log whose next complete line does not continue the chain; `rest` are the lines after it.

    `seq` is the number that the line should have had, which is its place in the log; where a record was changed and
    sealed again, so that only the next one's link tells, it is the changed one's.
    """
    after = iter(rest)
    following = next(after, b"")
    try:
        record = parse_and_verify(line)
    except InvalidLineError:
        why = "inserted" if _is_continuation(chain, following) else "edited"
        return ChainFault(chain.seq + 1, why, chain.size)
    if record.get("seq") == chain.seq + 1:
        return _diagnose_relinked(chain, line, following)
    return ChainFault(chain.seq + 1, _classify_misplaced(chain, line, record, joined((following,), after)), chain.size)


def _classify_misplaced(chain: Chain, line: bytes, record: dict[str, Any], rest: Iterable[bytes]) -> str:
    """A sound record with the wrong number: a copy or a stranger, or one that came too early, or after a gap."""
    if type(record.get("seq")) is not int or record["seq"] <= chain.seq:
        return "inserted"
    before = _HASH_SUFFIX % record.get("prev_hash")
    expected = belongs = False
    for other in rest:
        if other == line:
            return "inserted"
        expected = expected or _is_continuation(chain, other)
        belongs = belongs or other.endswith(before.encode())
    if not expected:
        return "dropped"
    return "reordered" if belongs else "inserted"


def _is_continuation(chain: Chain, line: bytes) -> bool:
    if b'"prev_hash":"%b"' % chain.entry_hash.encode() not in line:
        return False
    trial = Chain(chain.head)
    try:
        trial.feed(line)
    except InvalidLineError:
        return False
    return True


def _diagnose_relinked(chain: Chain, line: bytes, following: bytes) -> ChainFault:
    """The line is sound and has the right number, but names another record before it."""
    if _is_continuation(chain, following):
        return ChainFault(chain.seq + 1, "inserted", chain.size)
    if chain.seq == 0 or not _is_linked(line, following):
        return ChainFault(chain.seq + 1, "edited", chain.size)
    return ChainFault(chain.seq, "edited", chain.before)


def _is_linked(line: bytes, following: bytes) -> bool:
    """Whether the next line names this one; also where nothing sound follows to tell."""
    try:
        return bool(parse_and_verify(following).get("prev_hash") == parse_and_verify(line)["entry_hash"])
    except InvalidLineError:
        return True
