"""Reads what was appended since the last look, judges each line, and tells each record once, in order."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


from kaiza.domain.chain import Chain, FaultyLine, diagnose, is_torn, unseal
from kaiza.domain.record import GENESIS, Fault, Head, Verdict
from kaiza.store.log_file import LogFile, last_line, lines

Tell = Callable[[dict[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Torn:
    """A last line that a crash left unfinished: where it begins and how long it is."""

    offset: int
    length: int


class Follower:
    """Where one process stands in the log."""

    def __init__(self, tell: Tell, start: Head | None = None) -> None:
        self._tell = tell
        self.chain = Chain(start)
        self.last = b""
        self.position = self.chain.size
        self.sound = True
        self.link = (self.chain.seq, self.chain.entry_hash)
        self.ragged = False

    def begin_anew(self) -> None:
        """From the first record on again: whoever is told begins anew with it."""
        self.__init__(self._tell)  # type: ignore[misc]

    def stands_in(self, file: LogFile, size: int) -> bool:
        """Whether the log still goes, byte for byte, as far as we have come."""
        if size < self.position:
            return False
        if not self.sound or self.chain.seq == 0:
            return True
        if not self.last:
            self.last = last_line(file.descriptor, self.chain.size)
            return names(self.last, self.chain.seq, self.chain.entry_hash)
        return file.read(self.chain.size - len(self.last), self.chain.size) == self.last

    def advance(self, file: LogFile, size: int) -> None:
        """Tell what is sound up to here; stop quietly where it is not."""
        if not self.sound or size <= self.position:
            return
        for line in lines(file.descriptor, self.position, size):
            try:
                record = self.chain.feed(line)
            except FaultyLine:
                return
            self._took(line, record)

    def judge(self, file: LogFile, size: int, anchored: Head | None) -> Verdict | Torn | None:
        """After `advance`, under the lock: what is the matter with the rest, if anything."""
        if not self.sound or self.position >= size:
            return None
        return judge_rest(self.chain, file.descriptor, size, anchored)

    def own(self, line: bytes, record: dict[str, Any], length: int) -> None:
        """We appended this record ourselves, in so many bytes."""
        if self.sound:
            self.chain.take(record["entry_hash"], len(line))
            self._took(line, record)
        else:
            self.position += length
            self.link = (record["seq"], record["entry_hash"])
            self.ragged = False
            self._tell(record)

    def follow_damaged(self, file: LogFile, size: int) -> None:
        """The log is damaged: tell every record that is sound in itself, so that reads can go on."""
        self.sound = False
        if size < self.position:
            self.position = size
        for line in lines(file.descriptor, self.position, size):
            self.ragged = not line.endswith(b"\n")
            try:
                record = unseal(line)
            except FaultyLine:
                continue
            if type(record.get("seq")) is int:
                self.link = (record["seq"], record["entry_hash"])
                self._tell(record)
        self.position = size
        if size == 0:
            self.link, self.ragged = (0, GENESIS), False

    def _took(self, line: bytes, record: dict[str, Any]) -> None:
        self.last = line
        self.position = self.chain.size
        self.link = (self.chain.seq, self.chain.entry_hash)
        self._tell(record)


def judge_rest(chain: Chain, descriptor: int, size: int, anchored: Head | None) -> Verdict | Torn:
    """What is the matter with a log whose bytes from the chain's end to `size` begin with a line that is not sound."""
    rest = lines(descriptor, chain.size, size)
    line = next(rest, b"")
    whole = line.endswith(b"\n")
    covered = anchored is not None and anchored.size > chain.size
    last = not whole or chain.size + len(line) >= size
    if last and is_torn(line, chain.size) and not (covered and whole):
        if not covered:
            return Torn(chain.size, size - chain.size)
        fault = Fault(chain.seq + 1, "dropped", chain.size)
        return Verdict("cut_off", chain.seq, chain.head, fault, anchored=False)
    return Verdict("broken", chain.seq, chain.head, diagnose(chain, line, rest), anchored=False)


def against(chain: Chain, descriptor: int, known: Head | None) -> Verdict | None:
    """What is the matter with a sound log when it is held against a head that was known; None where it is in there."""
    if known is None:
        return None
    if known.seq > chain.seq:
        fault = Fault(chain.seq + 1, "dropped", chain.size)
        return Verdict("cut_off", chain.seq, chain.head, fault, anchored=False)
    if known.size <= chain.size and names(last_line(descriptor, known.size), known.seq, known.entry_hash):
        return None
    fault = Fault(known.seq, "edited", min(known.size, chain.size))
    return Verdict("replaced", chain.seq, chain.head, fault, anchored=False)


def names(line: bytes, seq: int, entry_hash: str) -> bool:
    """Whether this line is the sound record with that number and hash."""
    try:
        record = unseal(line)
    except FaultyLine:
        return False
    return record.get("seq") == seq and record["entry_hash"] == entry_hash
