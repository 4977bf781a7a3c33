"""Every path a caller names is spelled so that it cannot leave the workspace."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_path_sound(case: Case) -> errors.SystemError | None:
    """Refuse with the fault that was found when the arguments were read."""
    return case.fault
