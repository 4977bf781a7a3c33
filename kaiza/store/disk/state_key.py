"""Secret key of a workspace's state directory, and message authentication codes (HMAC-SHA256) made with it.

The files in `.kaiza/` may have been written by anyone: the workspace may be a clone, an unpacked archive or a backup.
A journal that came with it could make recovery delete or move files. So Kaiza acts on its own files there only if
they carry a code of this key.
"""

import hmac
import os
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from kaiza.domain import errors
from kaiza.domain.plain_values import describe_exception
from kaiza.store.disk import small_files
from kaiza.store.disk.state_dir import StateFile

_FILE = StateFile("key.json")
_KEY_BYTES = 32
_ID_LENGTH = 16


class StateKey:
    """The key, read from disk or created on first use."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key: bytes | None = None

    @property
    def state_id(self) -> str:
        """Public name of the state directory, derived from the key."""
        return sha256(b"kaiza state\n" + self._load_or_create()).hexdigest()[:_ID_LENGTH]

    def find_state_id(self) -> str | None:
        """The same name; None while there is no key."""
        return self.state_id if self._key is not None or self._read_key() is not None else None

    def compute_code(self, purpose: str, *parts: bytes) -> str:
        """Authentication code of these bytes for one purpose: 64 hex digits."""
        # The lengths are authenticated too: otherwise ("ab", "c") and ("a", "bc") would have the same code.
        lengths = b"".join(b"%d " % len(part) for part in parts)
        message = b"\n".join((purpose.encode(), lengths, *parts))
        return hmac.digest(self._load_or_create(), message, "sha256").hex()

    def is_valid_code(self, code: str, purpose: str, *parts: bytes) -> bool:
        """Whether this is the code of these bytes, compared in constant time."""
        return hmac.compare_digest(code.encode(errors="replace"), self.compute_code(purpose, *parts).encode())

    def ensure_exists(self) -> None:
        """Create the key if there is none. AUDIT_LOG_FAILED if it can be neither read nor created."""
        try:
            self._load_or_create()
        except OSError as refused:
            raise errors.SystemError.tool_failure(
                "AUDIT_LOG_FAILED",
                human_message="Kaiza's key outside the workspace is not usable. Check the state directory.",
                cause=describe_exception(refused),
            ) from refused

    def _load_or_create(self) -> bytes:
        if self._key is None:
            self._key = self._read_key() or self._create_key()
        return self._key

    def _read_key(self) -> bytes | None:
        """The key on disk; None if it is missing or malformed."""
        try:
            return _FILE.load(self._directory, _parse)
        except ValueError:
            return None

    def _create_key(self) -> bytes:
        key = os.urandom(_KEY_BYTES)
        content = orjson.dumps({"format": _FILE.format, "key": key.hex()})
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path, temp = self._directory / _FILE.name, self._directory / f"{_FILE.name}.{os.urandom(6).hex()}"
        small_files.write_new(temp, content, durable=True)
        try:
            # `link` fails if another process was first: all must use one key, and readers never see half of it.
            os.link(temp, path)
        except OSError:
            # The name is taken, or the file system has no hard links. A malformed key is replaced.
            if self._read_key() is None:
                temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)
        # Durable before a code is made with it: a key lost in a crash would invalidate every journal.
        small_files.sync_directory(self._directory)
        return self._read_key() or key


def _parse(document: dict[str, Any]) -> bytes:
    key = bytes.fromhex(document["key"])
    if len(key) != _KEY_BYTES:
        raise ValueError(len(key))
    return key
