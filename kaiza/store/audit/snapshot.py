"""Snapshot of the log's projection, outside the workspace: only there to save reading the whole log again.

It may be deleted at any time. It carries a code of the state directory's key over its head and its facts, and counts
only with that, and while the record it was made from is where it was: else the facts are read from the log again.
"""

import os
from pathlib import Path

import orjson

from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead
from kaiza.store.disk.state_key import StateKey

_FORMAT = 2
_NAME = "index.json"
_PURPOSE = "snapshot"
_TAIL_BYTES = 128


def load(state: Path, log: Path, key: StateKey) -> tuple[AuditState, LogHead | None]:
    """The facts up to a verified head; none at all where the snapshot is missing, not ours, strange or overtaken."""
    try:
        body, is_ours = _read_body(state, key)
        told = orjson.loads(body) if is_ours else {}
        head = LogHead(**told["head"])
        if told["format"] == _FORMAT and _is_in_log(log, head):
            return AuditState.from_json(told["facts"]), head
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return AuditState(), None
    return AuditState(), None


def load_unchecked(state: Path, key: StateKey) -> tuple[AuditState, int, bool]:
    """The facts it holds, whatever became of the log, and up to which record; whether they carry our code.

    Without that, they may only restrict.
    """
    try:
        body, is_ours = _read_body(state, key)
        told = orjson.loads(body)
        return AuditState.from_json(told["facts"]), LogHead(**told["head"]).seq, is_ours
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return AuditState(), 0, False


def save(state: Path, facts: AuditState, head: LogHead, key: StateKey) -> None:
    """Keep the facts for the next process. Whole or not at all; losing it costs time, never truth."""
    body = orjson.dumps(
        {
            "format": _FORMAT,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash, "size": head.size},
            "facts": facts.as_json(),
        }
    )
    beside = state / f"{_NAME}.{os.getpid()}"
    beside.write_bytes(key.compute_code(_PURPOSE, body).encode() + b"\n" + body)
    beside.replace(state / _NAME)


def _read_body(state: Path, key: StateKey) -> tuple[bytes, bool]:
    """The snapshot's body, and whether it carries our code. What a version without keys wrote has none."""
    code, newline, body = (state / _NAME).read_bytes().partition(b"\n")
    if not newline:
        return code, False
    return body, key.is_valid_code(code.decode("ascii", "replace"), _PURPOSE, body)


def _is_in_log(log: Path, head: LogHead) -> bool:
    """Whether the record the snapshot was made from is still where it was."""
    with log.open("rb") as file:
        file.seek(max(0, head.size - _TAIL_BYTES))
        tail = file.read(min(_TAIL_BYTES, head.size))
    return tail.endswith(f'"entry_hash":"{head.entry_hash}"}}\n'.encode())
