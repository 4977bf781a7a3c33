"""What `kaiza init` did to a workspace, kept in its state directory so that every byte can be given back.

It is written before anything is changed. Lost, it costs exactness: then only what is plainly Kaiza's is taken out.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

from kaiza.store.disk import state_dir

_NAME = "init.json"
_FORMAT = 1


@dataclass(frozen=True, slots=True)
class InstalledFile:
    """What became of one file: who it is for, what it was (None: not there), and the hash of what was written."""

    owner: str
    before: bytes | None
    after_hash: str

    def is_unchanged(self, content: bytes | None) -> bool:
        """Whether nobody has changed it since."""
        return content is not None and content_hash(content) == self.after_hash


@dataclass(frozen=True, slots=True)
class InstallManifest:
    """The files by path, and the directories that were made, the outer ones first, with who they are for."""

    files: Mapping[str, InstalledFile] = field(default_factory=dict)
    directories: Mapping[str, str] = field(default_factory=dict)


def content_hash(content: bytes) -> str:
    """SHA-256 of a file's bytes."""
    return sha256(content).hexdigest()


def load(root: str) -> InstallManifest:
    """What is remembered; nothing where there is no memory, or a strange one."""
    try:
        told = orjson.loads((state_dir.path_of(root) / _NAME).read_bytes())
        if told["format"] != _FORMAT:
            return InstallManifest()
        return InstallManifest(
            {path: _parse_entry(one) for path, one in told["files"].items()}, dict(told["directories"])
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return InstallManifest()


def save(root: str, memory: InstallManifest) -> None:
    """The memory is on disk when this returns; an empty one leaves no file. OSError where it cannot be kept."""
    if not memory.files and not memory.directories:
        (state_dir.path_of(root) / _NAME).unlink(missing_ok=True)
        return
    files = {
        path: {
            "owner": done.owner,
            "before": None if done.before is None else b64encode(done.before).decode(),
            "after": done.after_hash,
        }
        for path, done in memory.files.items()
    }
    told = {"format": _FORMAT, "files": files, "directories": dict(memory.directories)}
    state_dir.replace_file(state_dir.path_of(root, create=True) / _NAME, orjson.dumps(told))


def _parse_entry(told: Mapping[str, Any]) -> InstalledFile:
    before = told["before"]
    return InstalledFile(told["owner"], None if before is None else b64decode(before, validate=True), told["after"])
