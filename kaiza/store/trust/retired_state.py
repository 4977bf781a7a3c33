"""State of an earlier workspace at the same path: set aside, and carried over as far as it restricts."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kaiza.domain.audit import carry_over
from kaiza.domain.audit.projection import AuditState
from kaiza.store.audit import snapshot
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.audit.reader import read_records
from kaiza.store.disk import small_files
from kaiza.store.disk.state_key import StateKey
from kaiza.store.trust import identity
from kaiza.store.trust.seen_plans import SeenPlans

RESULT = "state_retired"
# The key stays, and what does not belong to the log: what was seen and the manifest of `kaiza init`.
_LOG_STATE = re.compile(r"anchor(-[0-9]+)?|(index|settings|whole|damage|workspace)\.json")
_UNFINISHED_NAME = "retiring"
_NAME = re.compile(r"retired-([0-9]+)")


def retire(state_path: Path) -> None:
    """Move what is known of an earlier log to `retired-N`. Continues where a crash interrupted it."""
    unfinished = state_path / _UNFINISHED_NAME
    names = [name for name in os.listdir(state_path) if _LOG_STATE.fullmatch(name)]  # noqa: PTH208  names, not paths
    if not names and not unfinished.exists():
        return
    seen = SeenPlans("", state_path)
    if not seen.is_of_new_workspace():
        seen.forget_edits()
    if names == [identity.RECORD.name] and not unfinished.exists():
        return  # nothing was recorded yet, so what was retired last is still to be carried over
    unfinished.mkdir(mode=0o700, exist_ok=True)
    for name in names:
        (state_path / name).rename(unfinished / name)
    unfinished.rename(state_path / f"retired-{_newest_number(state_path) + 1}")
    small_files.sync_directory(state_path)


def load_restrictions(directory: Path, key: StateKey) -> AuditState:
    """What the snapshot in a state directory forbids: freeze, locks, withdrawals and used limits."""
    old, _, _ = snapshot.load_unchecked(directory, key)
    return AuditState(frozen=old.frozen, locks=old.locks, withdrawn=old.withdrawn, usage=old.usage)


def collect_restrictions(state_path: Path, key: StateKey) -> Iterator[Mapping[str, Any]]:
    """Details of the records that carry over what the state retired last forbids; none if there is no such state."""
    number = _newest_number(state_path)
    if not number:
        return
    directory = state_path / f"retired-{number}"
    kept, checkpoint = load_restrictions(directory, key), Checkpoint(directory).read()
    if checkpoint is None and kept == AuditState():
        return
    head = {"seq": checkpoint.head.seq, "entry_hash": checkpoint.head.entry_hash} if checkpoint else None
    for part in carry_over.split(kept):
        yield {"result": RESULT, "old_head": head, "standing": part}


def count_carried(root: str) -> int | None:
    """Number of records that carry a retired state, in a log of nothing else; None if other records are there."""
    carried = 0
    for record in read_records(root):
        if record.detail.get("result") != RESULT:
            return None
        carried += 1
    return carried


def _newest_number(state_path: Path) -> int:
    matches = map(_NAME.fullmatch, os.listdir(state_path))  # noqa: PTH208  names, not paths
    return max((int(match[1]) for match in matches if match), default=0)
