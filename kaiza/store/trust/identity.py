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
from typing import Any

from kaiza.store.audit import log_file
from kaiza.store.disk import kaiza_dir, lock_timeouts, small_files
from kaiza.store.disk.kaiza_dir import KaizaDir
from kaiza.store.disk.state_dir import StateFile

RECORD = StateFile("workspace.json")
_LOCK_NAME = "identity.lock"
_ID_NAME = "id"
_ID_BYTES = 16
_ID_PATTERN = re.compile(rb"[0-9a-f]{32}\n?")


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
        return RECORD.load(state_path, _parse)
    except ValueError:
        return KnownWorkspace(None)


def write_known(state_path: Path, known: KnownWorkspace) -> None:
    """Replace `workspace.json`, durable when this returns."""
    members = {"id": known.workspace_id, "root": known.root, "created": known.created, "adopted": known.adopted_seq}
    RECORD.replace(state_path, members, durable=True)


def read_known_id(state_path: Path) -> str | None:
    """The id of that workspace; None if it has none. OSError if it cannot be read."""
    known = read_known(state_path)
    return known.workspace_id if known else None


def new_id() -> str:
    """A random id."""
    return os.urandom(_ID_BYTES).hex()


def read_local_id(root: str) -> str | None:
    """The id in the workspace; None if there is none, empty if something else has its name."""
    try:
        home = small_files.open_directory(os.path.join(root, os.fsdecode(kaiza_dir.NAME)))  # noqa: PTH118  a root may hold any bytes
    except OSError:  # no directory, or a link: what it leads to is not the workspace's
        return None
    try:
        content = small_files.read(_ID_NAME, 2 * _ID_BYTES + 1, home)
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    finally:
        os.close(home)
    return content.strip().decode() if _ID_PATTERN.fullmatch(content) else ""


def local_path(root: str) -> str:
    """The path of the id in the workspace."""
    return os.path.join(root, os.fsdecode(kaiza_dir.NAME), _ID_NAME)  # noqa: PTH118  a root may hold any bytes


def write_local_id(root: str, workspace_id: str) -> None:
    """Write `.kaiza/id`, durable when this returns. A valid id is never replaced. OSError if it cannot be written."""
    if read_local_id(root):
        return
    root_fd = small_files.open_directory(root)
    try:
        with closing(KaizaDir(root_fd)) as directory:
            small_files.replace(_ID_NAME, workspace_id.encode() + b"\n", directory.open_home(), durable=True)
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
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if os.listdir(entry.path):  # noqa: PTH208  only whether there are any
                    return False
            # A temporary file of the id is left by a crash while the workspace was bound.
            elif entry.name != ".gitignore" and not entry.name.startswith(f"{_ID_NAME}."):
                return False
    return True


@contextmanager
def lock_identity(state_path: Path) -> Iterator[None]:
    """Hold the lock under which the identity is decided and written; two processes then agree on one.

    AUDIT_LOG_FAILED if the state directory cannot be used.
    """
    try:
        state_path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        state_path.mkdir(mode=0o700, exist_ok=True)
        lock = small_files.open_lock(state_path / _LOCK_NAME)
    except OSError as refused:
        sentence = "Kaiza's state directory is not usable. Check its permissions, then try again."
        raise log_file.log_error(refused, sentence) from refused
    try:
        lock.acquire(lock_timeouts.IDENTITY)
        yield
    finally:
        lock.close()


def _parse(document: dict[str, Any]) -> KnownWorkspace:
    known = KnownWorkspace(document["id"], document["root"], document["created"], document["adopted"] or 0)
    if type(known.adopted_seq) is not int:
        raise TypeError(known.adopted_seq)
    return known
