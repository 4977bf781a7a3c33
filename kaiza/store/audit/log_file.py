"""The log as a file: opened without following links, locked, read, and appended to whole or not at all."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kaiza.domain import errors
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_NAME, LOG_PATH
from kaiza.domain.plain_values import describe_exception
from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import read_range
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS
from kaiza.store.disk.file_lock import FileLock

_GITIGNORE_CONTENT = b"*\n!.gitignore\n"
# O_APPEND: each record goes to the end of the file, wherever another process has moved that.
# O_NOFOLLOW: a symbolic link, perhaps from a clone, must not lead the records to another file.
# O_NONBLOCK: a FIFO in place of the log fails the check for a regular file instead of blocking `open` forever.
_APPEND_FLAGS = os.O_RDWR | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def path_of(root: str) -> Path:
    """Path of a workspace's log."""
    return Path(root) / LOG_PATH


def log_error(problem: OSError | None = None, sentence: str | None = None, **cause: object) -> errors.SystemError:
    """AUDIT_LOG_FAILED with the system's error as its cause."""
    if problem is not None and problem.errno in FULL_DISK_ERRNOS:
        sentence = "The audit log could not be written: the disk is full. Free some space, then try again."
    return errors.SystemError.tool_failure(
        "AUDIT_LOG_FAILED",
        human_message=sentence
        or "The audit log could not be written. Check the disk that holds audit/, then try again.",
        cause={**(describe_exception(problem) if problem else {}), **cause} or None,
    )


class LogFile:
    """Open log file and the lock on it.

    Closed with its last reference: a background sync may need the descriptor after the log was replaced.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.lock = FileLock(descriptor)
        status = os.fstat(descriptor)
        self._identity = status.st_ino, status.st_dev

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, which also releases the lock."""
        self.lock.close()

    def size_if_current(self, path: bytes) -> int | None:
        """Size of the log; None if the path no longer names this file. AUDIT_LOG_FAILED if it is read-only."""
        try:
            status = os.stat(path, follow_symlinks=False)  # noqa: PTH116  before every append; Path.stat takes three times as long
        except (FileNotFoundError, NotADirectoryError):
            return None
        # Replaced by an acceptance, a restore or a tool like git: a record appended here would be lost.
        if (status.st_ino, status.st_dev) != self._identity:
            return None
        # The open descriptor could still write, and root always could; but someone made it read-only on purpose.
        if status.st_mode & 0o222 == 0:
            raise log_error(sentence=f"The audit log is read-only. Make {LOG_PATH} writable again.")
        return status.st_size

    def stat(self) -> os.stat_result:
        """Status of the open file."""
        return os.fstat(self.descriptor)

    def size(self) -> int:
        """Size of the open file."""
        return os.lseek(self.descriptor, 0, os.SEEK_END)

    def read(self, start: int, end: int) -> bytes:
        """Read the bytes from `start` to `end`; fewer if the file ends before."""
        return read_range(self.descriptor, start, end)

    def append(self, line: bytes, size: int) -> None:
        """Append a line with one `write`, or leave the file at `size` bytes. The caller holds the lock."""
        try:
            count = os.write(self.descriptor, line)
        except OSError as refused:
            self._undo_partial_write(size)
            raise log_error(refused) from refused
        # A full disk or a file size limit cuts a write short without an error. Half a line must not stay: the next
        # record would be glued to it.
        if count != len(line):
            self._undo_partial_write(size)
            raise log_error(
                sentence="Only part of a record could be written. Free some disk space, then try again.", written=count
            )

    def truncate(self, size: int) -> None:
        """Truncate the log. The caller holds the lock."""
        os.ftruncate(self.descriptor, size)

    def _undo_partial_write(self, size: int) -> None:
        try:
            self.truncate(size)
        except OSError as refused:
            raise log_error(refused, step="cut_back") from refused


