"""Reads what was appended since the last look, judges each line, and tells each record once, in order."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kaiza.domain.chain import Chain, FaultyLineError, diagnose, is_torn, unseal
from kaiza.domain.record import GENESIS, Fault, Head, Verdict
from kaiza.store.log_file import LogFile
from kaiza.store.log_lines import BLOCK, last_line, lines, split

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Torn:
    """A last line that a crash left unfinished: where it begins and how long it is."""

    offset: int
    length: int


class Follower:
    """Tail follower with one position in the log.

    While the log is `sound`, the position is the end of the chain, and every record before it was told. In a damaged
    log it is the end of the file, and every record that is sound in itself is told, so that reads still work.
    """

    def __init__(self, tell: Tell, start: Head | None = None) -> None:
        self._tell = tell
        self.mute = False
        """Whether what is read has been told before."""
        self.chain = Chain(start)
        self.sound = True
        self.ragged = False
        """Whether the last line there lacks its newline."""
        self._set_position()

    def _set_position(self) -> None:
        self.position = self.chain.size
        self.link = (self.chain.seq, self.chain.entry_hash)
        """The number and hash that the next record is chained to."""

    @property
    def seen(self) -> Head | None:
        """The head, if this process itself has seen it in the log."""
        return self.chain.head if self.sound and self.chain.last else None

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

    def goes_on(self, file: LogFile, size: int) -> bool:
        """Follow what was appended after the last line that we know; whether that is sound, and all there is.

        False where that line is not there any more, or much was appended, or nothing is to be told.
        """
        last = self.chain.last
        begin = self.chain.size - len(last)
        if not last or not self.sound or self.mute or not self.chain.size <= size <= begin + BLOCK:
            return False
        # The known line is read again together with the new ones, so that both are of the same moment without a lock.
        found = os.pread(file.descriptor, size - begin, begin)
        return len(found) == size - begin and found.startswith(last) and self._follow(split(found[len(last) :]))

    def advance(self, file: LogFile, size: int) -> None:
        """Tell what is sound up to here; stop quietly where it is not."""
        if self.sound:
            self._follow(lines(file.descriptor, self.position, size))

    def _follow(self, more: Iterable[bytes]) -> bool:
        try:
            return self.chain.follow(more, None if self.mute else self._tell)
        finally:
            self._set_position()

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
            self._set_position()
        else:
            self.position += length
            self.link, self.ragged = (record["seq"], record["entry_hash"]), False
        self._tell(record)


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
