"""The plan is approved: by a person, in exactly these bytes, not withdrawn and not expired."""

from kaiza.domain import errors
from kaiza.domain.plans.plan import APPROVED, Plan
from kaiza.policy.case import Case


def check_plan_unchanged(case: Case) -> errors.SystemError | None:
    """Refuse a plan whose file or requested hash is not the approved one, whatever its status says."""
    sealed = sealed_hash(case)
    requested = case.arguments.get("plan_hash")
    if case.parsed is None or sealed is None or sealed == requested == case.parsed.plan_hash:
        return None
    return errors.SystemError.invariant_violation(
        "PLAN_CHANGED_AFTER_APPROVAL",
        error_code="PLAN_NOT_APPROVED",
        human_message=(
            "The plan was changed after its approval, so the approval is no longer valid. "
            "Ask a person to run kaiza plan approve, or save the new text as a new plan."
        ),
        cause={
            "rule": "plan_approved",
            "plan_id": case.plan_id,
            "approved_hash": sealed,
            "plan_hash": case.parsed.plan_hash,
        },
    )


def check_plan_not_withdrawn(case: Case) -> errors.SystemError | None:
    """Refuse a plan that a person rejected or revoked by command."""
    # Anyone who can write the file can set its status back to APPROVED; only a new approval by command lifts this.
    plan = case.parsed.plan if case.parsed else None
    if plan is None or plan.status != APPROVED or case.plan_id not in case.audit_state.withdrawn:
        return None
    return errors.SystemError.invariant_violation(
        "PLAN_WITHDRAWN",
        error_code="PLAN_NOT_APPROVED",
        human_message=(
            "A person withdrew this plan, but its file says APPROVED. "
            "Ask a person to run kaiza plan approve, or use another plan."
        ),
        cause={"rule": "plan_approved", "plan_id": case.plan_id, "action": case.audit_state.withdrawn[case.plan_id]},
    )


def check_plan_approved(case: Case) -> errors.SystemError | None:
    """Refuse a plan without APPROVED status, an expired one, and one not approved in the way the workspace requires."""
    plan = case.parsed.plan if case.parsed else None
    if plan is None:
        return _not_approved_error(case, None, "unreadable", "Ask a person to correct it.")
    if plan.status != APPROVED:
        return _not_approved_error(
            case, plan, "status", "Ask a person to approve it, then call list_plans for its new plan_hash."
        )
    if plan.is_expired(case.now):
        return _not_approved_error(case, plan, "expired", "Save a new plan and ask a person to approve it.")
    if case.required_approval != "edit" and case.audit_state.approvals.get(plan.plan_id) != plan.plan_hash:
        return _not_approved_error(case, plan, "approval_by_command", "Ask a person to run kaiza plan approve.")
    return None


def sealed_hash(case: Case) -> str | None:
    """Hash that was approved. An approval by command takes precedence over one made by editing the file."""
    if case.plan_id is None:
        return None
    seal = case.audit_state.seals.get(case.plan_id)
    return case.audit_state.approvals.get(case.plan_id) or (seal.plan_hash if seal else None)


def _not_approved_error(case: Case, plan: Plan | None, reason: str, next_step: str) -> errors.SystemError:
    return errors.SystemError.tool_failure(
        "PLAN_NOT_APPROVED",
        human_message=f"The plan is not approved. {next_step}",
        cause={
            "rule": "plan_approved",
            "reason": reason,
            "plan_id": case.plan_id,
            "status": plan.status if plan else None,
            "expires": plan.expires if plan else None,
        },
    )
