"""A person has looked at a damaged log: it is moved aside, and a new one begins by saying so."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import file_digest
from pathlib import Path
from typing import Any

from kaiza.domain import errors
from kaiza.domain.audit import carry_over, record
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead, Verdict
from kaiza.domain.audit.record_folding import apply_record
from kaiza.store.audit import log_file, snapshot
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark, current_timestamp, is_damage
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.disk import state_dir
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.state_key import StateKey

_NEW_LOG_NAME = "audit-log.next"
_LOCK_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class AcceptedDamage:
    """What was accepted, where the old log is now, if there was one, and the record that begins the new one."""

    verdict: Verdict
    archived_path: str | None
    record: dict[str, Any]


def accept_damage(root: str, *, reason: str, person: str) -> AcceptedDamage | None:
    """The damage is over when this returns: the old log is kept beside, the anchor names the new one's first record.

    None, and nothing done, where the log is intact or only torn. AUDIT_LOG_FAILED, AUDIT_LOCK_FAILED: not accepted.
    """
    place = state_dir.path_of(root, create=True)
    found = verify_log(root)
    held = DamageMark(place).read()
    if held is None and not is_damage(found.verdict):
        return None
    old = log_file.open_for_append(root)
    try:
        if old is not None:
            old.lock.acquire(_LOCK_SECONDS)
        with log_file.open_audit_directory(root) as directory:
            return _start_new_log(root, directory, place, held or found, {"reason": reason, "person": person})
    except OSError as refused:
        raise log_file.log_error(refused) from refused
    finally:
        if old is not None:
            old.close()


def _collect_standing_state(root: str, place: Path) -> list[dict[str, Any]]:
    """What binds by the last account outside of the log and by the records that can still be read. The lock is held."""
    known, seq, is_ours = snapshot.load_unchecked(place, StateKey(place))
    if not is_ours:
        known.approvals.clear()  # what does not carry our code may only restrict
    told, since = AuditState(), AuditState()
    for one in read_records(root):
        if one.keys() >= set(record.FIELDS):
            apply_record(told, one)
            if one["seq"] > seq:
                apply_record(since, one)
            if one["kind"] != "intent":
                known.intents.pop(one["request_id"], None)
    known.usage = carry_over.sum_usage_by_plan(known.usage, since.usage)
    return carry_over.split(carry_over.merge(known, told, current_timestamp()))


def _start_new_log(root: str, directory: int, place: Path, verdict: Verdict, word: dict[str, Any]) -> AcceptedDamage:
    anchor = Checkpoint(place)
    aside, digest = _choose_archive_name(directory)
    kept = f"{log_file.DIRECTORY}/{aside}" if aside else None
    first, *more = _collect_standing_state(root, place)
    word |= {**_damage_detail(verdict, anchor), "file": kept, "sha256": digest, "standing": first}
    lines, made = _compose_lines(root, [word, *({"person": word["person"], "standing": part} for part in more)])
    lock = _write_new_log(directory, b"".join(lines))
    try:
        _swap_logs(directory, aside)
        anchor.reset(LogHead(len(made), made[-1]["entry_hash"], sum(map(len, lines))))
        DamageMark(place).clear()
    finally:
        lock.close()
        anchor.close()
    return AcceptedDamage(verdict, kept, made[0])


def _compose_lines(root: str, details: Sequence[Mapping[str, Any]]) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The new log's lines and their records, one for each of these."""
    lines: list[bytes] = []
    made: list[dict[str, Any]] = []
    for detail in details:
        told = {"action": "accept", **detail}
        body = record.new_body("person", timestamp=current_timestamp(), workspace_root=root, outcome="ok", detail=told)
        line, whole = record.serialize_and_hash(body, len(made) + 1, made[-1]["entry_hash"] if made else record.GENESIS)
        lines.append(line)
        made.append(whole)
    return lines, made


def _damage_detail(verdict: Verdict, anchor: Checkpoint) -> dict[str, Any]:
    """What was found, and the last head that is known of the old log."""
    anchored = anchor.read()
    head = anchored.head if anchored else verdict.head
    return {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "first_fault": asdict(verdict.first_fault) if verdict.first_fault else None,
        "old_head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
    }


def _choose_archive_name(directory: int) -> tuple[str | None, str | None]:
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


def _write_new_log(directory: int, content: bytes) -> FileLock:
    """The new log, complete, durable and locked, under a name of its own."""
    how = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(_NEW_LOG_NAME, how, 0o600, dir_fd=directory)
    lock = FileLock(descriptor)
    try:
        lock.acquire(_LOCK_SECONDS)
        os.ftruncate(descriptor, 0)
        if os.write(descriptor, content) != len(content):
            raise log_file.log_error(sentence="The disk is full. Make room, then accept again.")
        os.fsync(descriptor)
    except (OSError, errors.SystemError):
        lock.close()
        raise
    return lock


def _swap_logs(directory: int, aside: str | None) -> None:
    """The old log gets its second name before the new one takes its place, so that at no moment there is none."""
    if aside is not None:
        try:
            os.link(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
        except PermissionError:
            os.rename(log_file.NAME, aside, src_dir_fd=directory, dst_dir_fd=directory)
        os.rename(_NEW_LOG_NAME, log_file.NAME, src_dir_fd=directory, dst_dir_fd=directory)
    else:
        os.link(_NEW_LOG_NAME, log_file.NAME, src_dir_fd=directory, dst_dir_fd=directory)
        os.unlink(_NEW_LOG_NAME, dir_fd=directory)
    os.fsync(directory)
