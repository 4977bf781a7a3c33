"""One line of `kaiza doctor`: what was looked at, how it is, and what to do."""

from dataclasses import dataclass

OK, WARNING, PROBLEM, UNKNOWN = "ok", "warning", "problem", "unknown"


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """What was found; where it is not as it should be, the next step."""

    name: str
    verdict: str
    message: str
    todo: str | None = None

    def as_json(self) -> dict[str, str]:
        """The line for `--json`."""
        told = {"check": self.name, "verdict": self.verdict, "message": self.message}
        return told | ({"todo": self.todo} if self.todo else {})


def ok(name: str, message: str) -> DoctorCheck:
    """As it should be."""
    return DoctorCheck(name, OK, message)


def warning(name: str, message: str, todo: str) -> DoctorCheck:
    """It works, and a person should know."""
    return DoctorCheck(name, WARNING, message, todo)


def problem(name: str, message: str, todo: str) -> DoctorCheck:
    """A session would fail, or is not what it promises."""
    return DoctorCheck(name, PROBLEM, message, todo)


def unknown(name: str, message: str, todo: str) -> DoctorCheck:
    """It could not be told."""
    return DoctorCheck(name, UNKNOWN, message, todo)
