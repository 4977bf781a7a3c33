"""State directory of a workspace: outside of it, so that an agent's file tools cannot reach what is kept there."""

import errno
import os
import stat
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from kaiza.store.disk.byte_io import NONBLOCKING_FLAGS, READ_NOFOLLOW, read_range, write_all

_ID_LENGTH = 16
MAX_FILE_BYTES = 64 << 20
"""The largest file of a state directory that is read, except the index of the log."""
TEMP_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | NONBLOCKING_FLAGS
"""Flags to write a temporary file: opening a link or a FIFO that has its name fails at once."""


def path_of(root: str, *, create: bool = False) -> Path:
    """`$XDG_STATE_HOME/kaiza/<id>` of this workspace. `create` makes it (0700); OSError if that fails."""
    real = os.fsencode(os.path.realpath(root))
    path = shared_path() / sha256(real).hexdigest()[:_ID_LENGTH]
    if create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def shared_path() -> Path:
    """`$XDG_STATE_HOME/kaiza`, which holds the state directories of all workspaces."""
    return _state_home() / "kaiza"


def _state_home() -> Path:
    # A relative path is ignored, as the XDG specification requires; an agent's working directory would decide on it.
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    return configured if configured.is_absolute() else Path("~/.local/state").expanduser()


def alternative_locations(usual: str) -> Iterator[tuple[str, str]]:
    """Other directories that could hold the state, or the configuration: the real path, and its spelling in a shell.

    The best is first: `usual`, a directory below the home directory.
    """
    yield os.path.realpath(Path("~", usual).expanduser()), f'"$HOME/{usual}"'
    for path in ("/var/lib/kaiza", f"/var/tmp/kaiza-{os.geteuid()}"):  # noqa: S108  survives restarts; what Kaiza makes in there is 0700
        if os.access(os.path.dirname(path), os.W_OK):  # noqa: PTH120
            yield os.path.realpath(path), path


def read_file(path: str | os.PathLike[str], max_bytes: int = MAX_FILE_BYTES) -> bytes:
    """Read a regular file whole. OSError for a link, a FIFO, a device or a larger file, without waiting.

    Any program of the user can put something else in the place of a state file.
    """
    descriptor = os.open(path, READ_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "This is not a regular file", os.fspath(path))
        if status.st_size > max_bytes:
            raise OSError(errno.EFBIG, "This file is too large", os.fspath(path))
        return read_range(descriptor, 0, status.st_size)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Write a file so that readers, also after a crash, see the old content or the new one, never a part."""
    temp = path.with_name(f"{path.name}.{os.getpid()}")
    descriptor = os.open(temp, TEMP_FLAGS, 0o600)
    try:
        # Before the rename: otherwise a crash could leave the name on an empty file.
        _write_and_sync(descriptor, content)
    finally:
        os.close(descriptor)
    temp.replace(path)


def write_new(path: Path, content: bytes) -> None:
    """Create a file that only its owner can read, and fsync it. FileExistsError if the name is taken."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        give_to_owner(path.parent, descriptor)
        _write_and_sync(descriptor, content)
    finally:
        os.close(descriptor)


def _write_and_sync(descriptor: int, content: bytes) -> None:
    write_all(descriptor, [content])
    os.fsync(descriptor)


def sync_directory(path: Path) -> None:
    """Fsync a directory, so that names created, renamed or removed in it survive a crash."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def give_to_owner(directory: Path, descriptor: int) -> None:
    """Give a file that root created to the directory's owner, whose own processes could not open it otherwise."""
    if os.geteuid() == 0:
        owner = directory.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
