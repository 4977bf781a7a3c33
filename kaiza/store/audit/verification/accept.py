"""Acceptance of a damaged log by a person: archives it and begins a new log that records the acceptance.

The new log's first records carry over what still restricts agents (freezes, role locks, used limits, withdrawn plans),
so that damaging the log frees an agent of nothing.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain import errors
from kaiza.domain.audit import carry_over, record
from kaiza.domain.audit.deterministic import counted_timestamp
from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead, Record, Verdict
from kaiza.domain.audit.record_folding import apply_record, apply_restrictions
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_NAME
from kaiza.store.audit import log_file, snapshot
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.determinism import prepare_record
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.reader import read_records
from kaiza.store.audit.verification.verify import verify_log
from kaiza.store.disk import lock_timeouts, small_files, state_dir
from kaiza.store.disk.byte_io import hash_content, read_all
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.state_key import StateKey

_LOCK_NAME = "accept.lock"
_MAX_HOLE_BYTES = 1 << 30


@dataclass(frozen=True, slots=True)
class AcceptedDamage:
    """What was accepted, the path of the old log if there was one, and the first record of the new log."""

    verdict: Verdict
    archived_path: str | None
    record: Record


def accept_damage(root: str, *, reason: str, person: str, restricted_seq: int = 0) -> AcceptedDamage | None:
    """Archive a damaged log and begin a new one; None, with nothing changed, if the log is intact or only torn.

    Records up to `restricted_seq` (-1: all) came from elsewhere. AUDIT_LOG_FAILED, AUDIT_LOCK_FAILED: not accepted.
    """
    directory = state_dir.path_of(root, create=True)
    # Before the log is verified: the second of two acceptances finds the new log of the first, which is intact.
    with small_files.hold_lock(directory / _LOCK_NAME, lock_timeouts.LOG):
        old = log_file.open_for_append(root)
        try:
            return _verify_and_replace(root, directory, old, {"reason": reason, "person": person}, restricted_seq)
        except OSError as refused:
            raise log_file.log_error(refused) from refused
        finally:
            if old is not None:
                old.close()


def _verify_and_replace(
    root: str, directory: Path, old: LogFile | None, base: dict[str, Any], restricted_seq: int
) -> AcceptedDamage | None:
    found = verify_log(root)
    mark = DamageMark(directory).read()
    if mark is None and not is_damage(found.verdict):
        return None
    if old is not None:
        # Held until the new log is in place, so that no record is appended to the old one after it was read.
        old.lock.acquire(lock_timeouts.LOG)
        # Another state directory's acceptance does not have our lock, and may have come first.
        if not log_file.is_current(root, old.descriptor):
            raise log_file.log_error(sentence="The log was replaced meanwhile. Run 'kaiza audit verify'.")
    with log_file.open_audit_directory(root) as audit_fd:
        standing = _collect_standing_state(root, directory, restricted_seq)
        return _start_new_log(root, audit_fd, mark or found, base, standing)


def _collect_standing_state(root: str, directory: Path, restricted_seq: int) -> AuditState:
    """State to carry over: from the last snapshot and from the records that can still be read."""
    known, seq, has_valid_code = snapshot.load_unchecked(directory, StateKey(directory))
    if not has_valid_code:
        # Anyone could have written it: it may restrict, but approve nothing.
        known.approvals.clear()
        known.seals = carry_over.distrust_seals(known.seals)
    readable, since = AuditState(), AuditState()
    for entry in read_records(root):
        if record.is_complete(entry):
            is_restricted = restricted_seq < 0 or entry.seq <= restricted_seq
            apply = partial(apply_restrictions, own_state=None) if is_restricted else apply_record
            apply(readable, entry)
            if entry.seq > seq:
                apply(since, entry)
            if entry.kind != "intent":
                known.intents.pop(entry.request_id or "", None)
    known.usage = carry_over.sum_usage_by_plan(known.usage, since.usage)
    # The new log also counts its records: with real times, daily limits would no longer include the old log's records.
    is_counted = known.is_deterministic or readable.is_deterministic
    now = counted_timestamp(0) if is_counted else current_timestamp()
    return replace(carry_over.merge(known, readable, now), is_deterministic=is_counted)


def _start_new_log(
    root: str, audit_fd: int, verdict: Verdict, base: dict[str, Any], standing: AuditState
) -> AcceptedDamage:
    directory = state_dir.path_of(root)
    checkpoint = Checkpoint(directory)
    archive_name, digest = _choose_archive_name(audit_fd)
    archived_path = f"{LOG_DIRECTORY}/{archive_name}" if archive_name else None
    first, *more = carry_over.split(standing)
    base |= {**_damage_detail(verdict, checkpoint), "file": archived_path, "sha256": digest, "standing": first}
    details = [base, *({"person": base["person"], "standing": part} for part in more)]
    lines, records = _compose_lines(root, details, standing)
    new_name = f".audit-log.{os.urandom(8).hex()}.new"
    lock = _write_new_log(audit_fd, new_name, b"".join(lines))
    try:
        # After a crash between the swap and the reset the old checkpoint does not fit the new log. That is found as
        # damage, and can be accepted again. The mark goes last: until then every process refuses changes.
        _swap_logs(audit_fd, new_name, archive_name)
        checkpoint.reset(LogHead(len(records), records[-1].entry_hash, sum(map(len, lines))))
        DamageMark(directory).clear()
    finally:
        with suppress(FileNotFoundError):  # it has the log's name by now, unless the swap failed
            os.unlink(new_name, dir_fd=audit_fd)
        lock.close()
        checkpoint.close()
    return AcceptedDamage(verdict, archived_path, records[0])


def _compose_lines(
    root: str, details: Sequence[Mapping[str, Any]], standing: AuditState
) -> tuple[list[bytes], list[Record]]:
    """The lines and records of a new log, one for each detail."""
    lines: list[bytes] = []
    records: list[Record] = []
    for detail in details:
        full, now = {"action": "accept", **detail}, current_timestamp()
        body = record.new_body("person", timestamp=now, workspace_root=root, outcome="ok", detail=full)
        seq, link = len(records) + 1, records[-1].entry_hash if records else record.GENESIS
        body = prepare_record(body, seq, wanted=standing.is_deterministic, state=standing)
        line, written = record.serialize_and_hash(body, seq, link)
        lines.append(line)
        records.append(written)
    return lines, records


def _damage_detail(verdict: Verdict, checkpoint: Checkpoint) -> dict[str, Any]:
    """The verdict, and the last known head of the old log."""
    value = checkpoint.read()
    head = value.head if value else verdict.head
    return {
        "verdict": verdict.verdict,
        "records": verdict.records,
        "first_fault": asdict(verdict.first_fault) if verdict.first_fault else None,
        "old_head": {"seq": head.seq, "entry_hash": head.entry_hash} if head else None,
    }


def _choose_archive_name(audit_fd: int) -> tuple[str | None, str | None]:
    """A free name for the old log, and the SHA-256 of its bytes unless it has a large hole; None, None without one."""
    try:
        descriptor = small_files.open_for_reading(LOG_NAME, audit_fd)
    except FileNotFoundError:
        return None, None
    with os.fdopen(descriptor, "rb"):
        os.fsync(descriptor)  # the recorded hash must be that of the bytes on disk
        status = os.fstat(descriptor)
        # A log is never sparse. Hashing the hole that someone made in it could take days.
        is_sparse = status.st_size - 512 * status.st_blocks > _MAX_HOLE_BYTES
        digest = None if is_sparse else hash_content(read_all(descriptor))
    number, names = 1, set(os.listdir(audit_fd))
    while f"audit-log.damaged-{number}.jsonl" in names:
        number += 1
    return f"audit-log.damaged-{number}.jsonl", digest


def _write_new_log(audit_fd: int, name: str, content: bytes) -> FileLock:
    """Write the new log under a temporary name, complete, durable and locked."""
    descriptor = small_files.create(name, audit_fd)
    lock = FileLock(descriptor)
    try:
        # Locked before it has the log's name: a waiting server must not append before the checkpoint is reset.
        lock.acquire(lock_timeouts.LOG)
        if os.write(descriptor, content) != len(content):
            raise log_file.log_error(sentence="The disk is full. Free some space, then accept again.")
        os.fsync(descriptor)
    except (OSError, errors.SystemError):
        os.unlink(name, dir_fd=audit_fd)
        lock.close()
        raise
    return lock


def _swap_logs(audit_fd: int, new_name: str, archive_name: str | None) -> None:
    """Give the old log its archive name and the new one its place, so that at no moment there is no log."""
    if archive_name is not None:
        try:
            os.link(LOG_NAME, archive_name, src_dir_fd=audit_fd, dst_dir_fd=audit_fd, follow_symlinks=False)
        except PermissionError:  # no hard links on this file system
            os.rename(LOG_NAME, archive_name, src_dir_fd=audit_fd, dst_dir_fd=audit_fd)
        os.rename(new_name, LOG_NAME, src_dir_fd=audit_fd, dst_dir_fd=audit_fd)
    else:
        # `link` and not `rename`: a log that a server has just created is not overwritten.
        os.link(new_name, LOG_NAME, src_dir_fd=audit_fd, dst_dir_fd=audit_fd)
    os.fsync(audit_fd)
