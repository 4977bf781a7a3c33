"""Paths in the arguments are relative, normal and inside the workspace."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_path_sound(case: Case) -> errors.SystemError | None:
    """Refuse with the error that was found when the arguments were parsed."""
    return case.fault
