"""Reads what was appended since the last look, judges each line, and tells each record once, in order."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kaiza.domain.audit.hash_chain import Chain, InvalidLineError, diagnose, is_torn, parse_and_verify
from kaiza.domain.audit.record import GENESIS, ChainFault, LogHead, Verdict
from kaiza.store.audit.line_reader import BLOCK_BYTES, last_line, read_lines, split_lines
from kaiza.store.audit.log_file import LogFile

RecordCallback = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class TornTail:
    """A last line that a crash left unfinished: where it begins and how long it is."""

    offset: int
    length: int


class Follower:
    """Tail follower with one position in the log.

    While the log is `sound`, the position is the end of the chain, and every record before it was told. In a damaged
    log it is the end of the file, and every record that is sound in itself is told, so that reads still work.
    """

    def __init__(self, tell: RecordCallback, start: LogHead | None = None) -> None:
        self._on_record = tell
        self.silent = False
        """Whether what is read has been told before."""
        self.chain = Chain(start)
        self.is_sound = True
        self.is_missing_newline = False
        """Whether the last line there lacks its newline."""
        self._set_position()

    def _set_position(self) -> None:
        self.position = self.chain.size
        self.link = (self.chain.seq, self.chain.entry_hash)
        """The number and hash that the next record is chained to."""

    @property
    def observed_head(self) -> LogHead | None:
        """The head, if this process itself has seen it in the log."""
        return self.chain.head if self.is_sound and self.chain.last else None

    def still_contains(self, file: LogFile) -> bool:
        """Whether the log still goes as far as we have come, and its last line there is still the one we know."""
        if not self.is_sound or self.chain.seq == 0:
            return True
        if self.chain.last:
            return file.read(self.chain.size - len(self.chain.last), self.chain.size) == self.chain.last
        line = last_line(file.descriptor, self.chain.size)
        if is_record_line(line, self.chain.seq, self.chain.entry_hash):
            self.chain.last = line
        return bool(self.chain.last)

    def try_advance(self, file: LogFile, size: int) -> bool:
        """Follow what was appended after the last line that we know; whether that is sound, and all there is.

        False where that line is not there any more, or much was appended, or nothing is to be told.
        """
        last = self.chain.last
        begin = self.chain.size - len(last)
        if not last or not self.is_sound or self.silent or not self.chain.size <= size <= begin + BLOCK_BYTES:
            return False
        # The known line is read again together with the new ones, so that both are of the same moment without a lock.
        found = os.pread(file.descriptor, size - begin, begin)
        return (
            len(found) == size - begin
            and found.startswith(last)
            and self._extend_chain(split_lines(found[len(last) :]))
        )

    def advance(self, file: LogFile, size: int) -> None:
        """Tell what is sound up to here; stop quietly where it is not."""
        if self.is_sound:
            self._extend_chain(read_lines(file.descriptor, self.position, size))

    def _extend_chain(self, more: Iterable[bytes]) -> bool:
        try:
            return self.chain.extend(more, None if self.silent else self._on_record)
        finally:
            self._set_position()

    def advance_damaged(self, file: LogFile, size: int) -> None:
        """Tell every record that is sound in itself, up to here."""
        self.is_sound = False
        if size == 0:
            self.link, self.is_missing_newline = (0, GENESIS), False
        for line in read_lines(file.descriptor, min(self.position, size), size):
            self.is_missing_newline = not line.endswith(b"\n")
            try:
                record = parse_and_verify(line)
            except InvalidLineError:
                continue
            if type(record.get("seq")) is int:
                self.link = (record["seq"], record["entry_hash"])
                if not self.silent:
                    self._on_record(record)
        self.position = size

    def append_own(self, line: bytes, record: dict[str, Any], length: int) -> None:
        """We appended this record ourselves, in so many bytes."""
        if self.is_sound:
            self.chain.append_own(record["entry_hash"], line)
            self._set_position()
        else:
            self.position += length
            self.link, self.is_missing_newline = (record["seq"], record["entry_hash"]), False
        self._on_record(record)


def diagnose_tail(chain: Chain, descriptor: int, size: int, anchored: LogHead | None) -> Verdict | TornTail:
    """What is the matter with a log whose bytes from the chain's end to `size` begin with a line that is not sound.

    A torn line is still to be held `against` what is known: if the anchor covers it, it was cut off.
    """
    rest = read_lines(descriptor, chain.size, size)
    line = next(rest, b"")
    whole = line.endswith(b"\n")
    covered = anchored is not None and anchored.size > chain.size
    last = not whole or chain.size + len(line) >= size
    if last and is_torn(line, chain.size) and not (covered and whole):
        return TornTail(chain.size, size - chain.size)
    return Verdict("broken", chain.seq, chain.head, diagnose(chain, line, rest), anchored=False)


def compare_with_head(chain: Chain, descriptor: int, known: LogHead | None) -> Verdict | None:
    """What is the matter with a sound log when it is held against a head that was known; None where it is in there."""
    if known is None:
        return None
    if known.seq > chain.seq:
        return _cut_off_verdict(chain)
    if known.size <= chain.size and is_record_line(last_line(descriptor, known.size), known.seq, known.entry_hash):
        return None
    fault = ChainFault(known.seq, "edited", min(known.size, chain.size))
    return Verdict("replaced", chain.seq, chain.head, fault, anchored=False)


def is_record_line(line: bytes, seq: int, entry_hash: str) -> bool:
    """Whether this line is the sound record with that number and hash."""
    try:
        record = parse_and_verify(line)
    except InvalidLineError:
        return False
    return record.get("seq") == seq and record["entry_hash"] == entry_hash


def _cut_off_verdict(chain: Chain) -> Verdict:
    fault = ChainFault(chain.seq + 1, "dropped", chain.size)
    return Verdict("cut_off", chain.seq, chain.head, fault, anchored=False)
