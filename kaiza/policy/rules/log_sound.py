"""No changes while the audit log is damaged, or not read and verified yet: they could not be proved afterwards."""

from collections.abc import Mapping

from kaiza.domain import errors
from kaiza.policy.case import Case


def check_log_sound(case: Case) -> errors.SystemError | None:
    """Refuse from the moment damage is found until a person accepts a new log, and until all of the log is known."""
    if case.damage is None:
        is_known = case.unverified is None and not case.audit_state.is_partial
        return None if is_known else unverified_error(case.unverified or {}, is_read=not case.audit_state.is_partial)
    return errors.SystemError.tool_failure(
        "SELF_AUDIT_FAILURE",
        human_message=(
            "The audit log is damaged, so changes are refused. "
            "Ask a person to run kaiza audit verify, then kaiza audit accept."
        ),
        cause={"verdict": case.damage},
    )


def unverified_error(progress: Mapping[str, int], *, is_read: bool) -> errors.SystemError:
    """AUDIT_LOG_FAILED while the log is being read, or verified once it was read."""
    total = progress.get("of", 0)
    done = f", {100 * progress['bytes'] // total} % so far" if total else ""
    return errors.SystemError.invariant_violation(
        "AUDIT_NOT_VERIFIED_YET",
        error_code="AUDIT_LOG_FAILED",
        human_message=f"The audit log is still being {'verified' if is_read else 'read'}{done}. "
        "Try again in a few seconds; reading files works meanwhile.",
        cause={"progress": dict(progress)},
    )