@contextmanager
def open_audit_directory(root: str) -> Iterator[int]:
    """Descriptor of `audit/`, links not followed. AUDIT_LOG_FAILED if it cannot be opened."""
    try:
        descriptor = small_files.open_directory(Path(root, LOG_DIRECTORY))
    except OSError as refused:
        sentence = "This workspace has no audit/ directory for its log. Run 'kaiza init' there."
        raise log_error(refused, sentence) from refused
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def create_directory(root: str) -> None:
    """Create `audit/`, ignored by git as `kaiza init` does it. AUDIT_LOG_FAILED if it cannot be created."""
    try:
        with suppress(FileExistsError):  # another process was faster
            Path(root, LOG_DIRECTORY).mkdir()
            Path(root, LOG_DIRECTORY, ".gitignore").write_bytes(_GITIGNORE_CONTENT)
    except OSError as refused:
        sentence = "There is no audit/ directory, and it could not be created. Run 'kaiza init' in the workspace."
        raise log_error(refused, sentence) from refused


class AuditDirectory:
    """Detects that `audit/` or the workspace was replaced while a server runs.

    Without this a replaced `audit/` would start a second, empty log, and the first would never show what followed.
    """

    def __init__(self, root: str) -> None:
        self._root = root
        self._path = f"{root}/{LOG_DIRECTORY}"
        self._descriptor = -1
        # Taken now, because changes go to the directory that was open at the start, whatever has its name later.
        self._root_status: os.stat_result | None = None
        with suppress(OSError):
            self._root_status = os.stat(root)  # noqa: PTH116  as below
        self._status: os.stat_result | None = None

    @property
    def is_open(self) -> bool:
        """Whether `keep_open` has been called."""
        return self._status is not None

    def keep_open(self) -> None:
        """Open the directory if it is not open yet. AUDIT_LOG_FAILED if it is missing or a link."""
        if self._status is not None:
            return
        with open_audit_directory(self._root) as directory:
            self._status = os.fstat(directory)
            # While it is open its inode number cannot be reused, so comparing inode numbers is enough.
            self._descriptor = os.dup(directory)

    def detect_replacement(self) -> str | None:
        """`root_replaced`; once `audit/` is open also `missing` or `replaced`; None if neither has changed."""
        if self._root_status is not None and not _is_same_file(self._root_status, self._root):
            return "root_replaced"
        if self._status is None or _is_same_file(self._status, self._path, follow_symlinks=False):
            return None
        return "replaced" if os.path.lexists(self._path) else "missing"

    def close(self) -> None:
        """Close the directory."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._status = -1, None


def _is_same_file(known: os.stat_result, path: str, *, follow_symlinks: bool = True) -> bool:
    """Whether a path still names a known file. OSError, which is no evidence of damage, if that cannot be read now."""
    try:
        status = os.stat(path, follow_symlinks=follow_symlinks)  # noqa: PTH116  at each call; Path.stat takes three times as long
    except (FileNotFoundError, NotADirectoryError):
        return False
    return (status.st_ino, status.st_dev) == (known.st_ino, known.st_dev)


def is_absent(root: str) -> bool:
    """Whether nothing has the log's name, not even a broken link. AUDIT_LOG_FAILED if there is no `audit/`."""
    if os.path.lexists(path_of(root)):
        return False
    with open_audit_directory(root):
        return True


def is_current(root: str, descriptor: int) -> bool:
    """Whether this open file is the one that the log's path names."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path_of(root)), os.fstat(descriptor))
    return False


def open_for_append(root: str, *, create: bool = False) -> LogFile | None:
    """Open the log for appending; None if there is none and `create` is not given."""
    with open_audit_directory(root) as directory:
        descriptor = _open_descriptor(directory, _APPEND_FLAGS | os.O_CREAT if create else _APPEND_FLAGS)
        if descriptor is None:
            return None
        file = LogFile(_require_regular_file(descriptor))
        # The sync of a record does not cover the log's name. An empty log may just have been created, by this process
        # or by one that crashed before it came here.
        if file.size() == 0:
            try:
                os.fsync(directory)
            except OSError as refused:
                raise log_error(refused) from refused
    return file


def open_for_reading(root: str) -> int | None:
    """Open the log read-only; None if there is none."""
    with open_audit_directory(root) as directory:
        descriptor = _open_descriptor(directory, _READ_FLAGS)
    return None if descriptor is None else _require_regular_file(descriptor)


def _open_descriptor(directory: int, flags: int) -> int | None:
    try:
        return os.open(LOG_NAME, flags, 0o600, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as refused:
        raise log_error(refused) from refused


def _require_regular_file(descriptor: int) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise log_error(sentence=f"{LOG_PATH} is not a regular file. Move it away, then try again.")
    return descriptor
