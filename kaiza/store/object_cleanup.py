"""Clears stored contents that are old and that no recent change, open intent, journal or approval names.

An object is removed under the log's lock, after everything that others appended was read: a change announces its
hashes in the log before it stores or reuses an object. So a running server never loses what it has just announced.
"""

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from kaiza.domain.audit.record import Record
from kaiza.domain.refusal import UndeterminedError
from kaiza.domain.timestamps import format_timestamp
from kaiza.store.audit.reader import read_records
from kaiza.store.changes.journal_lines import read_file
from kaiza.store.workspace import Workspace

_OBJECT_NAME = re.compile(r"([0-9a-f]{64})(?:\.z)?|\.([0-9a-f]{64})\.[0-9a-f]{12}")
"""A blob, packed or not, or what a crash left of one that was being written."""
_DIGEST = re.compile(rb"[0-9a-f]{64}")
_BATCH = 500
"""Objects removed while the log is locked once: a few milliseconds, for which other writers wait."""


@dataclass(frozen=True, slots=True)
class StoredObject:
    """File of an object: its name, the hash in it, and its size on disk."""

    name: str
    digest: str
    size: int


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """Objects that may be removed, and how many there are in all."""

    removable: Sequence[StoredObject]
    total: int

    @property
    def size(self) -> int:
        """Bytes of the objects that may be removed."""
        return sum(each.size for each in self.removable)


@dataclass(slots=True)
class _NamedHashes:
    """Hashes that records since a time name, or of sessions that went on since."""

    since: str
    hashes: set[str] = field(default_factory=set)
    sessions: set[str] = field(default_factory=set)
    last_seq: int = 0

    def add(self, record: Record) -> None:
        """Take in one record."""
        self.last_seq = max(self.last_seq, record.seq)
        session_id = record.session_id
        if record.timestamp >= self.since:
            if isinstance(session_id, str):
                self.sessions.add(session_id)
        elif session_id not in self.sessions:
            return
        self.hashes.update(_hashes_in(record.changes))
        if isinstance(record.plan_hash, str):
            self.hashes.add(record.plan_hash)


class ObjectCleanup:
    """One cleanup of a workspace: what was neither named nor touched since a time is removed."""

    def __init__(self, workspace: Workspace, cutoff: datetime) -> None:
        self._workspace = workspace
        self._cutoff = cutoff.timestamp()
        since = format_timestamp(cutoff.astimezone(UTC))
        self._named = _NamedHashes(since)

    def plan(self) -> CleanupPlan:
        """Find the objects that may be removed. UndeterminedError if a journal cannot be read."""
        directory = self._workspace.blobs.kaiza_dir.find_directory("objects")
        if directory is None:
            return CleanupPlan((), 0)
        # Listed before the log is read: whatever is listed was announced in the log by then, if anything needs it.
        names = os.listdir(directory)  # noqa: PTH208  of a descriptor
        found = [each for name in names if (each := self._examine(name, directory)) is not None]
        # Newest record first, so that a session is known before its older records.
        for record in read_records(self._workspace.root, reverse=True):
            self._named.add(record)
        needed = self._find_needed()
        return CleanupPlan(tuple(each for each in found if each.digest not in needed), len(names))

    def remove(self, plan: CleanupPlan) -> CleanupPlan:
        """Remove the planned objects that still may be; those that were removed."""
        starts = range(0, len(plan.removable), _BATCH)
        batches = (plan.removable[start : start + _BATCH] for start in starts)
        log = self._workspace.log
        removed = [each for batch in batches for each in log.run_locked(partial(self._remove_locked, batch))]
        return CleanupPlan(tuple(removed), plan.total)

    def _remove_locked(self, batch: Sequence[StoredObject]) -> list[StoredObject]:
        for record in read_records(self._workspace.root, since_seq=self._named.last_seq + 1):
            self._named.add(record)
        needed = self._find_needed()
        directory = self._workspace.blobs.kaiza_dir.find_directory("objects")
        removed = []
        for each in batch if directory is not None else ():
            # Looked at again: an object that is used again has a new time.
            if each.digest not in needed and self._examine(each.name, directory) is not None:
                with suppress(OSError):  # it is gone, or something else has its name
                    os.unlink(each.name, dir_fd=directory)
                    removed.append(each)
        return removed

    def _examine(self, name: str, directory: int | None) -> StoredObject | None:
        """The object with this name; None if it is none, or was touched since the time."""
        match = _OBJECT_NAME.fullmatch(name)
        if match is None:
            return None
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            return None
        # The change time too: a large file that became an object kept the time of its content.
        is_old = max(status.st_mtime, status.st_ctime) < self._cutoff
        is_object = stat.S_ISREG(status.st_mode) and is_old
        return StoredObject(name, match[1] or match[2], status.st_size) if is_object else None

    def _find_needed(self) -> set[str]:
        state = self._workspace.audit_state
        intents = (_hashes_in(intent.changes) for intent in state.intents.values())
        seals = (seal.plan_hash for seal in state.seals.values())
        journals = self._hashes_in_journals()
        return self._named.hashes.union(*intents, seals, state.approvals.values(), journals)

    def _hashes_in_journals(self) -> set[str]:
        """Every hash in the journals of changes that are not settled, of any writer."""
        directory = self._workspace.blobs.kaiza_dir.find_directory("journal")
        if directory is None:
            return set()
        hashes: set[str] = set()
        for name in os.listdir(directory):  # noqa: PTH208  of a descriptor
            content = read_file(name, directory)
            if content is None and _exists(name, directory):
                raise UndeterminedError(
                    "A journal in .kaiza/journal cannot be read, so what it needs is not known. Nothing was cleared. "
                    "`kaiza doctor` names it."
                )
            hashes.update(match.decode() for match in _DIGEST.findall(content or b""))
        return hashes


def _exists(name: str, directory: int) -> bool:
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _hashes_in(changes: object) -> Iterator[str]:
    for change in changes if isinstance(changes, list) else ():
        if isinstance(change, Mapping):
            yield from (each for each in (change.get("before_hash"), change.get("after_hash")) if isinstance(each, str))
