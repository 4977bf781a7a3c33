"""Reads what was appended since the last look, judges each line, and tells each record once, in order."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from kaiza.domain.chain import Chain, FaultyLineError, diagnose, is_torn, link_of, unseal
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
    """Where one process stands in the log: how far it has followed, and where it last saw the log end.

    As long as the log is `sound`, it has followed to the end of its chain, and told every record up to there. Whoever
    only reports something goes on from the last line, and what is between is told when somebody follows. In a damaged
    log every record that is sound in itself is told, up to the end of what is there, so that reads can go on.
    """

    def __init__(self, tell: Tell, start: Head | None = None) -> None:
        self._tell = tell
        self.mute = False
        """Whether what is read has been told before."""
        self.chain = Chain(start)
        self.sound = True
        self.ragged = False
        """Whether the last line there lacks its newline."""
        self._arrived()

    def _arrived(self) -> None:
        """We have followed to where the log ends."""
        self.end = self.chain.size
        self.last = self.chain.last
        """The last line there, if it was seen."""
        self.link = (self.chain.seq, self.chain.entry_hash)
        """The number and hash that the next record goes on from."""

    @property
    def head(self) -> Head | None:
        """The head of the log as we last saw it, where it is sound."""
        seq, entry_hash = self.link
        return Head(seq, entry_hash, self.end) if self.sound and seq else None

    @property
    def seen(self) -> Head | None:
        """The same, if this process itself has seen it in the log."""
        return self.head if self.last else None

    @property
    def told(self) -> Head | None:
        """How far everything was told, if this process itself has seen it in the log."""
        return self.chain.head if self.sound and self.chain.last and not self.mute else None

    def stands_in(self, file: LogFile) -> bool:
        """Whether the log still goes as far as we have come, and the lines there are still the ones we know."""
        if not self.sound or self.chain.seq == 0:
            return True
        if not self.chain.last:
            line = last_line(file.descriptor, self.chain.size)
            if names(line, self.chain.seq, self.chain.entry_hash):
                self.chain.last = line
                self.last = self.last or line
        known = self.chain.last
        if not known or file.read(self.chain.size - len(known), self.chain.size) != known:
            return False
        return self.end == self.chain.size or file.read(self.end - len(self.last), self.end) == self.last

    def sees_end(self, file: LogFile, size: int) -> bool:
        """Whether the log goes on from the line that we know and ends with one that is sound; nothing is followed.

        As many lines as the numbers say, and one of them names ours; the others are judged when they are followed.
        """
        told = self._since(file, self.end, self.last, size)
        if told is None or size == self.end:
            return told is not None
        more = told[len(self.last) :]
        line = more[more.rfind(b"\n", 0, -1) + 1 :]
        seq, entry_hash = self.link
        link = link_of(line)
        if link is None or link[0] != seq + more.count(b"\n") or b'"prev_hash":"%b"' % entry_hash.encode() not in more:
            return False
        self.end, self.last, self.link = size, line, link
        return True

    def goes_on(self, file: LogFile, size: int) -> bool:
        """Follow what was written since we last did; whether that is sound, and all there is."""
        told = self._since(file, self.chain.size, self.chain.last, size)
        if told is None or size < self.end:
            return False
        if size == self.chain.size:
            return True
        known = len(told) - (size - self.end)
        if self.chain.size < self.end:
            self.chain.follow(split(told[:known])[1:], self._listener)
        return self.stands_at_end and self._follow(split(told[known:]))

    def _since(self, file: LogFile, end: int, last: bytes, size: int) -> bytes | None:
        """What was written after a line that we know, which is looked at again, in the same reading.

        None where it is not there any more, or we are far behind, or nothing is to be told.
        """
        begin = end - len(last)
        if not last or not self.sound or self.mute or not end <= size <= begin + BLOCK:
            return None
        told = os.pread(file.descriptor, size - begin, begin)
        return told if len(told) == size - begin and told.startswith(last) else None

    def advance(self, file: LogFile, size: int) -> None:
        """Tell what is sound up to here; stop quietly where it is not, or is not what we saw there."""
        if self.sound and self.chain.size < self.end <= size:
            self.chain.follow(lines(file.descriptor, self.chain.size, self.end), self._listener)
        if self.sound and self.stands_at_end:
            self._follow(lines(file.descriptor, self.end, size))

    @property
    def stands_at_end(self) -> bool:
        """Whether we have followed to where we last saw the log end."""
        return self.chain.size == self.end and (self.chain.seq, self.chain.entry_hash) == self.link

    @property
    def _listener(self) -> Tell | None:
        return None if self.mute else self._tell

    def _follow(self, more: Iterable[bytes]) -> bool:
        try:
            return self.chain.follow(more, self._listener)
        finally:
            self._arrived()

    def advance_damaged(self, file: LogFile, size: int) -> None:
        """Tell every record that is sound in itself, up to here."""
        start = self.chain.size if self.sound else self.end
        self.sound = False
        if size == 0:
            self.link, self.ragged = (0, GENESIS), False
        for line in lines(file.descriptor, min(start, size), size):
            self.ragged = not line.endswith(b"\n")
            try:
                record = unseal(line)
            except FaultyLineError:
                continue
            if type(record.get("seq")) is int:
                self.link = (record["seq"], record["entry_hash"])
                if not self.mute:
                    self._tell(record)
        self.end = size

    def own(self, line: bytes, record: dict[str, Any], length: int) -> None:
        """We appended this record ourselves, in so many bytes; told at once where none before it is left to tell."""
        if self.sound and self.chain.size != self.end:
            self.end, self.last, self.link = self.end + length, line, (record["seq"], record["entry_hash"])
            return
        if self.sound:
            self.chain.take(record["entry_hash"], line)
            self._arrived()
        else:
            self.end += length
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
