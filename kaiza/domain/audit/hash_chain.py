"""Hash chain of log lines: verifies each line's hash, sequence number and link, and classifies faults.

Does not check which members a record has.
"""

import itertools
from collections.abc import Callable, Iterable
from hashlib import sha256

import orjson

from kaiza.domain.audit import canonical_json
from kaiza.domain.audit.record import GENESIS, ChainFault, LogHead, Record

_HASH_SUFFIX = ',"entry_hash":"%s"}\n'
_HASH_SUFFIX_LENGTH = len(_HASH_SUFFIX % GENESIS)
MAX_LINE_BYTES = 2 << 20
"""Eight times the longest record. A longer line is none, and is cut to this length where it is read."""
_SECTOR_BYTES = 512
_MIN_ZERO_BYTES = 8  # fewer zeros at the end of a sector are no proof that it was not written

RecordCallback = Callable[[Record], object]


class InvalidLineError(ValueError):
    """The line's hash or form is wrong, or it does not continue the chain."""


def parse_and_verify(line: bytes) -> Record:
    """Parse a line and verify its hash and canonical form, not its link; InvalidLineError if either is wrong."""
    body = line[:-_HASH_SUFFIX_LENGTH] + b"}"
    digest = sha256(body).hexdigest()
    if not line.endswith((_HASH_SUFFIX % digest).encode()):
        raise InvalidLineError
    members = canonical_json.decode(body)
    if members is None or "entry_hash" in members:
        raise InvalidLineError
    return Record({**members, "entry_hash": digest})


class Chain:
    """Position in a chain: the last valid record. Starts at a trusted head, or at the beginning of the log."""

    __slots__ = ("before", "entry_hash", "last", "seq", "size")

    def __init__(self, head: LogHead | None = None) -> None:
        self.seq, self.entry_hash, self.size = 0, GENESIS, 0
        self.before = 0
        """Offset of the last valid line."""
        self.last = b""
        """The last valid line; empty if the chain was resumed after it."""
        if head is not None:
            self.resume_at(head)

    @property
    def head(self) -> LogHead | None:
        """The last valid record, or None before the first."""
        return LogHead(self.seq, self.entry_hash, self.size) if self.seq else None

    def is_at(self, head: LogHead) -> bool:
        """Whether the last valid record is this one."""
        return head == LogHead(self.seq, self.entry_hash, self.size)

    def resume_at(self, head: LogHead) -> None:
        """Continue after a head that is trusted or was verified elsewhere."""
        self.seq, self.entry_hash, self.size, self.last = head.seq, head.entry_hash, head.size, b""

    def feed(self, line: bytes) -> Record:
        """Verify and append the next line and return its record; InvalidLineError, and no change, if it is invalid."""
        records: list[Record] = []
        if not self.extend((line,), records.append, strictly=True):
            raise InvalidLineError
        return records[0]

    def extend(
        self, lines: Iterable[bytes], on_record: RecordCallback | None = None, *, strictly: bool = False
    ) -> bool:
        """Append lines up to the first that does not continue the chain; return whether all of them did.

        `strictly` also checks the canonical form. Followers leave that to verification: it doubles the cost of a line,
        and only someone who recomputes hashes could have written another form.
        """
        decode = canonical_json.decode if strictly else orjson.loads
        # One loop over local variables: every process follows the others' lines from a cold cache, where each
        # function call counts.
        seq, entry_hash, size, before, last = self.seq, self.entry_hash, self.size, self.before, self.last
        try:
            for line in lines:
                body = line[:-_HASH_SUFFIX_LENGTH] + b"}"
                digest = sha256(body).hexdigest()
                try:
                    members = decode(body) if line.endswith((_HASH_SUFFIX % digest).encode()) else None
                except orjson.JSONDecodeError:
                    return False
                if not members or "entry_hash" in members or members.get("prev_hash") != entry_hash:
                    return False
                if members.get("seq") != seq + 1 or type(members["seq"]) is not int:  # not true or 1.0
                    return False
                seq, entry_hash, before, last = seq + 1, digest, size, line
                size += len(line)
                if on_record is not None:
                    members["entry_hash"] = digest
                    on_record(Record(members))
        finally:
            self.seq, self.entry_hash, self.size, self.before, self.last = seq, entry_hash, size, before, last
        return True

    def append_own(self, entry_hash: str, line: bytes) -> None:
        """Append a line that this process wrote itself; it is not verified."""
        self.seq += 1
        self.entry_hash = entry_hash
        self.before, self.last = self.size, line
        self.size += len(line)


