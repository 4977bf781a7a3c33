"""What is about to be done, written before it is begun; a line counts only if it is whole.

The process that works on a journal holds its lock, so a journal whose lock can be taken belongs to nobody alive.
"""

import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from kaiza.store.objects import read_all, write_all
from kaiza.store.own import Own
from kaiza.store.unsynced import Unsynced

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN_LIST = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

_COMMITTED = b'{"committed": true}\n'
_TAKING_BACK = b'{"taken_back":true}\n'
"""As long as the word it is written over, so that it needs no space on a full disk."""

Line = Mapping[str, Any]


@dataclass(slots=True)
class Entry:
    """The journal of one change, locked for as long as it is held."""

    own: Own
    txn: str
    fd: int
    last_word: int | None = None
    """Where the journal says that the change is committed."""

    def note(self, line: Line) -> None:
        """Write one more line."""
        write_all(self.fd, [_told(line) + b"\n"])

    def join(self, unsynced: Unsynced) -> None:
        """Let every line and the journal's own name become durable with the rest."""
        unsynced.lend(self.own.directory("journal"))
        unsynced.lend(self.fd)

    def commit(self) -> None:
        """Say that everything is done and on disk. The word itself is not waited for; the record says it again."""
        self.last_word = os.lseek(self.fd, 0, os.SEEK_CUR)
        write_all(self.fd, [_COMMITTED])

    def take_back(self) -> None:
        """Say, durably, that what was committed is taken back from here on, whatever the record says."""
        if self.last_word is not None:
            os.pwrite(self.fd, _TAKING_BACK, self.last_word)
            os.fdatasync(self.fd)

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
class Journal:
    """The journals of changes under way and of finished ones."""

    own: Own

    def begin(self, txn: str, head: Line) -> Entry:
        """Begin a journal; a dead process cannot have done anything that is not in it, unless the power went."""
        if not _NAME.fullmatch(txn):
            raise ValueError("not a name for a journal")
        entry = self._locked(txn)
        try:
            entry.note(head)
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
                return Entry(self.own, txn, fd)
            os.close(fd)

    def knows(self, txn: str) -> bool:
        """Whether a change of that name is under way or waits for recovery."""
        where = self.own.existing("journal")
        return where is not None and txn in os.listdir(where)  # noqa: PTH208 (of a descriptor)

    def abandoned(self) -> Iterator[tuple[Entry, list[Line]]]:
        """Give the journals that nobody alive works on, locked, with their whole lines."""
        where = self.own.existing("journal")
        if where is None:
            return
        for txn in sorted(os.listdir(where)):  # noqa: PTH208 (of a descriptor)
            with suppress(FileNotFoundError, BlockingIOError, PermissionError):
                fd = os.open(txn, _OPEN, dir_fd=where)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(fd)
                    raise
                yield Entry(self.own, txn, fd), _lines(fd)

    def finished(self, txn: str) -> Line | None:
        """Tell how a finished change began."""
        where = self.own.existing("done")
        if where is None or not _NAME.fullmatch(txn):
            return None
        try:
            fd = os.open(txn, _READ, dir_fd=where)
        except FileNotFoundError:
            return None
        try:
            lines = _lines(fd)
        finally:
            os.close(fd)
        return lines[0] if lines else None

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
            fd = os.open("list", _READ, dir_fd=where) if where is not None else None
        except FileNotFoundError:
            fd = None
        if fd is None:
            return set()
        try:
            return {path for path in _values(fd) if isinstance(path, str)}
        finally:
            os.close(fd)


def _told(line: Line) -> bytes:
    """A line as JSON; a name that is not UTF-8 is beyond the quick way."""
    try:
        return orjson.dumps(line)
    except orjson.JSONEncodeError:
        return json.dumps(line).encode()


def _lines(fd: int) -> list[Line]:
    return [line for line in _values(fd) if isinstance(line, dict)]


def _values(fd: int) -> list[object]:
    """Read whole lines up to the first that is none."""
    found: list[object] = []
    for line in b"".join(read_all(fd)).split(b"\n")[:-1]:
        try:
            found.append(json.loads(line))
        except ValueError:
            break
    return found
