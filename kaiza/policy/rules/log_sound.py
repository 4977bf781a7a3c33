"""Nothing is changed while the record is damaged: a change nobody can prove is worse than none."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_log_sound(case: Case) -> errors.SystemError | None:
    """Refuse changes from the moment damage is seen until a person has looked."""
    if case.damage is None:
        return None if case.unverified is None else _unverified_error(case)
    return errors.SystemError.tool_failure(
        "SELF_AUDIT_FAILURE",
        human_message=(
            "The record is damaged, so nothing may be changed. "
            "Ask a person to run kaiza audit verify and then kaiza audit accept."
        ),
        cause={"verdict": case.damage},
    )


def _unverified_error(case: Case) -> errors.SystemError:
    return errors.SystemError.invariant_violation(
        "AUDIT_NOT_VERIFIED_YET",
        error_code="AUDIT_LOG_FAILED",
        human_message="The record is still being verified. Try again in a few seconds; reads are answered meanwhile.",
        cause={"progress": dict(case.unverified or {})},
    )
