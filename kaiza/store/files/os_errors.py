"""Maps OSErrors about a path to error codes and sentences."""

import errno

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS

_FULL_DISK = "The disk is full. Free some space, then try again."
_SENTENCES = {
    "OUTSIDE_WORKSPACE": "A link in the path leads outside the workspace. Use a path inside it.",
    "INVALID_PATH": "A name in the path is too long, or its links form a loop. Use the path of the file itself.",
    "FILE_NOT_FOUND": "There is no such file. List the directory to see what exists.",
    "PATH_NOT_FOUND": "There is no such directory. List its parent to see what exists.",
    "FILE_READ_FAILED": "The file could not be read. Check its permissions, then try again.",
    "FILE_WRITE_FAILED": "The file could not be changed and is as before. Check space and permissions, then try again.",
}


def to_system_error(
    error: OSError, path: RelPath, *, missing: str, otherwise: str = "FILE_READ_FAILED"
) -> errors.SystemError:
    """The error for an OSError; its code is `missing` for a path that does not exist, `otherwise` by default."""
    code = _error_code(error.errno, missing, otherwise)
    cause: dict[str, object] = {"path": str(path)}
    if code == otherwise:
        cause["errno"] = errno.errorcode.get(error.errno or 0, "UNKNOWN")
    sentence = _FULL_DISK if error.errno in FULL_DISK_ERRNOS else _SENTENCES[code]
    return errors.SystemError.from_unknown(error, error_code=code, human_message=sentence, cause=cause)


def not_regular_file_error(path: RelPath, kind: str, code: str = "FILE_READ_FAILED") -> errors.SystemError:
    """The error for a path that is not a regular file."""
    return errors.SystemError.tool_failure(
        code,
        human_message="This is not a regular file. Choose a regular file.",
        cause={"path": str(path), "type": kind},
    )


def _error_code(number: int | None, missing: str, otherwise: str) -> str:
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return missing
    if number == errno.EXDEV:  # how both resolvers report a path that leaves the root
        return "OUTSIDE_WORKSPACE"
    if number in {errno.ELOOP, errno.ENAMETOOLONG}:
        return "INVALID_PATH"
    return otherwise
