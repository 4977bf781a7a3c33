"""Files that may hold secrets, and Kaiza's own store, are not read."""

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.policy.case import Case


def check_readable(case: Case) -> errors.SystemError | None:
    """Refuse to read a protected path."""
    return read_refusal(case.hidden[0]) if case.hidden else None


def read_refusal(path: RelPath) -> errors.SystemError:
    """READ_PROTECTED for this path; also raised when a path resolves to a protected one as it is opened."""
    return errors.SystemError.invariant_violation(
        "READ_PROTECTED",
        error_code="POLICY_VIOLATION",
        human_message=(
            "This path may hold secrets, so it is not readable. Continue without it, "
            "or ask a person to add it to allow_read in kaiza.toml."
        ),
        cause={"path": str(path)},
    )
