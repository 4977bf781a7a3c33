"""What the operating system says about a path, once, as one of our codes."""

import errno

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath

_SENTENCES = {
    "OUTSIDE_WORKSPACE": "A link on the path leads out of the workspace. Only files inside of it can be reached.",
    "INVALID_PATH": "The path has too long a name or links that lead in a circle. Name the file itself.",
    "FILE_NOT_FOUND": "There is no such file. List the directory to see what there is.",
    "PATH_NOT_FOUND": "There is no such directory. List the one above to see what there is.",
    "FILE_READ_FAILED": "The file could not be read. Check its permissions, then try again.",
    "FILE_WRITE_FAILED": "The file could not be changed and is as before. Check space and permissions, then try again.",
}


def to_system_error(
    error: OSError, path: RelPath, *, missing: str, otherwise: str = "FILE_READ_FAILED"
) -> errors.SystemError:
    """Turn a system call's error into the code that says the same."""
    code = _error_code(error.errno, missing, otherwise)
    cause: dict[str, object] = {"path": str(path)}
    if code == otherwise:
        cause["errno"] = errno.errorcode.get(error.errno or 0, "UNKNOWN")
    return errors.SystemError.tool_failure(code, human_message=_SENTENCES[code], cause=cause)


def not_regular_file_error(path: RelPath, kind: str, code: str = "FILE_READ_FAILED") -> errors.SystemError:
    """Refuse what is no plain file before anything is asked of it."""
    return errors.SystemError.tool_failure(
        code,
        human_message="This is not a regular file. Choose a regular file.",
        cause={"path": str(path), "type": kind},
    )


def _error_code(number: int | None, missing: str, otherwise: str) -> str:
    if number in {errno.ENOENT, errno.ENOTDIR}:
        return missing
    if number == errno.EXDEV:
        return "OUTSIDE_WORKSPACE"
    if number in {errno.ELOOP, errno.ENAMETOOLONG}:
        return "INVALID_PATH"
    return otherwise
