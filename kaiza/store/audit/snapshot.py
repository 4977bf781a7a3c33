"""Snapshot of the state projected from the log, kept outside the workspace to save reading the whole log at a start.

It may be deleted at any time. It is used only with a valid code of the state directory's key, and while the record it
was made at is still at its offset in the log; otherwise the state is projected from the log again.
"""

import os
from pathlib import Path

import orjson

from kaiza.domain.audit.projection import AuditState
from kaiza.domain.audit.record import LogHead
from kaiza.store.disk.byte_io import READ_NOFOLLOW, read_range
from kaiza.store.disk.state_key import StateKey

_FORMAT = 4  # format 3 had no principals: stdio could use a session that began over HTTP
_NAME = "index.json"
_PURPOSE = "snapshot"
_TAIL_BYTES = 128


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
    """The state in the snapshot, the number of its last record, and whether its code is valid.

    For the acceptance of a damaged log, which may lack what the snapshot still knows. Without a valid code the state
    may only add restrictions: anyone could have written it.
    """
    try:
        body, has_valid_code = _read_body(directory, key)
        content = orjson.loads(body)
        return AuditState.from_json(content["facts"]), LogHead(**content["head"]).seq, has_valid_code
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return AuditState(), 0, False


def save(directory: Path, state: AuditState, head: LogHead, key: StateKey, restricted_seq: int = 0) -> None:
    """Replace the snapshot."""
    body = orjson.dumps(
        {
            "format": _FORMAT,
            "restricted_seq": restricted_seq,
            "head": {"seq": head.seq, "entry_hash": head.entry_hash, "size": head.size},
            "facts": state.as_json(),
        }
    )
    temp = directory / f"{_NAME}.{os.getpid()}"
    temp.write_bytes(key.compute_code(_PURPOSE, body).encode() + b"\n" + body)
    # Not fsynced: what a power cut leaves of it fails the code, which costs reading the log and nothing else.
    temp.replace(directory / _NAME)


def _read_body(directory: Path, key: StateKey) -> tuple[bytes, bool]:
    """The body, and whether its code is valid."""
    code, newline, body = (directory / _NAME).read_bytes().partition(b"\n")
    if not newline:  # written by a version without keys
        return code, False
    return body, key.is_valid_code(code.decode("ascii", "replace"), _PURPOSE, body)


def is_head_in_log(log: Path, head: LogHead) -> bool:
    """Whether the record with this hash still ends at this offset: the log was neither cut nor replaced."""
    try:
        descriptor = os.open(log, READ_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        tail = read_range(descriptor, max(0, head.size - _TAIL_BYTES), head.size)
    finally:
        os.close(descriptor)
    return tail.endswith(f'"entry_hash":"{head.entry_hash}"}}\n'.encode())
