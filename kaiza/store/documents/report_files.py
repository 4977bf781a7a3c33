"""Report files in `docs/reports/`, written by agents under names that Kaiza chooses."""

import os
from contextlib import suppress

from kaiza.domain import errors
from kaiza.store.disk import small_files
from kaiza.store.files.confined_root import ConfinedRoot

DIRECTORY_PARTS = ("docs", "reports")


class ReportFiles:
    """Writer of the reports of a workspace. Creates the directory if missing; links are not followed."""

    def __init__(self, root: ConfinedRoot) -> None:
        self._root = root

    def create(self, name: str, content: bytes) -> None:
        """Write and fsync a new report; FILE_WRITE_FAILED on any error."""
        try:
            directory = self._open_directory()
            try:
                small_files.write_new(name, content, directory, mode=0o644, durable=True)
                os.fsync(directory)
            finally:
                os.close(directory)
        except OSError as error:
            raise errors.SystemError.tool_failure(
                "FILE_WRITE_FAILED",
                human_message="The report could not be written. Ask a person to make docs/reports/ writable.",
                cause=error,
            ) from error

    def remove_created(self, name: str) -> None:
        """Remove a report that was just created."""
        directory = self._open_directory()
        try:
            os.unlink(name, dir_fd=directory)
        finally:
            os.close(directory)

    def _open_directory(self) -> int:
        descriptor = os.dup(self._root.fd)
        # One component at a time: O_NOFOLLOW applies only to the last one of a path.
        for name in DIRECTORY_PARTS:
            parent = descriptor
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o755, dir_fd=parent)
                descriptor = small_files.open_directory(name, parent)
            finally:
                os.close(parent)
        return descriptor
