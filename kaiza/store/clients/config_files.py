"""Reads configuration files without following links, and replaces them atomically."""

import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from kaiza.store.clients.errors import ConfigError
from kaiza.store.disk import state_dir

MAX_BYTES = 4 * 1024 * 1024
# O_NOFOLLOW: the file must not be swapped for a link after the check. O_NONBLOCK: opening a FIFO must not wait.
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def read(base: Path, parts: tuple[str, ...]) -> bytes | None:
    """Read a file below `base`; None if missing. ConfigError if it is not a regular file or behind a link."""
    for prefix in _path_prefixes(base, parts):
        # A cloned repository could place a link here that leads init to a file anywhere else.
        if prefix.is_symlink():
            raise ConfigError(
                f"{prefix.name} is a symbolic link, which Kaiza does not follow. Replace it with a real one"
            )
    path = base.joinpath(*parts)
    try:
        descriptor = os.open(path, _READ_FLAGS)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise ConfigError("A file exists where a directory is needed") from error
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ConfigError("This is not a regular file")
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise ConfigError("The file is too large for a configuration file")
    return content


def require_writable(base: Path, parts: tuple[str, ...]) -> None:
    """ConfigError if the file is read-only, or the directory that would hold it."""
    path = base.joinpath(*parts)
    # Replacing a file needs no write permission on it: ask, because read-only is how a user says no.
    if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
        raise ConfigError("The file is read-only. Make it writable to let Kaiza change it")
    existing = next(parent for parent in path.parents if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError("You have no permission to write to its directory")


def missing_directories(base: Path, parts: tuple[str, ...]) -> list[Path]:
    """Missing parent directories of the file, outermost first."""
    return [prefix for prefix in list(_path_prefixes(base, parts))[:-1] if not prefix.exists()]


def replace(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Atomically replace `before` by `after` and sync; None means no file. OSError or ConfigError if nothing changed.

    ConfigError if the file no longer has the content `before`.
    """
    if after is None:
        _require_content(path, before)
        path.unlink()
    else:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            _write_file(temporary, after, path.lstat() if before is not None else None)
            # Last moment before the rename: an edit by the user or the client since it was read is not lost.
            _require_content(path, before)
            if before is None:
                os.link(temporary, path, follow_symlinks=False)  # unlike rename, fails if the file has appeared
            else:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    state_dir.sync_directory(path.parent)


def _path_prefixes(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    for number in range(1, len(parts) + 1):
        yield base.joinpath(*parts[:number])


def _require_content(path: Path, before: bytes | None) -> None:
    if read(path.parent, (path.name,)) != before:
        raise ConfigError("The file was changed meanwhile. Check it and run the command again")


def _write_file(path: Path, content: bytes, original: os.stat_result | None) -> None:
    descriptor = os.open(path, _CREATE_FLAGS, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        if original is not None:
            os.fchmod(descriptor, stat.S_IMODE(original.st_mode))
            if os.geteuid() == 0:
                # Under sudo the file must stay the user's, or their client can no longer write it.
                os.fchown(descriptor, original.st_uid, original.st_gid)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
