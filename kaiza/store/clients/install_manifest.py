"""Manifest of what `kaiza init` changed, kept in the state directory so that `--remove` can restore every byte.

It is written before the files are. Without it, removal is less exact: only what is clearly Kaiza's is removed.
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
    """One changed file: the client it belongs to, its content before (None: no file), and the hash of the new one."""

    owner: str
    before: bytes | None
    after_hash: str

    def is_unchanged(self, content: bytes | None) -> bool:
        """Whether `content` is what init wrote."""
        return content is not None and content_hash(content) == self.after_hash


@dataclass(frozen=True, slots=True)
class InstallManifest:
    """Changed files by path, and created directories with their owner, outermost first."""

    files: Mapping[str, InstalledFile] = field(default_factory=dict)
    directories: Mapping[str, str] = field(default_factory=dict)


def content_hash(content: bytes) -> str:
    """SHA-256 of a file's bytes."""
    return sha256(content).hexdigest()


def load(root: str) -> InstallManifest:
    """Load the manifest of a workspace; an empty one if it is missing, damaged or of another format."""
    try:
        document = orjson.loads(state_dir.read_file(state_dir.path_of(root) / _NAME))
        if document["format"] != _FORMAT:
            return InstallManifest()
        return InstallManifest(
            {path: _parse_entry(entry) for path, entry in document["files"].items()}, dict(document["directories"])
        )
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return InstallManifest()


def save(root: str, manifest: InstallManifest) -> None:
    """Write the manifest to disk, or delete the file of an empty one. OSError on failure."""
    if not manifest.files and not manifest.directories:
        (state_dir.path_of(root) / _NAME).unlink(missing_ok=True)
        return
    files = {
        path: {
            "owner": installed.owner,
            "before": None if installed.before is None else b64encode(installed.before).decode(),
            "after": installed.after_hash,
        }
        for path, installed in manifest.files.items()
    }
    document = {"format": _FORMAT, "files": files, "directories": dict(manifest.directories)}
    state_dir.replace_file(state_dir.path_of(root, create=True) / _NAME, orjson.dumps(document))


def _parse_entry(entry: Mapping[str, Any]) -> InstalledFile:
    before = entry["before"]
    return InstalledFile(entry["owner"], None if before is None else b64decode(before, validate=True), entry["after"])
