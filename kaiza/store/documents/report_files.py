"""Reports in `docs/reports/`: each a new file under a name that Kaiza gave it."""

import os
from contextlib import suppress

from kaiza.domain import errors
from kaiza.store.files.confined_root import ConfinedRoot

DIRECTORY_PARTS = ("docs", "reports")
_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class ReportFiles:
    """The directory is made where it is missing, and never reached through a link."""

    def __init__(self, workspace: ConfinedRoot) -> None:
        self._files = workspace

    def create(self, name: str, content: bytes) -> None:
        """The report is on disk when this returns; FILE_WRITE_FAILED otherwise."""
        try:
            directory = self._open_directory()
            try:
                with os.fdopen(os.open(name, _CREATE_FLAGS, 0o644, dir_fd=directory), "wb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise errors.SystemError.tool_failure(
                "FILE_WRITE_FAILED",
                human_message="The report could not be written. Ask a person whether docs/reports/ is writable.",
                cause=error,
            ) from error

    def remove_created(self, name: str) -> None:
        """Remove a report that was written a moment ago."""
        directory = self._open_directory()
        try:
            os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)

    def _open_directory(self) -> int:
        """Step by step from the root, no link among the steps."""
        here = os.dup(self._files.fd)
        for name in DIRECTORY_PARTS:
            above = here
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=above)
                here = os.open(name, _DIRECTORY_FLAGS, dir_fd=above)
            finally:
                os.close(above)
        return here
