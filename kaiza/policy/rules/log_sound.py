"""No changes while the audit log is damaged or not verified yet: they could not be proved afterwards."""

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_log_sound(case: Case) -> errors.SystemError | None:
    """Refuse from the moment damage is found until a person accepts a new log."""
    if case.damage is None:
        return None if case.unverified is None else _unverified_error(case)
    return errors.SystemError.tool_failure(
        "SELF_AUDIT_FAILURE",
        human_message=(
            "The audit log is damaged, so changes are refused. "
            "Ask a person to run kaiza audit verify, then kaiza audit accept."
        ),
        cause={"verdict": case.damage},
    )


def _unverified_error(case: Case) -> errors.SystemError:
    return errors.SystemError.invariant_violation(
        "AUDIT_NOT_VERIFIED_YET",
        error_code="AUDIT_LOG_FAILED",
        human_message="The audit log is still being verified. Try again in a few seconds; reading works meanwhile.",
        cause={"progress": dict(case.unverified or {})},
    )
