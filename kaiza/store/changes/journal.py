"""Write-ahead journals of transactions, in `.kaiza/journal`, and of some finished ones, in `.kaiza/done`.

A journal is written before any of the user's files is touched. The process that works on it holds a lock on it (flock),
which ends with the process: a journal without a lock has no living writer.
"""

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Literal

from kaiza.store.changes import journal_lines
from kaiza.store.changes.journal_lines import JournalLine
from kaiza.store.changes.operation import Operation
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.fsync_batch import FsyncBatch
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_key import StateKey

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
# A clone may bring any number of journals; one recovery inspects this many, those of the log's open intents first.
_MAX_JOURNALS = 200
_LAST_DATE = 253402300799
"""The end of the year 9999, in seconds since 1970."""

JournalOrigin = Literal["own", "foreign", "malformed", "unreadable"]
"""Written with this state directory's key, with another one's, not a journal, or not readable by this account."""


@dataclass(slots=True)
class TransactionJournal:
    """The open, locked journal of one transaction."""

    kaiza_dir: KaizaDir
    state_key: StateKey
    txn: str
    fd: int
    last_code: bytes = b""
    """Code of the line before."""
    commit_offset: int | None = None
    """Offset of the `committed` line."""

    def append(self, line: JournalLine) -> None:
        """Write one line; it is not synced."""
        signed = self._sign(journal_lines.encode_line(line))
        write_all(self.fd, [signed])
        self.last_code = journal_lines.code_of(signed)

    def add_to_batch(self, batch: FsyncBatch) -> None:
        """Sync the lines written so far, and the journal's name, together with the batch."""
        batch.add_borrowed(self.kaiza_dir.open_directory("journal"))
        batch.add_borrowed(self.fd)

    def mark_committed(self) -> None:
        """Write the `committed` line, once every change is made and on disk.

        It is not synced: where a power cut loses it, recovery finds the outcome in the log.
        """
        self.commit_offset = os.lseek(self.fd, 0, os.SEEK_CUR)
        write_all(self.fd, [self._sign(journal_lines.COMMITTED)])

    def mark_rolled_back(self) -> None:
        """Overwrite the `committed` line, durably, before the first file is rolled back.

        The outcome may have reached the log although its append failed; this line overrules it in recovery.
        """
        if self.commit_offset is not None:
            os.pwrite(self.fd, self._sign(journal_lines.ROLLED_BACK), self.commit_offset)
            os.fdatasync(self.fd)

    def _sign(self, encoded: bytes) -> bytes:
        return journal_lines.sign_line(self.state_key, self.txn, self.last_code, encoded)

    def delete(self) -> None:
        """Remove the journal: nothing is left of its change."""
        try:
            os.unlink(self.txn, dir_fd=self.kaiza_dir.open_directory("journal"))
        finally:
            self.close()

    def retire(self, operations: Iterable[Operation], *, are_modes_recorded: bool) -> None:
        """Take the journal away, as the change is complete; it is kept only where an undo needs metadata from it."""
        if any(each.has_unique_metadata(is_mode_recorded=are_modes_recorded) for each in operations):
            os.rename(
                self.txn,
                self.txn,
                src_dir_fd=self.kaiza_dir.open_directory("journal"),
                dst_dir_fd=self.kaiza_dir.open_directory("done"),
            )
            self.close()
        else:
            self.delete()

    def close(self) -> None:
        """Close the file and release its lock. A journal that was neither deleted nor archived is left to recovery."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


@dataclass(frozen=True, slots=True)
class AbandonedJournal:
    """A journal without a living writer, as recovery found it."""

    name: str
    origin: JournalOrigin
    journal: TransactionJournal | None = None
    """The locked file, where it could be opened; the receiver closes it."""
    lines: tuple[JournalLine, ...] = ()
    """Its authentic lines, where its origin is `own`."""


@dataclass(frozen=True, slots=True)
class ForeignJournal:
    """What a journal of another state directory says of itself. The key is not here, so none of it is authentic."""

    name: str
    state_id: str
    liveness_id: str
    written_at: float


@dataclass(frozen=True, slots=True)
class JournalStore:
    """The journals of a workspace: of transactions under way, abandoned and finished."""

    kaiza_dir: KaizaDir
    state_key: StateKey

    def begin(self, txn: str, live: str, head: JournalLine) -> TransactionJournal:
        """Create a journal with its first line, locked and not synced yet."""
        if not _NAME.fullmatch(txn):
            raise ValueError("not a name for a journal")
        first_line = {"state": self.state_key.state_id, "live": live, **head}
        while True:
            fd = small_files.create(txn, self.kaiza_dir.open_directory("journal"))
            fcntl.flock(fd, fcntl.LOCK_EX)
            # Between open and flock, a recovery may have taken the empty file for abandoned and deleted it.
            if os.fstat(fd).st_nlink:
                break
            os.close(fd)
        journal = TransactionJournal(self.kaiza_dir, self.state_key, txn, fd)
        try:
            journal.append(first_line)
        except BaseException:
            with suppress(OSError):
                journal.delete()
            raise
        return journal

    def has_pending(self, txn: str) -> bool:
        """Whether a transaction is under way or waits for recovery."""
        dir_fd = self.kaiza_dir.find_directory("journal")
        return dir_fd is not None and txn in os.listdir(dir_fd)  # noqa: PTH208 (of a descriptor)

    def count(self) -> int:
        """Number of entries among the journals, valid or not."""
        dir_fd = self.kaiza_dir.find_directory("journal")
        return 0 if dir_fd is None else len(os.listdir(dir_fd))  # noqa: PTH208 (of a descriptor)

    def find_abandoned(self, first: Sequence[str] = ()) -> Iterator[AbandonedJournal]:
        """Yield the journals without a living writer; those named in `first` before all others, the last one first."""
        dir_fd = self.kaiza_dir.find_directory("journal")
        if dir_fd is None:
            return
        ranks = {name: -number for number, name in enumerate(first, 1)}
        names = sorted(os.listdir(dir_fd), key=lambda name: (ranks.get(name, 0), name))  # noqa: PTH208 (of a descriptor)
        for name in names[:_MAX_JOURNALS]:
            abandoned = self._inspect_name(name, dir_fd)
            if abandoned is not None:
                yield abandoned

    def list_foreign(self) -> list[ForeignJournal]:
        """Journals that name another state directory, with a living writer or without. Changes and locks nothing."""
        dir_fd = self.kaiza_dir.find_directory("journal")
        if dir_fd is None:
            return []
        names = sorted(filter(_NAME.fullmatch, os.listdir(dir_fd)))  # noqa: PTH208 (of a descriptor)
        listed = (self._read_foreign(name, dir_fd) for name in names[:_MAX_JOURNALS])
        return [journal for journal in listed if journal is not None]

    def _read_foreign(self, name: str, dir_fd: int) -> ForeignJournal | None:
        content = journal_lines.read_file(name, dir_fd)
        head = journal_lines.foreign_head(self.state_key, content) if content is not None else None
        if head is None:
            return None
        try:
            status = os.stat(name, dir_fd=dir_fd, follow_symlinks=False)
        except FileNotFoundError:
            return None
        # An unpacked archive may bring times that no date has.
        written_at = min(max(status.st_mtime, 0), _LAST_DATE)
        return ForeignJournal(name, head["state"], str(head.get("live", "")), written_at)

    def claim(self, name: str) -> AbandonedJournal | None:
        """The journal with this name, locked; None where it has a living writer or is gone."""
        dir_fd = self.kaiza_dir.find_directory("journal")
        return None if dir_fd is None else self._inspect_name(name, dir_fd)

    def _inspect_name(self, name: str, dir_fd: int) -> AbandonedJournal | None:
        """Open, lock and classify one entry; None where it has a living writer, is gone, or is empty."""
        try:
            fd = small_files.open_for_update(name, dir_fd)
        except FileNotFoundError:
            return None
        except small_files.NotRegularError:
            return AbandonedJournal(name, "malformed")
        except OSError:
            return AbandonedJournal(name, "unreadable")
        journal = TransactionJournal(self.kaiza_dir, self.state_key, name, fd)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            journal.close()
            return None
        status = os.fstat(fd)
        if not status.st_nlink:  # its writer completed the change between the open and the lock
            journal.close()
            return None
        # The writer died before its first line, and so before it touched any file.
        if status.st_size == 0:
            with suppress(OSError):
                journal.delete()
            return None
        return self._classify_journal(journal)

    def _classify_journal(self, journal: TransactionJournal) -> AbandonedJournal:
        content = journal_lines.read_content(journal.fd)
        if content is None or not _NAME.fullmatch(journal.txn):
            return AbandonedJournal(journal.txn, "malformed", journal)
        lines = journal_lines.authentic_lines(self.state_key, journal.txn, content)
        if lines:
            return AbandonedJournal(journal.txn, "own", journal, tuple(lines))
        is_foreign = journal_lines.foreign_head(self.state_key, content) is not None
        return AbandonedJournal(journal.txn, "foreign" if is_foreign else "malformed", journal)

    def set_aside(self, name: str) -> str | None:
        """Move an entry to `.kaiza/set-aside/`; its new path, or None where it cannot be moved."""
        try:
            journals_fd = self.kaiza_dir.open_directory("journal")
            aside_fd = self.kaiza_dir.open_directory("set-aside")
            # Renamed to a name of our own: the old one came with the workspace and may be any bytes.
            used = set(os.listdir(aside_fd))  # noqa: PTH208 (of a descriptor)
            new_name = next(name for name in map("journal-{}".format, count(1)) if name not in used)
            os.rename(name, new_name, src_dir_fd=journals_fd, dst_dir_fd=aside_fd)
        except OSError:
            return None
        return f".kaiza/set-aside/{new_name}"

    def finished_head(self, txn: str) -> JournalLine | None:
        """First line of a finished journal; None where there is none with valid codes.

        An undo takes owner and attributes from it, so an edited one must not be used.
        """
        dir_fd = self.kaiza_dir.find_directory("done")
        if dir_fd is None or not _NAME.fullmatch(txn):
            return None
        content = journal_lines.read_file(txn, dir_fd)
        lines = journal_lines.authentic_lines(self.state_key, txn, content) if content is not None else []
        return lines[0] if lines else None
