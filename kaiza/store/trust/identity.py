"""Identity of a workspace: a random id in `.kaiza/id`, and the same id in the state directory's `workspace.json`.

Writing is left to callers that hold `lock_identity`.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from kaiza.store.audit import log_file
from kaiza.store.disk import kaiza_dir, lock_timeouts, state_dir
from kaiza.store.disk.byte_io import READ_NOFOLLOW, write_all
from kaiza.store.disk.file_lock import FileLock
from kaiza.store.disk.kaiza_dir import KaizaDir

_FORMAT = 1
RECORD_NAME = "workspace.json"
_LOCK_NAME = "identity.lock"
_ID_NAME = "id"
_ID_BYTES = 16
_ID_PATTERN = re.compile(rb"[0-9a-f]{32}\n?")
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class KnownWorkspace:
    """What this machine knows of the workspace at a path. Without an id it was not adopted on this machine."""

    workspace_id: str | None
    root: str = ""
    created: str = ""
    adopted_seq: int = 0


def read_known(state_path: Path) -> KnownWorkspace | None:
    """The workspace that the state directory belongs to; None if it never saw one. OSError if it cannot be read."""
    try:
        content = orjson.loads(state_dir.read_file(state_path / RECORD_NAME))
        known = KnownWorkspace(content["id"], content["root"], content["created"], content["adopted"] or 0)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        return KnownWorkspace(None)
    return known if content["format"] == _FORMAT and type(known.adopted_seq) is int else KnownWorkspace(None)


def write_known(state_path: Path, known: KnownWorkspace) -> None:
    """Replace `workspace.json`, durable when this returns."""
    content = {"id": known.workspace_id, "root": known.root, "created": known.created, "adopted": known.adopted_seq}
    state_dir.replace_file(state_path / RECORD_NAME, orjson.dumps({"format": _FORMAT, **content}))
    state_dir.sync_directory(state_path)


def new_id() -> str:
    """A random id."""
    return os.urandom(_ID_BYTES).hex()


def read_local_id(root: str) -> str | None:
    """The id in the workspace; None if there is none, empty if something else has its name."""
    try:
        home = os.open(os.path.join(root, os.fsdecode(kaiza_dir.NAME)), _DIRECTORY_FLAGS)  # noqa: PTH118  a root may hold any bytes
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:  # a link: what it leads to is not the workspace's
        return None
    try:
        descriptor = os.open(_ID_NAME, READ_NOFOLLOW, dir_fd=home)
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    finally:
        os.close(home)
    try:
        content = os.read(descriptor, 64) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)
    return content.strip().decode() if _ID_PATTERN.fullmatch(content) else ""


def local_path(root: str) -> str:
    """The path of the id in the workspace."""
    return os.path.join(root, os.fsdecode(kaiza_dir.NAME), _ID_NAME)  # noqa: PTH118  a root may hold any bytes


def write_local_id(root: str, workspace_id: str) -> None:
    """Write `.kaiza/id`, durable when this returns. A valid id is never replaced. OSError if it cannot be written."""
    if read_local_id(root):
        return
    root_fd = os.open(root, _DIRECTORY_FLAGS)
    try:
        with closing(KaizaDir(root_fd)) as directory:
            home = directory.open_home()
            temp = f"{_ID_NAME}.{os.getpid()}"
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(temp, flags, 0o600, dir_fd=home)
            try:
                write_all(descriptor, [workspace_id.encode() + b"\n"])
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(temp, _ID_NAME, src_dir_fd=home, dst_dir_fd=home)
            os.fsync(home)
    finally:
        os.close(root_fd)


def is_blank(root: str) -> bool:
    """Whether the directory holds no record, no journal and nothing else that Kaiza writes with a change."""
    with suppress(FileNotFoundError, NotADirectoryError):
        status = os.lstat(log_file.path_of(root))
        if not stat.S_ISREG(status.st_mode) or status.st_size:
            return False
    home = os.path.join(root, os.fsdecode(kaiza_dir.NAME))  # noqa: PTH118  as above
    if not os.path.lexists(home):
        return True
    if not stat.S_ISDIR(os.lstat(home).st_mode):
        return False
    with os.scandir(home) as entries:
        return all(map(_is_blank_entry, entries))


def _is_blank_entry(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir(follow_symlinks=False):
        with os.scandir(entry.path) as inner:
            return next(inner, None) is None
    # A temporary file of the id is left by a crash while the workspace was bound.
    return entry.name == ".gitignore" or entry.name.startswith(f"{_ID_NAME}.")


@contextmanager
def lock_identity(state_path: Path) -> Iterator[None]:
    """Hold the lock under which the identity is decided and written; two processes then agree on one.

    AUDIT_LOG_FAILED if the state directory cannot be used.
    """
    lock = FileLock(_open_lock_file(state_path))
    try:
        lock.acquire(lock_timeouts.IDENTITY)
        yield
    finally:
        lock.close()


def _open_lock_file(state_path: Path) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        state_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        state_path.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(state_path / _LOCK_NAME, flags, 0o600)
        state_dir.give_to_owner(state_path, descriptor)
    except OSError as refused:
        sentence = "Kaiza's state directory is not usable. Check its permissions, then try again."
        raise log_file.log_error(refused, sentence) from refused
    return descriptor
