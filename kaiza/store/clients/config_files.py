"""A configuration file on disk: read without following a link, and replaced whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from kaiza.store.clients.errors import ConfigError
from kaiza.store.disk import state_dir

MAX_BYTES = 4 * 1024 * 1024
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read(base: Path, parts: tuple[str, ...]) -> bytes | None:
    """What the file holds, None where there is none. ConfigFault where it is no plain file, or a link leads to it."""
    for place in _path_prefixes(base, parts):
        if place.is_symlink():
            raise ConfigError(
                "A link stands here, and Kaiza changes nothing through a link. Put a real one in its place"
            )
    path = base.joinpath(*parts)
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise ConfigError("A file stands where a directory is needed") from error
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError("This is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError("The file is too large for a configuration")
    return content


def require_writable(base: Path, parts: tuple[str, ...]) -> None:
    """ConfigFault where somebody has made the file read-only, or the directory it would be in."""
    path = base.joinpath(*parts)
    if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
        raise ConfigError("The file is read-only. Make it writable if it is meant to change")
    there = next(place for place in path.parents if place.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError("Its directory is not writable for you")


def missing_directories(base: Path, parts: tuple[str, ...]) -> list[Path]:
    """The directories on the way that are not there yet, the outer ones first."""
    return [place for place in list(_path_prefixes(base, parts))[:-1] if not place.exists()]


def replace(path: Path, before: bytes | None, after: bytes | None) -> None:
    """The file has the new content when this returns, whole, and None is no file; OSError or ConfigFault otherwise.

    Where it is not as it was before any more, nothing is written.
    """
    if after is None:
        _require_content(path, before)
        path.unlink()
    else:
        beside = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            _write_file(beside, after, path.lstat() if before is not None else None)
            _require_content(path, before)
            if before is None:
                os.link(beside, path, follow_symlinks=False)
            else:
                beside.replace(path)
        finally:
            beside.unlink(missing_ok=True)
    state_dir.sync_directory(path.parent)


def _path_prefixes(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    for number in range(1, len(parts) + 1):
        yield base.joinpath(*parts[:number])


def _require_content(path: Path, before: bytes | None) -> None:
    if read(path.parent, (path.name,)) != before:
        raise ConfigError("The file was changed a moment ago. Look at it and begin again")


def _write_file(path: Path, content: bytes, like: os.stat_result | None) -> None:
    descriptor = os.open(path, _CREATE_FLAGS, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        if like is not None:
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
            if os.geteuid() == 0:
                os.fchown(descriptor, like.st_uid, like.st_gid)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
