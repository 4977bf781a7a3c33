"""The result of one check of `kaiza doctor`, and the checks whose results are errors of the disk."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass

from kaiza.domain import errors
from kaiza.queries.workspaces import Progress
from kaiza.store.disk.disk_reserve import FULL_DISK_ERRNOS

Watch = Callable[[str], AbstractContextManager[Progress]]
"""Shows the progress of long work under a label."""
RETRY = "Correct that, then run `kaiza doctor` again."
OK, WARNING, PROBLEM, UNKNOWN = "ok", "warning", "problem", "unknown"


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """What a check found, and the next step unless all is well."""

    name: str
    verdict: str
    message: str
    todo: str | None = None

    def as_json(self) -> dict[str, str]:
        """The check for `--json`."""
        members = {"check": self.name, "verdict": self.verdict, "message": self.message}
        return members | ({"todo": self.todo} if self.todo else {})


def ok(name: str, message: str) -> DoctorCheck:
    """As it should be."""
    return DoctorCheck(name, OK, message)


def warning(name: str, message: str, todo: str) -> DoctorCheck:
    """Sessions work, but with a limitation or a risk."""
    return DoctorCheck(name, WARNING, message, todo)


def problem(name: str, message: str, todo: str) -> DoctorCheck:
    """A session would fail, or would not keep its guarantees."""
    return DoctorCheck(name, PROBLEM, message, todo)


def unknown(name: str, message: str, todo: str) -> DoctorCheck:
    """The check could not be made."""
    return DoctorCheck(name, UNKNOWN, message, todo)


def errors_as_checks(name: str, checks: Iterator[DoctorCheck]) -> Iterator[DoctorCheck]:
    """The checks; an error of the disk becomes a result instead of ending the command: unknown, but for a full disk."""
    try:
        yield from checks
    except OSError as error:
        if error.errno in FULL_DISK_ERRNOS:
            todo = "Free some space. Until then calls are refused, because they cannot be recorded."
            yield problem(name, "the disk is full", todo)
            return
        yield unknown(name, f"could not be determined: {error.strerror}", RETRY)
    except errors.SystemError as error:
        yield unknown(name, f"could not be determined: {error.human_message}", RETRY)
