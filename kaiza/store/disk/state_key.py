"""Secret key of a workspace's state directory, and the codes (HMAC-SHA256) made with it.

The workspace may have been written by anybody: cloned, unpacked, restored. What Kaiza keeps there for itself counts
only where it carries a code of this key, or was there already when a version without keys last held the workspace.
"""

import hmac
import os
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

import orjson

from kaiza.domain import errors
from kaiza.store.disk import state_dir

_NAME = "key.json"
_KEY_BYTES = 32
_ID_LENGTH = 16
_FORMAT = 1


class StateKey:
    """The key, read or made when it is first needed.

    `find_unsigned` gives the name and hash of the journals that are older than the key; it is asked once, when the
    key is made, and what it gave is kept beside the key.
    """

    def __init__(self, place: Path, find_unsigned: Callable[[], Mapping[str, str]] = dict) -> None:
        self._path = place / _NAME
        self._find_unsigned = find_unsigned
        self._key: bytes | None = None
        self._unsigned_journals: Mapping[str, str] = {}

    @property
    def state_id(self) -> str:
        """Public name of the state directory, derived from the key."""
        return sha256(b"kaiza state\n" + self._load_or_create()).hexdigest()[:_ID_LENGTH]

    def compute_code(self, purpose: str, *parts: bytes) -> str:
        """Authentication code of these bytes for one purpose, 64 hex digits."""
        lengths = b"".join(b"%d " % len(part) for part in parts)
        message = b"\n".join((purpose.encode(), lengths, *parts))
        return hmac.digest(self._load_or_create(), message, "sha256").hex()

    def is_valid_code(self, code: str, purpose: str, *parts: bytes) -> bool:
        """Whether a code is the one for these bytes."""
        return hmac.compare_digest(code.encode(errors="replace"), self.compute_code(purpose, *parts).encode())

    def is_older_than_key(self, name: str, content: bytes) -> bool:
        """Whether a journal with this name and content was there before the key was made."""
        self._load_or_create()
        return self._unsigned_journals.get(name) == sha256(content).hexdigest()

    def ensure_exists(self) -> None:
        """The key is on disk when this returns. AUDIT_LOG_FAILED where the state directory takes none."""
        try:
            self._load_or_create()
        except OSError as refused:
            raise errors.SystemError.tool_failure(
                "AUDIT_LOG_FAILED",
                human_message="Kaiza's key outside the workspace is not usable. Check the state directory.",
                cause=errors.describe_exception(refused),
            ) from refused

    def _load_or_create(self) -> bytes:
        """The key itself. OSError where it can neither be read nor made."""
        if self._key is None:
            self._key, self._unsigned_journals = self._read_key() or self._create_key()
        return self._key

    def _read_key(self) -> tuple[bytes, Mapping[str, str]] | None:
        """The key on disk; None where there is none, or none that is whole."""
        try:
            found = orjson.loads(self._path.read_bytes())
            key, unsigned = bytes.fromhex(found["key"]), found["unsigned"]
        except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
            return None
        return (key, unsigned) if len(key) == _KEY_BYTES and isinstance(unsigned, dict) else None

    def _create_key(self) -> tuple[bytes, Mapping[str, str]]:
        """A new key, durable. Where another process was first, its key."""
        unsigned = dict(self._find_unsigned())
        key = os.urandom(_KEY_BYTES)
        content = orjson.dumps({"format": _FORMAT, "key": key.hex(), "unsigned": unsigned})
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        beside = self._path.with_name(f"{_NAME}.{os.urandom(6).hex()}")
        state_dir.write_new(beside, content)
        try:
            os.link(beside, self._path)
        except OSError:  # something is there already, or this file system knows no second names
            if self._read_key() is None:
                beside.replace(self._path)
        finally:
            beside.unlink(missing_ok=True)
        state_dir.sync_directory(self._path.parent)
        return self._read_key() or (key, unsigned)
