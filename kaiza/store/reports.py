"""Reports in `docs/reports/`: each a new file under a name that Kaiza gave it."""

import os
from contextlib import suppress

from kaiza.domain import errors
from kaiza.store.workspace import Workspace

WAY = ("docs", "reports")
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Reports:
    """The directory is made where it is missing, and never reached through a link."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def create(self, name: str, content: bytes) -> None:
        """The report is on disk when this returns; FILE_WRITE_FAILED otherwise."""
        try:
            directory = self._open()
            try:
                with os.fdopen(os.open(name, _NEW, 0o644, dir_fd=directory), "wb") as file:
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

    def take_back(self, name: str) -> None:
        """Remove a report that was written a moment ago."""
        directory = self._open()
        try:
            os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)

    def _open(self) -> int:
        """Step by step from the root, no link among the steps."""
        here = os.dup(self._workspace.fd)
        for name in WAY:
            above = here
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=above)
                here = os.open(name, _DIRECTORY, dir_fd=above)
            finally:
                os.close(above)
        return here
