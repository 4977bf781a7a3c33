"""Manifest of what `kaiza init` changed, kept in the state directory so that `--remove` can restore every byte.

It is written before the files are. Without it, removal is less exact: only what is clearly Kaiza's is removed.
"""

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from kaiza.store.disk import state_dir
from kaiza.store.disk.state_dir import StateFile

_FILE = StateFile("init.json")


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
        return _FILE.load(state_dir.path_of(root), _parse) or InstallManifest()
    except ValueError:
        return InstallManifest()


def save(root: str, manifest: InstallManifest) -> None:
    """Write the manifest to disk, or delete the file of an empty one. OSError on failure."""
    if not manifest.files and not manifest.directories:
        (state_dir.path_of(root) / _FILE.name).unlink(missing_ok=True)
        return
    files = {
        path: {
            "owner": installed.owner,
            "before": None if installed.before is None else b64encode(installed.before).decode(),
            "after": installed.after_hash,
        }
        for path, installed in manifest.files.items()
    }
    members = {"files": files, "directories": dict(manifest.directories)}
    # The clients' files are changed next, and this is the only copy of what they were.
    _FILE.replace(state_dir.path_of(root, create=True), members, durable=True)


def _parse(document: dict[str, Any]) -> InstallManifest:
    files = {}
    for path, entry in document["files"].items():
        before = None if entry["before"] is None else b64decode(entry["before"], validate=True)
        files[path] = InstalledFile(entry["owner"], before, entry["after"])
    return InstallManifest(files, dict(document["directories"]))
