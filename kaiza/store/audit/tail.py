"""Tail of the log: verifies what was appended since the last read and passes each record on once, in order.

Following is cheaper than verification: number, link and hash of each line are checked, but not that its JSON is
canonical. Only someone who computes hashes could forge that, and they could write canonical JSON as well.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from kaiza.domain.audit.hash_chain import Chain, InvalidLineError, diagnose, is_torn, parse_and_verify
from kaiza.domain.audit.record import GENESIS, ChainFault, LogHead, Record, Verdict
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.reader import BLOCK_BYTES, last_line, read_lines, split_lines

RecordCallback = Callable[[Record], None]
_MAX_LINES_BACK = 1000
"""How many lines from the end are searched for a valid one, before all of the log is read."""
_MAX_BYTES_BACK = 16 << 20


@dataclass(frozen=True, slots=True)
class TornTail:
    """Last line that a crash left unfinished: its offset and length."""

    offset: int
    length: int


class Follower:
    """Tail follower with one position in the log.

    While the log is sound, the position is the end of the verified chain, and every record before it was passed to
    `on_record`. In a damaged log it is the end of the file, and every line with a valid hash is passed on, so that
    reads still work.
    """

    def __init__(self, on_record: RecordCallback, start: LogHead | None = None) -> None:
        self.on_record = on_record
        self.silent = False
        """Whether records are verified only, because they were passed on before."""
        self.chain = Chain(start)
        self.is_sound = True
        self.is_missing_newline = False
        """Whether a damaged log ends within a line; the next record must not be glued to it."""
        self._set_position()

    def _set_position(self) -> None:
        self.position = self.chain.size
        self.link = (self.chain.seq, self.chain.entry_hash)
        """Number and hash of the record that the next one is chained to."""

    @property
    def observed_head(self) -> LogHead | None:
        """The head, if this process itself has read it in the log."""
        return self.chain.head if self.is_sound and self.chain.last else None

    def still_contains(self, file: LogFile) -> bool:
        """Whether the last record this process knows is still at its offset in the log."""
        if not self.is_sound or self.chain.seq == 0:
            return True
        if self.chain.last:
            return file.read(self.chain.size - len(self.chain.last), self.chain.size) == self.chain.last
        line = last_line(file.descriptor, self.chain.size)
        if is_record_line(line, self.chain.seq, self.chain.entry_hash):
            self.chain.last = line
        return bool(self.chain.last)

    def try_advance(self, file: LogFile, size: int) -> bool:
        """Follow the lines after the last known one, without the log's lock.

        False if they could not all be followed: that line has changed, a new one is invalid or incomplete, or there
        are too many for one read. The caller then follows under the lock.
        """
        last = self.chain.last
        begin = self.chain.size - len(last)
        if not last or not self.is_sound or self.silent or not self.chain.size <= size <= begin + BLOCK_BYTES:
            return False
        # One read for the known line and the new ones: without the lock, two reads could see different files.
        content = os.pread(file.descriptor, size - begin, begin)
        return (
            len(content) == size - begin
            and content.startswith(last)
            and self._extend_chain(split_lines(content[len(last) :]))
        )

    def advance(self, file: LogFile, size: int) -> None:
        """Follow the log up to `size`, or up to the first line that does not continue the chain."""
        if self.is_sound:
            self._extend_chain(read_lines(file.descriptor, self.position, size))

    def _extend_chain(self, lines: Iterable[bytes]) -> bool:
        # The position moves even if `on_record` raises: no record is passed on twice.
        try:
            return self.chain.extend(lines, None if self.silent else self.on_record)
        finally:
            self._set_position()

    def advance_damaged(self, file: LogFile, size: int) -> None:
        """Pass on every record with a valid hash, up to `size`. From now on the log is not sound."""
        self.is_sound = False
        if size == 0:
            self.link, self.is_missing_newline = (0, GENESIS), False
        for line in read_lines(file.descriptor, min(self.position, size), size):
            self.is_missing_newline = not line.endswith(b"\n")
            record = _parse_or_none(line)
            if record is not None:
                self.link = (record.seq, record.entry_hash)
                if not self.silent:
                    self.on_record(record)
        self.position = size

    def append_own(self, line: bytes, record: Record, length: int) -> None:
        """Advance over a record that this process itself has appended, in `length` bytes."""
        if self.is_sound:
            self.chain.append_own(record.entry_hash, line)
            self._set_position()
        else:
            self.position += length
            self.link, self.is_missing_newline = (record.seq, record.entry_hash), False
        self.on_record(record)


def find_start_near_end(descriptor: int, size: int, known: LogHead | None, near: int) -> LogHead | None:
    """A record from which to follow the end of a long log, without reading what is before.

    The known head, if the log contains it in its last `near` bytes; else the last valid line. None if there is none.
    """
    if known is not None and size - near <= known.size <= size:
        line = last_line(descriptor, known.size)
        if is_record_line(line, known.seq, known.entry_hash):
            return known
    end = size
    for _ in range(_MAX_LINES_BACK):
        line = last_line(descriptor, end)
        record = _parse_or_none(line)
        if record is not None and record.seq > 0:
            return LogHead(record.seq, record.entry_hash, end)
        end -= len(line)
        if end <= size - _MAX_BYTES_BACK or end <= 0:
            break
    return None


def diagnose_tail(chain: Chain, descriptor: int, size: int, checkpoint: LogHead | None) -> Verdict | TornTail:
    """What is wrong with the bytes from the chain's end to `size`, which do not continue it.

    The caller still has to compare a torn tail with the checkpoint: if that covers the line, it was cut off.
    """
    rest = read_lines(descriptor, chain.size, size)
    line = next(rest, b"")
    is_complete = line.endswith(b"\n")
    is_covered = checkpoint is not None and checkpoint.size > chain.size
    is_last = not is_complete or chain.size + len(line) >= size
    # A crash cannot damage a complete line that was durable: that is tampering.
    if is_last and is_torn(line, chain.size) and not (is_covered and is_complete):
        return TornTail(chain.size, size - chain.size)
    return Verdict("broken", chain.seq, chain.head, diagnose(chain, line, rest), anchored=False)


def compare_with_head(chain: Chain, descriptor: int, known: LogHead | None) -> Verdict | None:
    """Compare a sound log with a head known from elsewhere: `cut_off`, `replaced`, or None if it contains it."""
    if known is None:
        return None
    if known.seq > chain.seq:
        fault = ChainFault(chain.seq + 1, "dropped", chain.size)
        return Verdict("cut_off", chain.seq, chain.head, fault, anchored=False)
    if known.size <= chain.size and is_record_line(last_line(descriptor, known.size), known.seq, known.entry_hash):
        return None
    fault = ChainFault(known.seq, "edited", min(known.size, chain.size))
    return Verdict("replaced", chain.seq, chain.head, fault, anchored=False)


def is_record_line(line: bytes, seq: int, entry_hash: str) -> bool:
    """Whether this line is a valid record with that number and hash."""
    record = _parse_or_none(line)
    return record is not None and record.seq == seq and record.entry_hash == entry_hash


def read_valid_records(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records with a valid hash and a number, whatever they are chained to."""
    for line in lines:
        record = _parse_or_none(line)
        if record is not None:
            yield record


def _parse_or_none(line: bytes) -> Record | None:
    """The record in a line with a valid hash and a number, whatever it is chained to; None if it holds none."""
    try:
        record = parse_and_verify(line)
    except InvalidLineError:
        return None
    return record if type(record.members.get("seq")) is int else None
