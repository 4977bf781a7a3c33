"""Damage mark: a file that stops changes until a full verification is intact or a person accepts the damage.

Also sets a torn tail aside, which is not damage: a crash leaves one, and no record in it was ever acknowledged.
"""

import os
from contextlib import suppress
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from kaiza.clock import current_timestamp
from kaiza.domain.audit import record
from kaiza.domain.audit.record import ChainFault, LogHead, Verdict
from kaiza.domain.paths.protected_names import LOG_DIRECTORY
from kaiza.store.audit import log_file
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.reader import BLOCK_BYTES
from kaiza.store.audit.tail import TornTail
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import write_all
from kaiza.store.disk.state_dir import StateFile

_FILE = StateFile("damage.json")
_HARMLESS_VERDICTS = frozenset({"intact", "torn_tail"})


def is_damage(verdict: str) -> bool:
    """Whether a verdict is any other than `intact` and `torn_tail`."""
    return verdict not in _HARMLESS_VERDICTS


class DamageMark:
    """Mark in a workspace's state directory, shared by all processes.

    If it cannot be written there, it is kept in memory and stops this process only.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = _FILE.path_in(directory)
        self._in_memory: Verdict | None = None

    def save(self, verdict: Verdict) -> None:
        """Mark the log as damaged. An earlier mark stays: the first finding is the one to explain."""
        if self.read() is not None:
            return
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            # Damage that is forgotten in a power cut would allow changes again.
            _FILE.replace(self._directory, asdict(verdict), durable=True)
        except OSError:
            self._in_memory = verdict

    def read(self) -> Verdict | None:
        """The verdict in the mark, or None."""
        # Asked for with each record, and nearly always absent: `access` is cheaper than a failing open.
        if not os.access(self._path, os.F_OK):
            return self._in_memory
        try:
            return _FILE.load(self._directory, _parse)
        except (OSError, ValueError):
            # A mark that cannot be read still stops changes.
            return Verdict("broken", 0, None, None, anchored=False)

    def clear(self) -> None:
        """Remove the mark."""
        self._in_memory = None
        with suppress(FileNotFoundError):
            os.unlink(self._path)  # noqa: PTH108  as text


def _parse(members: dict[str, Any]) -> Verdict:
    head = LogHead(**members["head"]) if members["head"] else None
    fault = ChainFault(**members["first_fault"]) if members["first_fault"] else None
    return Verdict(members["verdict"], members["records"], head, fault, anchored=members["anchored"])


def set_aside_torn_tail(root: str, file: LogFile, torn: TornTail) -> record.Body:
    """Move a torn tail to a file of its own and return the record that reports it. The caller holds the lock."""
    with log_file.open_audit_directory(root) as directory:
        try:
            name, digest = _save_tail(directory, file, torn)
            # Only after the copy is durable: a crash here leaves the tail in both files, never in none.
            file.truncate(torn.offset)
        except OSError as refused:
            raise log_file.log_error(refused, step="set_aside") from refused
    return record.new_body(
        "recovery",
        timestamp=current_timestamp(),
        workspace_root=root,
        outcome="ok",
        detail={
            "result": "torn_tail_set_aside",
            "file": f"{LOG_DIRECTORY}/{name}",
            "offset": torn.offset,
            "length": torn.length,
            "sha256": digest,
        },
    )


def _save_tail(directory: int, file: LogFile, torn: TornTail) -> tuple[str, str]:
    """Name and SHA-256 of the file that now holds the torn tail, durably."""
    name, descriptor = _create_unique(directory, f"audit-log.torn-{torn.offset}")
    digest = sha256()
    end = torn.offset + torn.length
    try:
        for start in range(torn.offset, end, BLOCK_BYTES):
            block = file.read(start, min(start + BLOCK_BYTES, end))
            digest.update(block)
            write_all(descriptor, [block])
        os.fsync(descriptor)
        os.fsync(directory)
    except OSError:
        os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)
    return name, digest.hexdigest()


def _create_unique(directory: int, prefix: str) -> tuple[str, int]:
    """Create `prefix`, or `prefix-2` and so on if it exists: an earlier tail at this offset is kept."""
    number = 1
    while True:
        name = prefix if number == 1 else f"{prefix}-{number}"
        try:
            return name, small_files.create(name, directory)
        except FileExistsError:
            number += 1
