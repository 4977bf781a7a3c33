"""Refusal of what a person asked for. It changes nothing, and its message says why and what to do next."""


class RefusedError(Exception):
    """What was asked for is refused, for a reason that is certain: the command ends with 1."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class UndeterminedError(RefusedError):
    """What was asked for could not be done, or not be recorded, or it is not known whether it may: exit status 3."""
