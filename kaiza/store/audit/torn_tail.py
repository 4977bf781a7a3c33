"""What a crash left of a last line: kept beside the log, cut off it, and told by a record."""

import os
from datetime import UTC, datetime
from hashlib import sha256

from kaiza.domain.audit import record
from kaiza.store.audit import log_file
from kaiza.store.audit.line_reader import BLOCK_BYTES
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.tail import TornTail


def set_aside(root: str, file: LogFile, torn: TornTail) -> record.Body:
    """The body of the record that tells it; the bytes are in a file of their own, durably. The lock is held."""
    with log_file.open_audit_directory(root) as directory:
        try:
            name, digest = _save_bytes(directory, file, torn)
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
            "file": f"{log_file.DIRECTORY}/{name}",
            "offset": torn.offset,
            "length": torn.length,
            "sha256": digest,
        },
    )


def current_timestamp() -> str:
    """The time as records tell it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _save_bytes(directory: int, file: LogFile, torn: TornTail) -> tuple[str, str]:
    name, descriptor = _create_unique(directory, f"audit-log.torn-{torn.offset}")
    digest = sha256()
    try:
        for start in range(torn.offset, torn.offset + torn.length, BLOCK_BYTES):
            block = file.read(start, min(start + BLOCK_BYTES, torn.offset + torn.length))
            digest.update(block)
            _write_all(descriptor, block)
        os.fsync(descriptor)
        os.fsync(directory)
    except OSError:
        os.unlink(name, dir_fd=directory)
        raise
    finally:
        os.close(descriptor)
    return name, digest.hexdigest()


def _create_unique(directory: int, wanted: str) -> tuple[str, int]:
    how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    number = 1
    while True:
        name = wanted if number == 1 else f"{wanted}-{number}"
        try:
            return name, os.open(name, how, 0o600, dir_fd=directory)
        except FileExistsError:
            number += 1


def _write_all(descriptor: int, block: bytes) -> None:
    while block:
        block = block[os.write(descriptor, block) :]
