"""What belongs to a file beside its bytes: mode, owner, extended attributes; taken from one, given to another."""

import errno
import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import index
from typing import Any

from kaiza.store.byte_io import READ_NOFOLLOW, SMALL, has_no_writer, read_all, stamp_of

_NO_ATTRIBUTES = {errno.ENOTSUP, errno.ENOSYS, errno.EPERM, errno.EACCES}
NOTHING: Mapping[tuple[int, ...], str] = {}


@dataclass(frozen=True, slots=True)
class Facts:
    """What a file has beside its bytes."""

    mode: int
    uid: int
    gid: int
    attributes: Mapping[str, bytes] = field(default_factory=dict)

    @classmethod
    def of(cls, fd: int) -> "Facts":
        """Take them from an open file."""
        found = os.fstat(fd)
        return cls(stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, _attributes(fd))

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Facts":
        """Take them from a journal. TypeError, ValueError where they are none."""
        attributes = {str(name): bytes.fromhex(value) for name, value in told["attributes"].items()}
        mode, uid, gid = (index(told[name]) for name in ("mode", "uid", "gid"))
        return cls(mode, uid, gid, attributes)

    def as_json(self) -> Mapping[str, Any]:
        """Write them for a journal."""
        attributes = {name: value.hex() for name, value in self.attributes.items()}
        return {"mode": self.mode, "uid": self.uid, "gid": self.gid, "attributes": attributes}

    def give(self, fd: int, mode: int | None = None) -> None:
        """Give them to another file; the mode last, because a new owner takes bits away."""
        found = os.fstat(fd)
        if (found.st_uid, found.st_gid) != (self.uid, self.gid):
            os.fchown(fd, self.uid, self.gid)
        for name, value in self.attributes.items():
            _give_attribute(fd, name, value)
        os.fchmod(fd, self.mode if mode is None else mode)


@dataclass(frozen=True, slots=True)
class Seen:
    """A regular file as it was found: its identity, its content's hash, its facts."""

    inode: int
    size: int
    links: int
    digest: str
    facts: Facts
    stamp: tuple[int, ...] = ()
    alone: bool = False
    """Whether it was asked for, and nobody had the file open for writing just before it was read."""


def look(
    dir_fd: int, name: bytes, known: Mapping[tuple[int, ...], str] = NOTHING, *, lone: bool = False
) -> Seen | None:
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
        stamp = stamp_of(found)
        alone = lone and found.st_size > SMALL and has_no_writer(fd)
        digest = known.get(stamp) or digest_of(fd)
        return Seen(found.st_ino, found.st_size, found.st_nlink, digest, Facts.of(fd), stamp, alone)
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


def _attributes(fd: int) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(fd, name) for name in os.listxattr(fd)}
    except OSError as error:
        if error.errno in _NO_ATTRIBUTES:
            return {}
        raise


def _give_attribute(fd: int, name: str, value: bytes) -> None:
    try:
        os.setxattr(fd, name, value)
    except OSError as error:
        if error.errno not in _NO_ATTRIBUTES or not name.startswith(("security.", "trusted.")):
            raise
