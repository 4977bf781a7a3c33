"""Write-ahead journals of transactions. The process that works on a journal holds its lock.

Each line ends with an HMAC over the line, the journal's name and the previous code: foreign journals are detected.
"""

import fcntl
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from typing import Any, Literal

import orjson

from kaiza.store.byte_io import read_all, write_all
from kaiza.store.fsync_batch import FsyncBatch
from kaiza.store.own import Own
from kaiza.store.state_key import StateKey

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_LIST = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_COMMITTED = b'{"committed": true}'
_TAKING_BACK = b'{"taken_back":true}'
"""As long as the word it is written over, so that it needs no space on a full disk."""
_PURPOSE = "journal line"
_CODE_LENGTH = 64
_LARGEST = 16 << 20
"""No journal of ours comes near to this size."""
_MOST_READ = 200
"""Journals looked at in one recovery; those of the log's open intents come first."""

Line = Mapping[str, Any]
Origin = Literal["own", "foreign", "malformed", "unreadable"]
"""Whose journal it is: this state directory's, another one's, no journal at all, or one this account cannot read."""


@dataclass(slots=True)
class Entry:
    """The journal of one change, locked for as long as it is held."""

    own: Own
    key: StateKey
    txn: str
    fd: int
    last_code: bytes = b""
    """Code of the line before."""
    last_word: int | None = None
    """Where the journal says that the change is committed."""

    def note(self, line: Line) -> None:
        """Write one more line."""
        told = _told(line)
        code = self._code(told)
        write_all(self.fd, [told + b" " + code + b"\n"])
        self.last_code = code

    def join(self, batch: FsyncBatch) -> None:
        """Let every line and the journal's own name become durable with the rest."""
        batch.add_borrowed(self.own.directory("journal"))
        batch.add_borrowed(self.fd)

    def commit(self) -> None:
        """Say that everything is done and on disk. The word itself is not waited for; the record says it again."""
        self.last_word = os.lseek(self.fd, 0, os.SEEK_CUR)
        write_all(self.fd, [self._word(_COMMITTED)])

    def take_back(self) -> None:
        """Say, durably, that what was committed is taken back from here on, whatever the record says."""
        if self.last_word is not None:
            os.pwrite(self.fd, self._word(_TAKING_BACK), self.last_word)
            os.fdatasync(self.fd)

    def _word(self, told: bytes) -> bytes:
        return told + b" " + self._code(told) + b"\n"

    def _code(self, told: bytes) -> bytes:
        return self.key.code(_PURPOSE, self.txn.encode(), self.last_code, told).encode()

    def drop(self) -> None:
        """Forget the change: nothing of it is left."""
        try:
            os.unlink(self.txn, dir_fd=self.own.directory("journal"))
        finally:
            self.leave()

    def finish(self) -> None:
        """Put the journal among those of finished changes, where an undo finds what files were like."""
        os.rename(self.txn, self.txn, src_dir_fd=self.own.directory("journal"), dst_dir_fd=self.own.directory("done"))
        self.leave()

    def leave(self) -> None:
        """Let go of it; where it still stands, it is left for whoever recovers. Once is enough."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A journal without a living writer, as it was found."""

    name: str
    origin: Origin
    entry: Entry | None = None
    """Its lock, where it is a file that could be opened; whoever got this lets go of it."""
    lines: tuple[Line, ...] = ()
    """Its lines, where it is our own."""


