"""Background half of the manifest: writes a session's begin, then reads the content that is not known yet."""

import sqlite3
import time
from collections.abc import Sequence
from contextlib import closing

from kaiza.store.manifest import database
from kaiza.store.manifest.database import Database, Row
from kaiza.store.manifest.hashing import ContentReader
from kaiza.store.manifest.ignored_paths import IgnoredPaths
from kaiza.store.manifest.keeper import ManifestKeeper, PendingBegin, remaining_chunks
from kaiza.store.manifest.scan_writer import ScanWriter, prune

KEPT_SESSIONS = 200
_PAGE = 500
# Between two pages another process, or a call of this one, gets its turn.
_PAUSE = 0.002
_STEPS_BETWEEN_CHECKS = 100_000


def write_begin(keeper: ManifestKeeper, batch: Sequence[PendingBegin]) -> None:
    """Write the begin of these sessions by one scan, then hash what it found. OSError where that fails."""
    identity = keeper.find_identity()
    if identity is None:
        return
    try:
        _write_begin(keeper, batch, identity)
    except sqlite3.OperationalError as error:  # busy, or the disk is full: the sessions have no manifest
        raise OSError(str(error)) from error
    except sqlite3.DatabaseError as error:
        lock = keeper.acquire_lock()
        if lock is not None:
            with closing(lock):
                database.remove(keeper.state_path)  # the next session begins a new one
        raise OSError(str(error)) from error


def _write_begin(keeper: ManifestKeeper, batch: Sequence[PendingBegin], identity: str) -> None:
    lock = keeper.acquire_lock()
    if lock is None:
        return
    with closing(lock), closing(database.open_or_create(keeper.state_path, identity)) as opened:
        # One statement may take seconds, as removing the rows of a million files does: the server's end stops it.
        opened.connection.set_progress_handler(keeper.is_stopping, _STEPS_BETWEEN_CHECKS)
        _write_scan(keeper, batch, opened)
        for pending in batch:
            pending.written.set()
        lock.release()
        _hash_pending(keeper, opened)


def _write_scan(keeper: ManifestKeeper, batch: Sequence[PendingBegin], opened: Database) -> None:
    # The last one's walk: what it sees was seen after the begin of each, as a session's begin has to be.
    source = batch[-1]
    ignored = IgnoredPaths(keeper.root, keeper.is_unreadable)
    begun_ns, seq = min(each.begun_ns for each in batch), min(each.seq for each in batch)
    writer = ScanWriter(opened, ignored, begun_ns, seq)
    for pending in batch:
        writer.add_session(pending.session_id, pending.begun_ns, pending.seq)
    for chunk in remaining_chunks(source):
        if keeper.is_stopping():
            writer.commit()
            return
        if chunk is not None:
            writer.write_chunk(chunk)
    writer.finish()
    prune(opened, KEPT_SESSIONS)


def _hash_pending(keeper: ManifestKeeper, opened: Database) -> None:
    """Read the files and links whose content is not known. What changes during that is left to the next scan."""
    after = (b"", b"")
    with closing(ContentReader(keeper.root, keeper.is_stopping)) as reader:
        while rows := opened.pending_rows(after, _PAGE):
            found = list[tuple[Row, bytes, int | None]]()
            for row in rows:
                if keeper.is_stopping():
                    break
                content = reader.read(row.directory, row.name)
                if content is not None and content.stat == row.stat:
                    found.append((row, content.hash, content.lines))
            opened.save_hashes(found)
            if keeper.is_stopping():
                return
            after = rows[-1].directory, rows[-1].name
            time.sleep(_PAUSE)
