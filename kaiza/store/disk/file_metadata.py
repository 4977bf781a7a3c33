"""File metadata (mode, owner, extended attributes) and snapshots of regular files."""

import errno
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import MAX_PACKED_BYTES, file_stamp, has_no_writer, hash_content, read_all

_UNSUPPORTED_ERRNOS = {errno.ENOTSUP, errno.ENOSYS, errno.EPERM, errno.EACCES}
NO_KNOWN_DIGESTS: Mapping[tuple[int, ...], str] = {}


@dataclass(frozen=True, slots=True)
class FileMetadata:
    """Mode, owner and extended attributes of a file."""

    mode: int
    uid: int
    gid: int
    attributes: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def from_descriptor(cls, fd: int) -> "FileMetadata":
        """Read the metadata of an open file."""
        status = os.fstat(fd)
        return cls(stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid, _read_attributes(fd))

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "FileMetadata":
        """Parse the metadata in a journal. TypeError or ValueError if they are malformed."""
        attributes = {str(name): bytes.fromhex(digits) for name, digits in value["attributes"].items()}
        mode, uid, gid = (index(value[name]) for name in ("mode", "uid", "gid"))
        return cls(mode, uid, gid, attributes)

    @property
    def is_ordinary(self) -> bool:
        """Whether a file that this process creates has this owner and these attributes."""
        return not self.attributes and (self.uid, self.gid) == (os.geteuid(), os.getegid())

    def as_json(self) -> Mapping[str, Any]:
        """The metadata as a journal holds them."""
        attributes = {name: content.hex() for name, content in self.attributes.items()}
        return {"mode": self.mode, "uid": self.uid, "gid": self.gid, "attributes": attributes}

    def apply_to(self, fd: int, mode: int | None = None) -> None:
        """Set these metadata on an open file, with `mode` instead of its own if given."""
        status = os.fstat(fd)
        if (status.st_uid, status.st_gid) != (self.uid, self.gid):
            os.fchown(fd, self.uid, self.gid)
        for name, content in self.attributes.items():
            _set_attribute(fd, name, content)
        # Last, because fchown clears the set-user-ID and set-group-ID bits.
        os.fchmod(fd, self.mode if mode is None else mode)


@dataclass(frozen=True, slots=True)
class FileSnapshot:
    """A regular file at one moment: identity, size, SHA-256 of its content, metadata."""

    inode: int
    size: int
    link_count: int
    digest: str
    metadata: FileMetadata
    stamp: tuple[int, ...] = ()
    has_no_writer: bool = False
    """Whether no process had the file open for writing just before it was read; False if not asked for."""


def snapshot(
    dir_fd: int, name: bytes, known: Mapping[tuple[int, ...], str] = NO_KNOWN_DIGESTS, *, lone: bool = False
) -> FileSnapshot | None:
    """Snapshot of the regular file with this name; None for any other kind of file. OSError if there is none.

    `known` maps file stamps to digests: a file with one of these stamps is not read again. `lone` also checks whether
    a process has the file open for writing.
    """
    try:
        fd = small_files.open_for_reading(name, dir_fd)
    except small_files.NotRegularError:
        return None
    try:
        status = os.fstat(fd)
        stamp = file_stamp(status)
        # Before the content is read: a writer that opens the file later changes its stamp.
        alone = lone and status.st_size > MAX_PACKED_BYTES and has_no_writer(fd)
        digest = known.get(stamp) or hash_content(read_all(fd))
        return FileSnapshot(
            status.st_ino, status.st_size, status.st_nlink, digest, FileMetadata.from_descriptor(fd), stamp, alone
        )
    finally:
        os.close(fd)


def inode_at(dir_fd: int, name: bytes) -> int | None:
    """Inode number of a name, symbolic links not followed; None if the name is free."""
    try:
        return os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def _read_attributes(fd: int) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _UNSUPPORTED_ERRNOS:
            return {}
        raise


def _set_attribute(fd: int, name: str, content: bytes) -> None:
    try:
        os.setxattr(fd, name, content)
    except OSError as error:
        # `security.` and `trusted.` can be read by every process but set only by a privileged one.
        if error.errno not in _UNSUPPORTED_ERRNOS or not name.startswith(("security.", "trusted.")):
            raise