@dataclass(frozen=True, slots=True)
class Journal:
    """The journals of changes under way and of finished ones."""

    own: Own
    key: StateKey

    def begin(self, txn: str, live: str, head: Line) -> Entry:
        """Begin a journal; a dead process cannot have done anything that is not in it, unless the power went."""
        if not _NAME.fullmatch(txn):
            raise ValueError("not a name for a journal")
        whole = {"state": self.key.state_id, "live": live, **head}
        entry = self._locked(txn)
        try:
            entry.note(whole)
        except BaseException:
            with suppress(OSError):
                entry.drop()
            raise
        return entry

    def _locked(self, txn: str) -> Entry:
        """A new file, and its lock; one that somebody took for abandoned in between does not count."""
        while True:
            fd = os.open(txn, _CREATE, 0o600, dir_fd=self.own.directory("journal"))
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return Entry(self.own, self.key, txn, fd)
            os.close(fd)

    def knows(self, txn: str) -> bool:
        """Whether a change of that name is under way or waits for recovery."""
        where = self.own.existing("journal")
        return where is not None and txn in os.listdir(where)  # noqa: PTH208 (of a descriptor)

    def is_empty(self) -> bool:
        """Whether no journal of a change is left, by a living process or a dead one."""
        where = self.own.existing("journal")
        return where is None or not os.listdir(where)  # noqa: PTH208 (of a descriptor)

    def abandoned(self, first: Sequence[str] = ()) -> Iterator[Abandoned]:
        """Find the journals without a living writer, those named in `first` before all others, the last one first."""
        where = self.own.existing("journal")
        if where is None:
            return
        turn = {name: -number for number, name in enumerate(first, 1)}
        names = sorted(os.listdir(where), key=lambda name: (turn.get(name, 0), name))  # noqa: PTH208 (of a descriptor)
        for name in names[:_MOST_READ]:
            found = self._look_at(name, where)
            if found is not None:
                yield found

    def _look_at(self, name: str, where: int) -> Abandoned | None:
        """What stands at a name; None where its writer lives, it has gone, or its writer died before the first line."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode):
                return Abandoned(name, "malformed")
            fd = os.open(name, _OPEN, dir_fd=where)
        except FileNotFoundError:
            return None
        except OSError:
            return Abandoned(name, "unreadable")
        entry = Entry(self.own, self.key, name, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            entry.leave()
            return None
        if os.fstat(fd).st_size == 0:
            with suppress(OSError):
                entry.drop()
            return None
        return self._read(entry)

    def _read(self, entry: Entry) -> Abandoned:
        """Read a journal and tell whose it is."""
        content = _content(entry.fd)
        if content is None or not _NAME.fullmatch(entry.txn):
            return Abandoned(entry.txn, "malformed", entry)
        lines = self._lines(entry.txn, content)
        if lines:
            return Abandoned(entry.txn, "own", entry, tuple(lines))
        head = _parsed(content.split(b"\n", 1)[0][: -_CODE_LENGTH - 1])
        foreign = head is not None and isinstance(head.get("state"), str) and head["state"] != self.key.state_id
        return Abandoned(entry.txn, "foreign" if foreign else "malformed", entry)

    def _lines(self, txn: str, content: bytes) -> list[Line]:
        """The lines that are whole and ours, up to the first that is not; none where the journal is not our own."""
        if self.key.is_older(txn, content):
            return _unsigned_lines(content)
        found: list[Line] = []
        before = b""
        for line in content.split(b"\n")[:-1]:
            told, code = line[: -_CODE_LENGTH - 1], line[-_CODE_LENGTH:]
            if not self.key.is_code(code.decode("ascii", "replace"), _PURPOSE, txn.encode(), before, told):
                break
            parsed = _parsed(told)
            if parsed is None:
                break
            found.append(parsed)
            before = code
        return found

    def set_aside(self, name: str) -> str | None:
        """Move what stands among the journals to `.kaiza/set-aside/`; its path there, None where it cannot be moved."""
        try:
            where, there = self.own.directory("journal"), self.own.directory("set-aside")
            taken = set(os.listdir(there))  # noqa: PTH208 (of a descriptor)
            moved = next(new for new in map("journal-{}".format, count(1)) if new not in taken)
            os.rename(name, moved, src_dir_fd=where, dst_dir_fd=there)
        except OSError:
            return None
        return f".kaiza/set-aside/{moved}"

    def finished(self, txn: str) -> Line | None:
        """Tell how a finished change began; None where that is not known from a journal of our own."""
        where = self.own.existing("done")
        if where is None or not _NAME.fullmatch(txn):
            return None
        try:
            fd = os.open(txn, _READ | os.O_NONBLOCK, dir_fd=where)
        except OSError:
            return None
        try:
            content = _content(fd)
        finally:
            os.close(fd)
        lines = self._lines(txn, content) if content is not None else []
        return lines[0] if lines else None

    def hashes(self) -> dict[str, str]:
        """The hash of every journal that is there, finished ones too."""
        found: dict[str, str] = {}
        for directory in ("done", "journal"):
            with suppress(OSError):
                found |= self._hashes_in(self.own.existing(directory))
        return found

    def _hashes_in(self, where: int | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in os.listdir(where) if where is not None else ():  # noqa: PTH208 (of a descriptor)
            with suppress(OSError):
                fd = os.open(name, _READ | os.O_NONBLOCK, dir_fd=where)
                try:
                    content = _content(fd)
                finally:
                    os.close(fd)
                if content is not None and _NAME.fullmatch(name):
                    found[name] = sha256(content).hexdigest()
        return found

    def remember_made(self, paths: list[str]) -> None:
        """Remember directories that Kaiza made."""
        if paths:
            fd = os.open("list", _OPEN_LIST, 0o600, dir_fd=self.own.directory("made"))
            try:
                write_all(fd, ["".join(json.dumps(path) + "\n" for path in paths).encode()])
            finally:
                os.close(fd)

    def made(self) -> set[str]:
        """Tell which directories Kaiza made."""
        where = self.own.existing("made")
        try:
            fd = os.open("list", _READ | os.O_NONBLOCK, dir_fd=where) if where is not None else None
        except OSError:
            fd = None
        if fd is None:
            return set()
        try:
            content = _content(fd) or b""
        finally:
            os.close(fd)
        return {path for path in map(_value, content.split(b"\n")[:-1]) if isinstance(path, str)}


def _told(line: Line) -> bytes:
    """A line as JSON; a name that is not UTF-8 is beyond the quick way."""
    try:
        return orjson.dumps(line)
    except orjson.JSONEncodeError:
        return json.dumps(line).encode()


def _content(fd: int) -> bytes | None:
    """The bytes of a journal; None for anything that cannot be one."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _LARGEST:
        return None
    return b"".join(read_all(fd))


def _unsigned_lines(content: bytes) -> list[Line]:
    """The whole lines of a journal that is older than the key, up to the first that is none."""
    found: list[Line] = []
    for line in content.split(b"\n")[:-1]:
        parsed = _parsed(line)
        if parsed is None:
            break
        found.append(parsed)
    return found


def _parsed(told: bytes) -> dict[str, Any] | None:
    value = _value(told)
    return value if isinstance(value, dict) else None


def _value(told: bytes) -> object:
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        return None
