"""Accept a damaged log: archive it, and begin a new log whose first record says who accepted what, and why."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kaiza.domain.refusal import RefusedError
from kaiza.queries.audit_log import Progress, verify
from kaiza.render import log_verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.damage_mark import DamageMark, is_damage
from kaiza.store.audit.verification import accept
from kaiza.store.disk import state_dir
from kaiza.store.trust import binding, identity


@dataclass(frozen=True, slots=True)
class Proposal:
    """The verdict that would be accepted, and the name under which the old log would be kept."""

    verdict: dict[str, Any]
    reason: str
    log: Path
    archive_name: str | None
    """None if there is no file to keep."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The verdict that was accepted, the path of the old log if there was one, and the first record of the new one."""

    verdict: str
    archived_path: str | None
    seq: int
    entry_hash: str


def propose(root: str, reason: str, progress: Progress) -> Proposal:
    """Verify the whole log. Refused if it is not damaged and never was, or nothing is recorded here."""
    verdict, state_path = verify(root, progress), state_dir.path_of(root)
    if binding.read_binding(root, state_path).is_new:
        raise RefusedError("There is nothing to accept: nothing is recorded here, and the next call begins a log.")
    # Damage that was found once stays marked, even if the log verifies again.
    if DamageMark(state_path).read() is None and not is_damage(verdict["verdict"]):
        raise RefusedError(f"There is nothing to accept. {log_verdict.describe(verdict)[0]}")
    log, number = log_file.path_of(root), 1
    while (log.parent / f"audit-log.damaged-{number}.jsonl").exists():
        number += 1
    return Proposal(verdict, reason, log, f"audit-log.damaged-{number}.jsonl" if log.exists() else None)


def decide(root: str, proposal: Proposal, person: str) -> Decision:
    """Begin the new log. Refused if the old one, verified again under its lock, was repaired meanwhile."""
    state_path = state_dir.path_of(root)
    with identity.lock_identity(state_path):
        # Of the records that are carried over, those from elsewhere may only restrict.
        restricted_seq = binding.read_binding(root, state_path).restricted_seq
        accepted = accept.accept_damage(root, reason=proposal.reason, person=person, restricted_seq=restricted_seq)
        if accepted is None:
            raise RefusedError("The log was repaired in the meantime. Nothing was accepted; nothing was changed.")
        binding.forget_adopted_records(state_path)
    first = accepted.record
    return Decision(accepted.verdict.verdict, accepted.archived_path, first.seq, first.entry_hash)
