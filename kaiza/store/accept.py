"""A person has looked at a damaged log: it is moved aside, and a new one begins by saying so."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from kaiza.domain import carried, errors, record
from kaiza.domain.record import Head, Verdict
from kaiza.domain.record_folding import apply_record
from kaiza.domain.session import Facts
from kaiza.store import index, log_file, state
from kaiza.store.anchor import Anchor
from kaiza.store.damage import Damage, is_damage
from kaiza.store.lock import FileLock
from kaiza.store.records import records
from kaiza.store.state_key import StateKey
from kaiza.store.torn_tail import now
from kaiza.store.verify import verify

_NEXT = "audit-log.next"
_PATIENCE = 5.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """What was accepted, where the old log is now, if there was one, and the record that begins the new one."""

    verdict: Verdict
    file: str | None
    record: dict[str, Any]


def accept(root: str, *, reason: str, person: str) -> Accepted | None:
    """The damage is over when this returns: the old log is kept beside, the anchor names the new one's first record.

    None, and nothing done, where the log is intact or only torn. AUDIT_LOG_FAILED, AUDIT_LOCK_FAILED: not accepted.
    """
    place = state.directory(root, create=True)
    found = verify(root)
    held = Damage(place).holds()
    if held is None and not is_damage(found.verdict):
        return None
    old = log_file.open_log(root)
    try:
        if old is not None:
            old.lock.acquire(_PATIENCE)
        with log_file.audit_directory(root) as directory:
            return _begin_anew(root, directory, place, held or found, {"reason": reason, "person": person})
    except OSError as refused:
        raise log_file.failure(refused) from refused
    finally:
        if old is not None:
            old.close()


def _binding(root: str, place: Path) -> list[dict[str, Any]]:
    """What binds by the last account outside of the log and by the records that can still be read. The lock is held."""
    known, seq, is_ours = index.last_known(place, StateKey(place))
    if not is_ours:
        known.approvals.clear()  # what does not carry our code may only restrict
    told, since = Facts(), Facts()
    for one in records(root):
        if one.keys() >= set(record.FIELDS):
            apply_record(told, one)
            if one["seq"] > seq:
                apply_record(since, one)
            if one["kind"] != "intent":
                known.intents.pop(one["request_id"], None)
    known.usage = carried.continued(known.usage, since.usage)
    return carried.parts(carried.merged(known, told, now()))


def _begin_anew(root: str, directory: int, place: Path, verdict: Verdict, word: dict[str, Any]) -> Accepted:
    anchor = Anchor(place)
    aside, digest = _set_aside_as(directory)
    kept = f"{log_file.DIRECTORY}/{aside}" if aside else None
    first, *more = _binding(root, place)
    word |= {**_finding(verdict, anchor), "file": kept, "sha256": digest, "standing": first}
    lines, made = _sealed(root, [word, *({"person": word["person"], "standing": part} for part in more)])
    lock = _written(directory, b"".join(lines))
    try:
        _exchange(directory, aside)
        anchor.begin_anew(Head(len(made), made[-1]["entry_hash"], sum(map(len, lines))))
        Damage(place).clear()
    finally:
        lock.abandon()
        anchor.close()
    return Accepted(verdict, kept, made[0])


def _sealed(root: str, details: Sequence[Mapping[str, Any]]) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The new log's lines and their records, one for each of these."""
    lines: list[bytes] = []
    made: list[dict[str, Any]] = []
    for detail in details:
        told = {"action": "accept", **detail}
        body = record.compose("person", timestamp=now(), workspace_root=root, outcome="ok", detail=told)
        line, whole = record.seal(body, len(made) + 1, made[-1]["entry_hash"] if made else record.GENESIS)
        lines.append(line)
        made.append(whole)
    return lines, made


def _finding(verdict: Verdict, anchor: Anchor) -> dict[str, Any]:
    """What was found, and the last head that is known of the old log."""
    anchored = anchor.read()
    head = anchored.head if anchored else verdict.head
    return {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "first_fault": asdict(verdict.first_fault) if verdict.first_fault else None,
        "old_head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
    }


def _set_aside_as(directory: int) -> tuple[str | None, str | None]:
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


def _written(directory: int, content: bytes) -> FileLock:
    """The new log, complete, durable and locked, under a name of its own."""
    how = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_NEXT, how, 0o600, dir_fd=directory)
    lock = FileLock(descriptor)
    try:
        lock.acquire(_PATIENCE)
        os.ftruncate(descriptor, 0)
        if os.write(descriptor, content) != len(content):
            raise log_file.failure(sentence="The disk is full. Make room, then accept again.")
        os.fsync(descriptor)
    except (OSError, errors.SystemError):
        lock.abandon()
        raise
    return lock


def _exchange(directory: int, aside: str | None) -> None:
    """The old log gets its second name before the new one takes its place, so that at no moment there is none."""
    if aside is not None:
        try:
            os.link(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except PermissionError:
            os.rename(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory)
        os.rename(_NEXT, log_file.NAME, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        os.link(_NEXT, log_file.NAME, src_dir_fd=directory, dst_dir_fd=directory)
        os.unlink(_NEXT, dir_fd=directory)
    os.fsync(directory)
