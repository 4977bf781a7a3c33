"""Reads what was appended since the last look, judges each line, and tells each record once, in order."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kaiza.domain.chain import Chain, FaultyLineError, diagnose, is_torn, unseal
from kaiza.domain.record import GENESIS, Fault, Head, Verdict
from kaiza.store.log_file import LogFile
from kaiza.store.log_lines import last_line, lines

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Torn:
    """A last line that a crash left unfinished: where it begins and how long it is."""

    offset: int
    length: int


class Follower:
    """Where one process stands in the log.

    As long as the log is `sound`, that is the end of its chain. In a damaged one it is the end of what is there, and
    every record that is sound in itself is told, so that reads can go on.
    """

    def __init__(self, tell: Tell, start: Head | None = None) -> None:
        self._tell = tell
        self.mute = False
        """Whether what is read has been told before."""
        self.chain = Chain(start)
        self.position = self.chain.size
        self.sound = True
        self.ragged = False
        """Whether the last line there lacks its newline."""
        self.link = (self.chain.seq, self.chain.entry_hash)
        """The number and hash that the next record goes on from."""

    @property
    def seen(self) -> Head | None:
        """The head, if this process itself has seen it in the log."""
        return self.chain.head if self.chain.last else None

    def stands_in(self, file: LogFile) -> bool:
        """Whether the log still goes as far as we have come, and its last line there is still the one we know."""
        if not self.sound or self.chain.seq == 0:
            return True
        if self.chain.last:
            return file.read(self.chain.size - len(self.chain.last), self.chain.size) == self.chain.last
        line = last_line(file.descriptor, self.chain.size)
        if names(line, self.chain.seq, self.chain.entry_hash):
            self.chain.last = line
        return bool(self.chain.last)

    def is_at_end(self, file: LogFile, size: int) -> bool:
        """Whether nobody wrote since our last look: the log ends there, with the last line that we know."""
        last = self.chain.last
        return size == self.position and self.sound and os.pread(file.descriptor, len(last), size - len(last)) == last

    def advance(self, file: LogFile, size: int) -> None:
        """Tell what is sound up to here; stop quietly where it is not."""
        if size <= self.position or not self.sound:
            return
        try:
            self.chain.follow(lines(file.descriptor, self.position, size), None if self.mute else self._tell)
        finally:
            self._arrived()

    def advance_damaged(self, file: LogFile, size: int) -> None:
        """Tell every record that is sound in itself, up to here."""
        self.sound = False
        if size == 0:
            self.link, self.ragged = (0, GENESIS), False
        for line in lines(file.descriptor, min(self.position, size), size):
            self.ragged = not line.endswith(b"\n")
            try:
                record = unseal(line)
            except FaultyLineError:
                continue
            if type(record.get("seq")) is int:
                self.link = (record["seq"], record["entry_hash"])
                if not self.mute:
                    self._tell(record)
        self.position = size

    def own(self, line: bytes, record: dict[str, Any], length: int) -> None:
        """We appended this record ourselves, in so many bytes."""
        if self.sound:
            self.chain.take(record["entry_hash"], line)
            self._arrived()
        else:
            self.position += length
            self.link, self.ragged = (record["seq"], record["entry_hash"]), False
        self._tell(record)

    def _arrived(self) -> None:
        self.position = self.chain.size
        self.link = (self.chain.seq, self.chain.entry_hash)


def judge_rest(chain: Chain, descriptor: int, size: int, anchored: Head | None) -> Verdict | Torn:
    """What is the matter with a log whose bytes from the chain's end to `size` begin with a line that is not sound.

    A torn line is still to be held `against` what is known: if the anchor covers it, it was cut off.
    """
    rest = lines(descriptor, chain.size, size)
    line = next(rest, b"")
    whole = line.endswith(b"\n")
    covered = anchored is not None and anchored.size > chain.size
    last = not whole or chain.size + len(line) >= size
    if last and is_torn(line, chain.size) and not (covered and whole):
        return Torn(chain.size, size - chain.size)
    return Verdict("broken", chain.seq, chain.head, diagnose(chain, line, rest), anchored=False)


def against(chain: Chain, descriptor: int, known: Head | None) -> Verdict | None:
    """What is the matter with a sound log when it is held against a head that was known; None where it is in there."""
    if known is None:
        return None
    if known.seq > chain.seq:
        return _cut_off(chain)
    if known.size <= chain.size and names(last_line(descriptor, known.size), known.seq, known.entry_hash):
        return None
    fault = Fault(known.seq, "edited", min(known.size, chain.size))
    return Verdict("replaced", chain.seq, chain.head, fault, anchored=False)


def names(line: bytes, seq: int, entry_hash: str) -> bool:
    """Whether this line is the sound record with that number and hash."""
    try:
        record = unseal(line)
    except FaultyLineError:
        return False
    return record.get("seq") == seq and record["entry_hash"] == entry_hash


def _cut_off(chain: Chain) -> Verdict:
    fault = Fault(chain.seq + 1, "dropped", chain.size)
    return Verdict("cut_off", chain.seq, chain.head, fault, anchored=False)
