"""What is about to be done, written before it is begun; a line counts only if it is whole.

The process that works on a journal holds its lock, so a journal whose lock can be taken belongs to nobody alive. A
process writes one change after the other into the same few files; only the last one in a file is of interest.
"""

import fcntl
import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kaiza.store.objects import read_all, write_all
from kaiza.store.own import Own
from kaiza.store.unsynced import Unsynced

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC

Line = Mapping[str, Any]
_DONE: Line = {"done": True}
_LONGEST = 64 * 1024


@dataclass(slots=True)
class Entry:
    """The journal of one change, in a file that is locked for as long as it is held."""

    journal: "Journal"
    name: str
    fd: int
    txn: str = ""
    durable_name: bool = False

    def note(self, line: Line) -> None:
        """Write one more line."""
        write_all(self.fd, [json.dumps(line).encode() + b"\n"])

    def join(self, unsynced: Unsynced) -> None:
        """Let every line and the file's own name become durable with the rest."""
        unsynced.add(os.dup(self.fd))
        if not self.durable_name:
            unsynced.add(os.dup(self.journal.own.directory("journal")))

    def size(self) -> int:
        """Tell where the next line begins."""
        return os.fstat(self.fd).st_size

    def cut(self, size: int) -> None:
        """Take lines back, which needs no space."""
        os.ftruncate(self.fd, size)
        os.fdatasync(self.fd)

    def drop(self) -> None:
        """Forget the change: nothing of it is left."""
        try:
            os.ftruncate(self.fd, 0)
        except OSError:
            self.leave()
            raise
        self.journal.take_back(self)

    def finish(self, *, keep: bool) -> None:
        """The change is made; where it is to be kept, an undo finds here what files were like."""
        self.durable_name = True
        if not keep:
            self._done()
            return
        own = self.journal.own
        os.rename(self.name, self.txn, src_dir_fd=own.directory("journal"), dst_dir_fd=own.directory("done"))
        os.close(self.fd)

    def _done(self) -> None:
        """Say so, which spares the disk from taking the lines away; now and then they are."""
        try:
            self.note(_DONE)
            if self.size() > _LONGEST:
                os.ftruncate(self.fd, 0)
        except OSError:
            self.drop()
        else:
            self.journal.take_back(self)

    def leave(self) -> None:
        """Leave it for whoever recovers."""
        os.close(self.fd)


@dataclass(slots=True)
class Journal:
    """The journals of changes under way, and of finished ones before which files were not like new ones."""

    own: Own
    _idle: list[Entry] = field(default_factory=list)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, txn: str, head: Line) -> Entry:
        """Begin a journal; a dead process cannot have done anything that is not in it, unless the power went."""
        if not _NAME.fullmatch(txn):
            raise ValueError("not a name for a journal")
        entry = self._waiting() or self._fresh()
        entry.txn = txn
        try:
            entry.note({**head, "txn": txn})
        except BaseException:
            with suppress(OSError):
                entry.drop()
            raise
        return entry

    def take_back(self, entry: Entry) -> None:
        """An empty file waits for the next change."""
        with self._turn:
            self._idle.append(entry)

    def close(self) -> None:
        """Leave no empty file behind."""
        with self._turn:
            for entry in self._idle:
                with suppress(OSError):
                    os.unlink(entry.name, dir_fd=self.own.directory("journal"))
                entry.leave()
            self._idle.clear()

    def knows(self, txn: str) -> bool:
        """Whether a change of that name is under way or waits for recovery."""
        where = self.own.existing("journal")
        for name in os.listdir(where) if where is not None else ():  # noqa: PTH208 (of a descriptor)
            with suppress(FileNotFoundError):
                fd = os.open(name, _READ, dir_fd=where)
                try:
                    if _txn(_open_lines(fd)) == txn:
                        return True
                finally:
                    os.close(fd)
        return False

    def abandoned(self) -> Iterator[tuple[Entry, list[Line]]]:
        """Give the journals that nobody alive works on, locked, with their whole lines; others are cleared away."""
        where = self.own.existing("journal")
        for name in sorted(os.listdir(where)) if where is not None else ():  # noqa: PTH208 (of a descriptor)
            with suppress(FileNotFoundError, BlockingIOError):
                fd = os.open(name, _OPEN, dir_fd=where)
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(fd)
                    raise
                found = _open_lines(fd)
                if found:
                    yield Entry(self, name, fd, _txn(found)), found
                else:
                    os.unlink(name, dir_fd=where)
                    os.close(fd)

    def _waiting(self) -> Entry | None:
        """A file that was used before, if it still has its name."""
        with self._turn:
            while self._idle:
                entry = self._idle.pop()
                if os.fstat(entry.fd).st_nlink:
                    return entry
                entry.leave()
        return None

    def _fresh(self) -> Entry:
        """A file of our own; one that was cleared away before it was locked does not count."""
        where = self.own.directory("journal")
        while True:
            name = f"{os.getpid()}-{os.urandom(8).hex()}"
            fd = os.open(name, _CREATE, 0o600, dir_fd=where)
            fcntl.flock(fd, fcntl.LOCK_EX)
            if os.fstat(fd).st_nlink:
                return Entry(self, name, fd)
            os.close(fd)

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
        heads = [line for line in lines if "txn" in line]
        return heads[-1] if heads else None

    def remember_made(self, paths: list[str]) -> None:
        """Remember directories that Kaiza made."""
        if paths:
            fd = os.open("list", _OPEN | os.O_CREAT, 0o600, dir_fd=self.own.directory("made"))
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


def _open_lines(fd: int) -> list[Line]:
    """The lines of the last change in a file; none where it is done."""
    found = _lines(fd)
    begin = max((number for number, line in enumerate(found) if "txn" in line), default=0)
    return [] if _DONE in found[begin:] else found[begin:]


def _txn(lines: list[Line]) -> str:
    return str(lines[0].get("txn", "")) if lines else ""


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
