"""The log as a file: opened without following a link, locked, read, and written whole or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kaiza.domain import errors
from kaiza.store.audit.line_reader import read_exactly
from kaiza.store.disk.file_lock import FileLock

DIRECTORY = "audit"
NAME = "audit-log.jsonl"
_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def path_of(root: str) -> Path:
    """Where a workspace keeps its log."""
    return Path(root) / DIRECTORY / NAME


def log_error(problem: OSError | None = None, sentence: str | None = None, **cause: object) -> errors.SystemError:
    """AUDIT_LOG_FAILED with what the system said."""
    return errors.SystemError.tool_failure(
        "AUDIT_LOG_FAILED",
        human_message=sentence or "The record could not be written. Check the disk that holds audit/, then try again.",
        cause={**(errors.describe_exception(problem) if problem else {}), **cause} or None,
    )


class LogFile:
    """One open description of the log and the lock on it; closed when nobody holds it any more."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.lock = FileLock(descriptor)
        known = os.fstat(descriptor)
        self._identity = known.st_ino, known.st_dev

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Let go of it, and with it of the lock."""
        self.lock.close()

    def size_if_current(self, path: bytes) -> int | None:
        """How long the log is now; None where the path no longer names it. AUDIT_LOG_FAILED where it is read-only."""
        try:
            found = os.stat(path, follow_symlinks=False)  # noqa: PTH116  before every append, and a third of the price
        except (FileNotFoundError, NotADirectoryError):
            return None
        if (found.st_ino, found.st_dev) != self._identity:
            return None
        if found.st_mode & 0o222 == 0:
            raise log_error(sentence="The record is read-only. Make audit/audit-log.jsonl writable again.")
        return found.st_size

    def stat(self) -> os.stat_result:
        """What the system knows of the log now."""
        return os.fstat(self.descriptor)

    def size(self) -> int:
        """How long the log is now."""
        return os.lseek(self.descriptor, 0, os.SEEK_END)

    def read(self, start: int, end: int) -> bytes:
        """These bytes; fewer where the file ends before."""
        return read_exactly(self.descriptor, start, end)

    def append(self, line: bytes, at: int) -> None:
        """The line is at the end of the file when this returns; otherwise the file is as it was. The lock is held."""
        try:
            count = os.write(self.descriptor, line)
        except OSError as refused:
            self._undo_partial_write(at)
            raise log_error(refused) from refused
        if count != len(line):
            self._undo_partial_write(at)
            raise log_error(sentence="The disk took only part of a record. Make room, then try again.", written=count)

    def truncate(self, at: int) -> None:
        """The file ends here when this returns. The lock is held."""
        os.ftruncate(self.descriptor, at)

    def _undo_partial_write(self, at: int) -> None:
        try:
            self.truncate(at)
        except OSError as refused:
            raise log_error(refused, step="cut_back") from refused


@contextmanager
def open_audit_directory(root: str) -> Iterator[int]:
    """A descriptor of `audit/`, which is no link. AUDIT_LOG_FAILED where it is not there."""
    how = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(Path(root, DIRECTORY), how)
    except OSError as refused:
        sentence = "This workspace has no audit/ directory for its record. Run 'kaiza init' there."
        raise log_error(refused, sentence) from refused
    try:
        yield descriptor
    finally:
        os.close(descriptor)


class AuditDirectory:
    """`audit/` of a workspace, held open from the first record on: a record is written there or nowhere.

    While it is held its inode number is given to no other directory, so that comparing the two is enough. The
    workspace itself is the one that was there when this was made: changes go to that one, whatever has its name.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._path = f"{root}/{DIRECTORY}"
        self._descriptor = -1
        self._root_stat = _stat_root(root)
        self._directory_stat: os.stat_result | None = None

    @property
    def is_open(self) -> bool:
        """Whether a record was looked for or written here."""
        return self._directory_stat is not None

    def keep_open(self) -> None:
        """Hold it open, where that was not done before. AUDIT_LOG_FAILED where it is not there, or is a link."""
        if self._directory_stat is not None:
            return
        with open_audit_directory(self._root) as directory:
            self._directory_stat = os.fstat(directory)
            self._descriptor = os.dup(directory)

    def detect_replacement(self) -> str | None:
        """What is no longer as it was: `root_replaced`, and once `audit/` is held `missing` or `replaced`; or None."""
        if self._root_stat is not None and not _is_same_file(self._root_stat, self._root):
            return "root_replaced"
        if self._directory_stat is None or _is_same_file(self._directory_stat, self._path, follow_symlinks=False):
            return None
        return "replaced" if os.path.lexists(self._path) else "missing"

    def close(self) -> None:
        """Let go of it."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._directory_stat = -1, None


def _stat_root(root: str) -> os.stat_result | None:
    """The workspace as it is now; None where there is none yet."""
    with suppress(OSError):
        return os.stat(root)  # noqa: PTH116  as below
    return None


def _is_same_file(known: os.stat_result, path: str, *, follow_symlinks: bool = True) -> bool:
    """Whether a name still leads to what it led to. OSError where the system cannot tell at the moment."""
    try:
        found = os.stat(path, follow_symlinks=follow_symlinks)  # noqa: PTH116  at each call, and a third of the price
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (found.st_ino, found.st_dev) == (known.st_ino, known.st_dev)


def is_absent(root: str) -> bool:
    """Whether nothing at all stands where the log belongs. AUDIT_LOG_FAILED where there is no `audit/`."""
    if os.path.lexists(path_of(root)):
        return False
    with open_audit_directory(root):
        return True


def is_current(root: str, descriptor: int) -> bool:
    """Whether this open file is the one that stands where the log belongs."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path_of(root)), os.fstat(descriptor))
    return False


def open_for_append(root: str, *, create: bool = False) -> LogFile | None:
    """The log, opened for appending; made first where asked for, else None where there is none."""
    with open_audit_directory(root) as directory:
        descriptor = _open_descriptor(directory, _APPEND_FLAGS | os.O_CREAT if create else _APPEND_FLAGS)
        if descriptor is None:
            return None
        file = LogFile(_require_regular_file(descriptor))
        if file.size() == 0:
            _sync_directory(directory)
    return file


def open_for_reading(root: str) -> int | None:
    """A descriptor of the log that can only read; None where there is no log."""
    with open_audit_directory(root) as directory:
        descriptor = _open_descriptor(directory, _READ_FLAGS)
    return None if descriptor is None else _require_regular_file(descriptor)


def _open_descriptor(directory: int, how: int) -> int | None:
    try:
        return os.open(NAME, how, 0o600, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as refused:
        raise log_error(refused) from refused


def _sync_directory(directory: int) -> None:
    """A log without a record may be one whose name is not durable yet."""
    try:
        os.fsync(directory)
    except OSError as refused:
        raise log_error(refused) from refused


def _require_regular_file(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise log_error(sentence="The record is not a regular file. Move away what stands at audit/audit-log.jsonl.")
    return descriptor
