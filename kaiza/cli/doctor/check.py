"""The result of one check of `kaiza doctor`."""

from dataclasses import dataclass

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