def is_torn(line: bytes, offset: int) -> bool:
    """Whether an invalid last line can be the result of a crash: no newline, or a sector that was never written.

    Not one that is as long as no record is.
    """
    if len(line) >= MAX_LINE_BYTES:
        return False
    if not line.endswith(b"\n"):
        return True
    # After a power cut the file may have its full size while some sectors still read as zeros.
    cuts = range(_SECTOR_BYTES - offset % _SECTOR_BYTES, len(line), _SECTOR_BYTES)
    sectors = [line[start:end] for start, end in zip([0, *cuts], [*cuts, len(line)], strict=True)]
    return any(len(sector) >= _MIN_ZERO_BYTES and not any(sector) for sector in sectors)


def diagnose(chain: Chain, line: bytes, rest: Iterable[bytes]) -> ChainFault:
    """Classify the fault at the next complete line, which does not continue the chain; `rest` are the lines after it.

    The fault's `seq` is the one that the line should have had. A record that was edited and hashed again shows only in
    the link of the line after it; then it is the edited record's.
    """
    later = iter(rest)
    following = next(later, b"")
    try:
        record = parse_and_verify(line)
    except InvalidLineError:
        why = "inserted" if _is_continuation(chain, following) else "edited"
        return ChainFault(chain.seq + 1, why, chain.size)
    if record.members.get("seq") == chain.seq + 1:
        return _diagnose_relinked(chain, line, following)
    why = _classify_misplaced(chain, line, record, itertools.chain((following,), later))
    return ChainFault(chain.seq + 1, why, chain.size)


def _classify_misplaced(chain: Chain, line: bytes, record: Record, rest: Iterable[bytes]) -> str:
    """Classify a line with a valid hash but the wrong number: inserted, moved, or after a gap."""
    seq = record.members.get("seq")
    if type(seq) is not int or seq <= chain.seq:
        return "inserted"
    predecessor_suffix = (_HASH_SUFFIX % record.members.get("prev_hash")).encode()
    has_continuation = has_predecessor = False
    for other in rest:
        if other == line:
            return "inserted"
        has_continuation = has_continuation or _is_continuation(chain, other)
        has_predecessor = has_predecessor or other.endswith(predecessor_suffix)
    if not has_continuation:
        return "dropped"
    return "reordered" if has_predecessor else "inserted"


def _is_continuation(chain: Chain, line: bytes) -> bool:
    # A substring search first: the caller may ask for every line of a long log.
    if b'"prev_hash":"%b"' % chain.entry_hash.encode() not in line:
        return False
    trial = Chain(chain.head)
    try:
        trial.feed(line)
    except InvalidLineError:
        return False
    return True


def _diagnose_relinked(chain: Chain, line: bytes, following: bytes) -> ChainFault:
    """Classify a line with a valid hash and the right number that links to another record."""
    if _is_continuation(chain, following):
        return ChainFault(chain.seq + 1, "inserted", chain.size)
    try:
        is_linked = parse_and_verify(following).members.get("prev_hash") == parse_and_verify(line).entry_hash
    except InvalidLineError:
        is_linked = True  # no valid line follows that could say otherwise
    if chain.seq == 0 or not is_linked:
        return ChainFault(chain.seq + 1, "edited", chain.size)
    return ChainFault(chain.seq, "edited", chain.before)
