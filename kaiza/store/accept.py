"""A person has looked at a damaged log: it is moved aside, and a new one begins by saying so."""

import os
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from kaiza.domain import record
from kaiza.domain.record import Head, Verdict
from kaiza.store import log_file, state
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage, is_damage
from kaiza.store.lock import FileLock
from kaiza.store.torn_tail import now
from kaiza.store.verify import verify

_NEXT = "audit-log.next"


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was accepted, where the old log is now (None where there was none), and the record that begins the new one."""

    verdict: Verdict
    file: str | None
    record: dict[str, Any]


def accept(root: str, *, reason: str, person: str, request_id: str | None = None) -> Accepted | None:
    """The damage is over when this returns: the old log is kept beside, and the anchor names the new one's first record.

    None, and nothing done, where the log is intact or only torn. AUDIT_LOG_FAILED, AUDIT_LOCK_FAILED: not accepted.
    """
    place = state.directory(root, create=True)
    found = verify(root)
    held = Damage(place).holds()
    if held is None and not is_damage(found.verdict):
        return None
    file = log_file.open_log(root)
    try:
        if file is not None:
            file.lock.acquire(5.0)
        return _begin_anew(root, place, held or found, {"reason": reason, "person": person}, request_id)
    except OSError as refused:
        raise log_file.failure(refused) from refused
    finally:
        if file is not None:
            file.close()


def _begin_anew(root: str, place: Path, verdict: Verdict, word: dict[str, str], request_id: str | None) -> Accepted:
    anchor = Anchor(place)
    anchored = anchor.read()
    with log_file.audit_directory(root) as directory:
        aside, digest = _copy_name(directory)
        old = anchored.head if anchored else verdict.head
        detail = {
            "action": "accept",
            **word,
            "verdict": verdict.verdict,
            "first_fault": asdict(verdict.first_fault) if verdict.first_fault else None,
            "old_head": {"seq": old.seq, "entry_hash": old.entry_hash} if old else None,
            "records": verdict.records,
            "file": f"{log_file.DIRECTORY}/{aside}" if aside else None,
            "sha256": digest,
        }
        body = record.compose(
            "person", timestamp=now(), request_id=request_id, workspace_root=root, outcome="ok", detail=detail
        )
        line, whole = record.seal(body, 1, record.GENESIS)
        descriptor = _written(directory, line)
        lock = FileLock(descriptor)
        lock.acquire(5.0)
        try:
            if aside:
                _keep(directory, aside)
            os.rename(_NEXT, log_file.NAME, src_dir_fd=directory, dst_dir_fd=directory)
            os.fsync(directory)
            anchor.begin_anew(Head(1, whole["entry_hash"], len(line)))
            Damage(place).clear()
        finally:
            lock.abandon()
            anchor.close()
    return Accepted(verdict, detail["file"], whole)


def _copy_name(directory: int) -> tuple[str | None, str | None]:
    """A free name for the old log, and the hash of its bytes; nothing where there is no old log."""
    try:
        descriptor = os.open(log_file.NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return None, None
    with os.fdopen(descriptor, "rb") as old:
        os.fsync(descriptor)
        digest = file_digest(old, "sha256").hexdigest()
    number, taken = 1, set(os.listdir(directory))
    while f"audit-log.damaged-{number}.jsonl" in taken:
        number += 1
    return f"audit-log.damaged-{number}.jsonl", digest


def _written(directory: int, line: bytes) -> int:
    how = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_NEXT, how, 0o600, dir_fd=directory)
    os.write(descriptor, line)
    os.fsync(descriptor)
    return descriptor


def _keep(directory: int, aside: str) -> None:
    """The old log has a second name, so that at no moment its own is free; where there are no links, it is moved."""
    try:
        os.link(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    except PermissionError:
        os.rename(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory)
