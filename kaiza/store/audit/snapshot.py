"""Snapshot of the state projected from the log, kept outside the workspace to save reading the whole log at a start.

It may be deleted at any time. It is used only with a valid code of the state directory's key, and while the record it
was made at is still at its offset in the log; otherwise the state is projected from the log again.
"""

import os
from pathlib import Path

import orjson

from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import read_range
from kaiza.store.disk.state_key import StateKey

_FORMAT = 6
NAME = "index.json"
_PURPOSE = "snapshot"
_TAIL_BYTES = 128
_MAX_BYTES = 1 << 30


def load(directory: Path, log: Path, key: StateKey, restricted_seq: int = 0) -> tuple[AuditState, LogHead | None]:
    """The state up to a verified head; an empty state if the snapshot is missing, invalid or not of this log.

    Also if it was projected with other records restricted (`Binding.restricted_seq`): an approval that counted when the
    snapshot was saved need not count now.
    """
    try:
        body, has_valid_code = _read_body(directory, key)
        content = orjson.loads(body) if has_valid_code else {}
        head = LogHead(**content["head"])
        if (content["format"], content["restricted_seq"]) == (_FORMAT, restricted_seq) and is_head_in_log(log, head):
            return AuditState.from_json(content["facts"]), head
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return AuditState(), None
    return AuditState(), None


def load_unchecked(directory: Path, key: StateKey) -> tuple[AuditState, int, bool]:
    """The state in the snapshot, the number of its last record, and whether it may allow something.

    For the acceptance of a damaged log, which may lack what the snapshot still knows. Without a valid code the state
    may only add restrictions, because anyone could have written it; and so may one that was saved while the log was
    being read, because an approval in it may have been revoked in a record that is lost now.
    """
    try:
        body, has_valid_code = _read_body(directory, key)
        content = orjson.loads(body)
        is_trusted = has_valid_code and not content.get("is_unfinished", False)
        return AuditState.from_json(content["facts"]), LogHead(**content["head"]).seq, is_trusted
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return AuditState(), 0, False


def encode(state: AuditState, head: LogHead, restricted_seq: int = 0, *, is_unfinished: bool = False) -> bytes:
    """The content of a snapshot; `is_unfinished` marks one of the beginning of a log that is being read.

    ValueError for a partial state, which would be taken for the state of all records up to the head.
    """
    if state.is_partial:
        raise ValueError
    return orjson.dumps(
        {
            "format": _FORMAT,
            "restricted_seq": restricted_seq,
            "is_unfinished": is_unfinished,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash, "size": head.size},
            "facts": state,
        }
    )


def save(directory: Path, body: bytes, key: StateKey) -> None:
    """Replace the snapshot by this content."""
    content = key.compute_code(_PURPOSE, body).encode() + b"\n" + body
    # What a power cut leaves of it fails the code, which costs reading the log and nothing else.
    small_files.replace(directory / NAME, content, durable=False)


def _read_body(directory: Path, key: StateKey) -> tuple[bytes, bool]:
    """The body, and whether its code is valid."""
    code, _newline, body = small_files.read(directory / NAME, _MAX_BYTES).partition(b"\n")
    return body, key.is_valid_code(code.decode("ascii", "replace"), _PURPOSE, body)


def is_head_in_log(log: Path, head: LogHead) -> bool:
    """Whether the record with this hash still ends at this offset: the log was neither cut nor replaced."""
    try:
        descriptor = small_files.open_for_reading(log)
    except FileNotFoundError:
        return False
    try:
        tail = read_range(descriptor, max(0, head.size - _TAIL_BYTES), head.size)
    finally:
        os.close(descriptor)
    return tail.endswith(f'"entry_hash":"{head.entry_hash}"}}\n'.encode())
