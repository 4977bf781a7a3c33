"""What belongs to a file beside its bytes: mode, owner, extended attributes; taken from one, given to another."""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, READ_NOFOLLOW, file_stamp, has_no_writer, read_all

_UNSUPPORTED_ERRNOS = {errno.ENOTSUP, errno.ENOSYS, errno.EPERM, errno.EACCES}
NO_KNOWN_DIGESTS: Mapping[tuple[int, ...], str] = {}


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """What a file has beside its bytes."""

    mode: int
    uid: int
    gid: int
    attributes: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def from_descriptor(cls, fd: int) -> "FileMetadata":
        """Take them from an open file."""
        found = os.fstat(fd)
        return cls(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, _read_attributes(fd))

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> "FileMetadata":
        """Take them from a journal. TypeError, ValueError where they are none."""
        attributes = {str(name): bytes.fromhex(value) for name, value in told["attributes"].items()}
        mode, uid, gid = (index(told[name]) for name in ("mode", "uid", "gid"))
        return cls(mode, uid, gid, attributes)

    def as_json(self) -> Mapping[str, Any]:
        """Write them for a journal."""
        attributes = {name: value.hex() for name, value in self.attributes.items()}
        return {"mode": self.mode, "uid": self.uid, "gid": self.gid, "attributes": attributes}

    def apply_to(self, fd: int, mode: int | None = None) -> None:
        """Give them to another file; the mode last, because a new owner takes bits away."""
        found = os.fstat(fd)
        if (found.st_uid, found.st_gid) != (self.uid, self.gid):
            os.fchown(fd, self.uid, self.gid)
        for name, value in self.attributes.items():
            _set_attribute(fd, name, value)
        os.fchmod(fd, self.mode if mode is None else mode)


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A regular file as it was found: its identity, its content's hash, its facts."""

    inode: int
    size: int
    link_count: int
    digest: str
    metadata: FileMetadata
    stamp: tuple[int, ...] = ()
    has_no_writer: bool = False
    """Whether it was asked for, and nobody had the file open for writing just before it was read."""


def snapshot(
    dir_fd: int, name: bytes, known: Mapping[tuple[int, ...], str] = NO_KNOWN_DIGESTS, *, lone: bool = False
) -> FileSnapshot | None:
    """Look at a regular file whole; None for anything else that stands there. OSError where nothing does.

    What is known under the very stamp that the file has is not read again. `lone` asks whether anybody still writes it.
    """
    try:
        fd = os.open(name, READ_NOFOLLOW, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            return None
        raise
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            return None
        stamp = file_stamp(found)
        alone = lone and found.st_size > MAX_PACKED_BYTES and has_no_writer(fd)
        digest = known.get(stamp) or digest_of(fd)
        return FileSnapshot(
            found.st_ino, found.st_size, found.st_nlink, digest, FileMetadata.from_descriptor(fd), stamp, alone
        )
    finally:
        os.close(fd)


def inode_at(dir_fd: int, name: bytes) -> int | None:
    """Tell the identity of what stands at a name, if anything does."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def digest_of(fd: int) -> str:
    """Hash an open file, a chunk at a time."""
    check = hashlib.sha256()
    for chunk in read_all(fd):
        check.update(chunk)
    return check.hexdigest()


def _read_attributes(fd: int) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _UNSUPPORTED_ERRNOS:
            return {}
        raise


def _set_attribute(fd: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        if error.errno not in _UNSUPPORTED_ERRNOS or not name.startswith(("security.", "trusted.")):
            raise
