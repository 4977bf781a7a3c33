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

from kaiza.store.disk.byte_io import read_all, write_all
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_LIST = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
_COMMITTED = b'{"committed": true}'
_ROLLED_BACK = b'{"taken_back":true}'
"""As long as the word it is written over, so that it needs no space on a full disk."""
_CODE_PURPOSE = "journal line"
_CODE_LENGTH = 64
_MAX_BYTES = 16 << 20
"""No journal of ours comes near to this size."""
_MAX_JOURNALS = 200
"""Journals looked at in one recovery; those of the log's open intents come first."""

JournalLine = Mapping[str, Any]
JournalOrigin = Literal["own", "foreign", "malformed", "unreadable"]
"""Whose journal it is: this state directory's, another one's, no journal at all, or one this account cannot read."""


@dataclass(slots=True)
class TransactionJournal:
    """The journal of one change, locked for as long as it is held."""

    kaiza_dir: KaizaDir
    state_key: StateKey
    txn: str
    fd: int
    last_code: bytes = b""
    """Code of the line before."""
    commit_offset: int | None = None
    """Where the journal says that the change is committed."""

    def append(self, line: JournalLine) -> None:
        """Write one more line."""
        told = _encode_line(line)
        code = self._line_code(told)
        write_all(self.fd, [told + b" " + code + b"\n"])
        self.last_code = code

    def add_to_batch(self, batch: FsyncBatch) -> None:
        """Let every line and the journal's own name become durable with the rest."""
        batch.add_borrowed(self.kaiza_dir.open_directory("journal"))
        batch.add_borrowed(self.fd)

    def mark_committed(self) -> None:
        """Say that everything is done and on disk. The word itself is not waited for; the record says it again."""
        self.commit_offset = os.lseek(self.fd, 0, os.SEEK_CUR)
        write_all(self.fd, [self._coded_line(_COMMITTED)])

    def mark_rolled_back(self) -> None:
        """Say, durably, that what was committed is taken back from here on, whatever the record says."""
        if self.commit_offset is not None:
            os.pwrite(self.fd, self._coded_line(_ROLLED_BACK), self.commit_offset)
            os.fdatasync(self.fd)

    def _coded_line(self, told: bytes) -> bytes:
        return told + b" " + self._line_code(told) + b"\n"

    def _line_code(self, told: bytes) -> bytes:
        return self.state_key.compute_code(_CODE_PURPOSE, self.txn.encode(), self.last_code, told).encode()

    def delete(self) -> None:
        """Forget the change: nothing of it is left."""
        try:
            os.unlink(self.txn, dir_fd=self.kaiza_dir.open_directory("journal"))
        finally:
            self.close()

    def archive(self) -> None:
        """Put the journal among those of finished changes, where an undo finds what files were like."""
        os.rename(
            self.txn,
            self.txn,
            src_dir_fd=self.kaiza_dir.open_directory("journal"),
            dst_dir_fd=self.kaiza_dir.open_directory("done"),
        )
        self.close()

    def close(self) -> None:
        """Let go of it; where it still stands, it is left for whoever recovers. Once is enough."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class AbandonedJournal:
    """A journal without a living writer, as it was found."""

    name: str
    origin: JournalOrigin
    journal: TransactionJournal | None = None
    """Its lock, where it is a file that could be opened; whoever got this lets go of it."""
    lines: tuple[JournalLine, ...] = ()
    """Its lines, where it is our own."""


@dataclass(frozen=True, slots=True)
class JournalStore:
    """The journals of changes under way and of finished ones."""

    kaiza_dir: KaizaDir
    state_key: StateKey

    def begin(self, txn: str, live: str, head: JournalLine) -> TransactionJournal:
        """Begin a journal; a dead process cannot have done anything that is not in it, unless the power went."""
        if not _NAME.fullmatch(txn):
            raise ValueError("not a name for a journal")
        whole = {"state": self.state_key.state_id, "live": live, **head}
        entry = self._create_locked(txn)
        try:
            entry.append(whole)
        except BaseException:
            with suppress(OSError):
                entry.delete()
            raise
        return entry

    def _create_locked(self, txn: str) -> TransactionJournal:
        """A new file, and its lock; one that somebody took for abandoned in between does not count."""
        while True:
            fd = os.open(txn, _CREATE, 0o600, dir_fd=self.kaiza_dir.open_directory("journal"))
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return TransactionJournal(self.kaiza_dir, self.state_key, txn, fd)
            os.close(fd)

    def has_pending(self, txn: str) -> bool:
        """Whether a change of that name is under way or waits for recovery."""
        where = self.kaiza_dir.find_directory("journal")
        return where is not None and txn in os.listdir(where)  # noqa: PTH208 (of a descriptor)

    def is_empty(self) -> bool:
        """Whether no journal of a change is left, by a living process or a dead one."""
        where = self.kaiza_dir.find_directory("journal")
        return where is None or not os.listdir(where)  # noqa: PTH208 (of a descriptor)

    def find_abandoned(self, first: Sequence[str] = ()) -> Iterator[AbandonedJournal]:
        """Find the journals without a living writer, those named in `first` before all others, the last one first."""
        where = self.kaiza_dir.find_directory("journal")
        if where is None:
            return
        turn = {name: -number for number, name in enumerate(first, 1)}
        names = sorted(os.listdir(where), key=lambda name: (turn.get(name, 0), name))  # noqa: PTH208 (of a descriptor)
        for name in names[:_MAX_JOURNALS]:
            found = self._inspect_name(name, where)
            if found is not None:
                yield found

    def _inspect_name(self, name: str, where: int) -> AbandonedJournal | None:
        """What stands at a name; None where its writer lives, it has gone, or its writer died before the first line."""
        try:
            if not stat.S_ISREG(os.stat(name, dir_fd=where, follow_symlinks=False).st_mode):
                return AbandonedJournal(name, "malformed")
            fd = os.open(name, _OPEN, dir_fd=where)
        except FileNotFoundError:
            return None
        except OSError:
            return AbandonedJournal(name, "unreadable")
        entry = TransactionJournal(self.kaiza_dir, self.state_key, name, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            entry.close()
            return None
        if os.fstat(fd).st_size == 0:
            with suppress(OSError):
                entry.delete()
            return None
        return self._classify_journal(entry)

    def _classify_journal(self, entry: TransactionJournal) -> AbandonedJournal:
        """Read a journal and tell whose it is."""
        content = _read_content(entry.fd)
        if content is None or not _NAME.fullmatch(entry.txn):
            return AbandonedJournal(entry.txn, "malformed", entry)
        lines = self._authentic_lines(entry.txn, content)
        if lines:
            return AbandonedJournal(entry.txn, "own", entry, tuple(lines))
        head = _parse_object(content.split(b"\n", 1)[0][: -_CODE_LENGTH - 1])
        foreign = head is not None and isinstance(head.get("state"), str) and head["state"] != self.state_key.state_id
        return AbandonedJournal(entry.txn, "foreign" if foreign else "malformed", entry)

    def _authentic_lines(self, txn: str, content: bytes) -> list[JournalLine]:
        """The lines that are whole and ours, up to the first that is not; none where the journal is not our own."""
        if self.state_key.is_older_than_key(txn, content):
            return _unsigned_lines(content)
        found: list[JournalLine] = []
        before = b""
        for line in content.split(b"\n")[:-1]:
            told, code = line[: -_CODE_LENGTH - 1], line[-_CODE_LENGTH:]
            if not self.state_key.is_valid_code(
                code.decode("ascii", "replace"), _CODE_PURPOSE, txn.encode(), before, told
            ):
                break
            parsed = _parse_object(told)
            if parsed is None:
                break
            found.append(parsed)
            before = code
        return found

    def set_aside(self, name: str) -> str | None:
        """Move what stands among the journals to `.kaiza/set-aside/`; its path there, None where it cannot be moved."""
        try:
            where, there = self.kaiza_dir.open_directory("journal"), self.kaiza_dir.open_directory("set-aside")
            taken = set(os.listdir(there))  # noqa: PTH208 (of a descriptor)
            moved = next(new for new in map("journal-{}".format, count(1)) if new not in taken)
            os.rename(name, moved, src_dir_fd=where, dst_dir_fd=there)
        except OSError:
            return None
        return f".kaiza/set-aside/{moved}"

    def finished_head(self, txn: str) -> JournalLine | None:
        """Tell how a finished change began; None where that is not known from a journal of our own."""
        where = self.kaiza_dir.find_directory("done")
        if where is None or not _NAME.fullmatch(txn):
            return None
        try:
            fd = os.open(txn, _READ | os.O_NONBLOCK, dir_fd=where)
        except OSError:
            return None
        try:
            content = _read_content(fd)
        finally:
            os.close(fd)
        lines = self._authentic_lines(txn, content) if content is not None else []
        return lines[0] if lines else None

    def journal_hashes(self) -> dict[str, str]:
        """The hash of every journal that is there, finished ones too."""
        found: dict[str, str] = {}
        for directory in ("done", "journal"):
            with suppress(OSError):
                found |= self._hashes_in(self.kaiza_dir.find_directory(directory))
        return found

    def _hashes_in(self, where: int | None) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in os.listdir(where) if where is not None else ():  # noqa: PTH208 (of a descriptor)
            with suppress(OSError):
                fd = os.open(name, _READ | os.O_NONBLOCK, dir_fd=where)
                try:
                    content = _read_content(fd)
                finally:
                    os.close(fd)
                if content is not None and _NAME.fullmatch(name):
                    found[name] = sha256(content).hexdigest()
        return found

    def add_created_directories(self, paths: list[str]) -> None:
        """Remember directories that Kaiza made."""
        if paths:
            fd = os.open("list", _OPEN_LIST, 0o600, dir_fd=self.kaiza_dir.open_directory("made"))
            try:
                write_all(fd, ["".join(json.dumps(path) + "\n" for path in paths).encode()])
            finally:
                os.close(fd)

    def created_directories(self) -> set[str]:
        """Tell which directories Kaiza made."""
        where = self.kaiza_dir.find_directory("made")
        try:
            fd = os.open("list", _READ | os.O_NONBLOCK, dir_fd=where) if where is not None else None
        except OSError:
            fd = None
        if fd is None:
            return set()
        try:
            content = _read_content(fd) or b""
        finally:
            os.close(fd)
        return {path for path in map(_parse_json, content.split(b"\n")[:-1]) if isinstance(path, str)}


def _encode_line(line: JournalLine) -> bytes:
    """A line as JSON; a name that is not UTF-8 is beyond the quick way."""
    try:
        return orjson.dumps(line)
    except orjson.JSONEncodeError:
        return json.dumps(line).encode()


def _read_content(fd: int) -> bytes | None:
    """The bytes of a journal; None for anything that cannot be one."""
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) or found.st_size > _MAX_BYTES:
        return None
    return b"".join(read_all(fd))


def _unsigned_lines(content: bytes) -> list[JournalLine]:
    """The whole lines of a journal that is older than the key, up to the first that is none."""
    found: list[JournalLine] = []
    for line in content.split(b"\n")[:-1]:
        parsed = _parse_object(line)
        if parsed is None:
            break
        found.append(parsed)
    return found


def _parse_object(told: bytes) -> dict[str, Any] | None:
    value = _parse_json(told)
    return value if isinstance(value, dict) else None


def _parse_json(told: bytes) -> object:
    try:
        return json.loads(told)
    except (ValueError, RecursionError):
        return None
