"""A repository's own files, looked at without starting git and without waiting for anybody."""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from kaiza.store.disk.small_files import NONBLOCKING_FLAGS

_MAX_POINTER = 4096
"""Bytes of a file that names another one: `.git` of a worktree, HEAD."""
_MAX_TEXT = 8 << 20
_MAX_MAPPED = 1 << 30
_FILES = {
    "HEAD": _MAX_POINTER,
    "commondir": _MAX_POINTER,
    "config": _MAX_TEXT,
    "config.worktree": _MAX_TEXT,
    "index": _MAX_MAPPED,
    "info/attributes": _MAX_TEXT,
    "info/exclude": _MAX_TEXT,
    "info/grafts": _MAX_TEXT,
    "info/sparse-checkout": _MAX_TEXT,
    "objects/info/alternates": _MAX_TEXT,
    "objects/info/commit-graph": _MAX_MAPPED,
    "packed-refs": _MAX_MAPPED,
    "shallow": _MAX_TEXT,
}
"""What git reads of a repository whatever it is asked, with the most bytes that are waited for."""
_WORK_TREE_FILES = (".gitattributes", ".gitignore", ".gitmodules")
_OPERATIONS = (
    "CHERRY_PICK_HEAD",
    "MERGE_HEAD",
    "REVERT_HEAD",
    "SQUASH_MSG",
    "rebase-apply",
    "rebase-merge",
    "sequencer",
)
"""What is there while git is changing files, or has left a part of that to a person."""
_OTHER_SYSTEMS = (".hg", ".svn", ".jj", ".bzr", ".pijul", ".fslckout", "_FOSSIL_", "_darcs", "CVS", ".sl")


def find_repository(start: str) -> str | None:
    """The closest directory with a `.git`; git itself might take a tree with HEAD and objects/ for a repository."""
    return next((str(each) for each in _upwards(start) if os.path.lexists(each / ".git")), None)


def is_under_other_system(start: str) -> bool:
    """Whether a directory or one above it belongs to a version control system that is not git."""
    return any(os.path.lexists(each / name) for each in _upwards(start) for name in _OTHER_SYSTEMS)


def is_readable_repository(start: str) -> bool:
    """Whether git can read the repository around a directory without waiting; also where there is none."""
    top = find_repository(start)
    if top is None:
        return True
    directories = _git_directories(top)
    if directories is None:
        return False
    files = [(f"{each}/{name}", limit) for each in directories for name, limit in _FILES.items()]
    files += [(f"{each}/{name}", _MAX_TEXT) for each in (top, start) for name in _WORK_TREE_FILES]
    return all(_is_plain(path, limit) for path, limit in files) and _is_head_plain(directories)


def is_in_operation(top: str) -> bool:
    """Whether a merge, rebase, cherry-pick or revert has not ended in a repository."""
    return _has_any(top, _OPERATIONS)


def is_index_locked(top: str) -> bool:
    """Whether git is writing the index of a repository, or waits for a person who writes a commit's message."""
    return _has_any(top, ("index.lock",))


def _has_any(top: str, names: Iterable[str]) -> bool:
    """Whether git's directory has one of these files; also if it cannot be found."""
    directories = _git_directories(top)
    return directories is None or any(os.path.lexists(f"{directories[0]}/{name}") for name in names)


def _upwards(start: str) -> tuple[Path, ...]:
    path = Path(os.path.realpath(start))
    return (path, *path.parents)


def _git_directories(top: str) -> tuple[str, ...] | None:
    """The repository's directory, and the one that it shares with other worktrees; None if they cannot be found."""
    directory = f"{top}/.git"
    try:
        if stat.S_ISREG(os.stat(directory).st_mode):  # noqa: PTH116  many of them, on the path of every question
            pointer = _read_pointer(directory)
            if not pointer.startswith("gitdir: "):
                return None
            directory = os.path.join(top, pointer.removeprefix("gitdir: "))  # noqa: PTH118  may be absolute
        if not stat.S_ISDIR(os.stat(directory).st_mode):  # noqa: PTH116  as above
            return None
        common = _read_pointer(f"{directory}/commondir")
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return None
    return (directory, os.path.join(directory, common)) if common else (directory,)  # noqa: PTH118  may be absolute


def _is_head_plain(directories: tuple[str, ...]) -> bool:
    """Whether the ref that HEAD names can be read without waiting."""
    try:
        head = _read_pointer(f"{directories[0]}/HEAD")
    except (OSError, ValueError):
        return False
    name = head.removeprefix("ref: ")
    return name == head or all(_is_plain(f"{each}/{name}", _MAX_POINTER) for each in directories)


def _is_plain(path: str, limit: int) -> bool:
    """Whether there is a regular file of no more than this size, or none."""
    try:
        status = os.stat(path)  # noqa: PTH116  as above
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (OSError, ValueError):
        return False  # a loop of links, or a name that no file can have
    return stat.S_ISREG(status.st_mode) and status.st_size <= limit


def _read_pointer(path: str) -> str:
    """The line in a small file; "" if there is no such file. OSError or ValueError for anything else in its place."""
    try:
        # Links are followed, as git does: HEAD of an old repository is one.
        fd = os.open(path, os.O_RDONLY | NONBLOCKING_FLAGS)
    except FileNotFoundError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError("not a regular file")
        content = os.read(fd, _MAX_POINTER + 1)
    finally:
        os.close(fd)
    if len(content) > _MAX_POINTER:
        raise ValueError("longer than a name can be")
    return os.fsdecode(content).strip()
