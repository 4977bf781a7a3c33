"""That the log was found damaged, kept until a full verification is intact or a person accepts it."""

import os
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import orjson

from kaiza.domain.audit import record
from kaiza.domain.audit.record import ChainFault, LogHead, Verdict
from kaiza.store.audit import log_file
from kaiza.store.audit.line_reader import BLOCK_BYTES
from kaiza.store.audit.log_file import LogFile
from kaiza.store.audit.tail import TornTail
from kaiza.store.disk import state_dir

_HARMLESS_VERDICTS = frozenset({"intact", "torn_tail"})


def is_damage(verdict: str) -> bool:
    """Any verdict but `intact` and a torn tail."""
    return verdict not in _HARMLESS_VERDICTS


class DamageMark:
    """What the state directory says about a workspace's log; what cannot be kept there holds for this process."""

    def __init__(self, place: Path) -> None:
        self._path = place / "damage.json"
        self._name = os.fsencode(self._path)
        self._in_memory: Verdict | None = None

    def save(self, verdict: Verdict) -> None:
        """The damage is remembered when this returns; an earlier finding stays."""
        if self.read() is not None:
            return
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            state_dir.replace_file(self._path, orjson.dumps(verdict))
        except OSError:
            self._in_memory = verdict

    def read(self) -> Verdict | None:
        """The finding that holds, or None. What cannot be read counts as damage."""
        if not os.access(self._name, os.F_OK):
            return self._in_memory
        try:
            told = orjson.loads(self._path.read_bytes())
            head = LogHead(**told["head"]) if told["head"] else None
            fault = ChainFault(**told["first_fault"]) if told["first_fault"] else None
            return Verdict(told["verdict"], told["records"], head, fault, anchored=told["anchored"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, OSError):
            return Verdict("broken", 0, None, None, anchored=False)

    def clear(self) -> None:
        """The damage is forgotten."""
        self._in_memory = None
        self._path.unlink(missing_ok=True)


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
