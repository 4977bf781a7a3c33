"""Secrets and Kaiza's own store are read by nobody."""

from kaiza.domain import errors
from kaiza.domain.paths.rel_path import RelPath
from kaiza.policy.case import Case


def check_readable(case: Case) -> errors.SystemError | None:
    """Refuse a read of a path whose content is protected."""
    return read_refusal(case.hidden[0]) if case.hidden else None


def read_refusal(path: RelPath) -> errors.SystemError:
    """The refusal, also for a path that turns out to be protected only once it is opened."""
    return errors.SystemError.invariant_violation(
        "READ_PROTECTED",
        error_code="POLICY_VIOLATION",
        human_message=(
            "This path may hold secrets and is not readable. Go on without it, "
            "or ask a person to name it under allow_read in kaiza.toml."
        ),
        cause={"path": str(path)},
    )
