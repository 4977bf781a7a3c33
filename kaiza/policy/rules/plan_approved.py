"""The plan is approved: by a person, in exactly these bytes, not withdrawn and not expired."""

from kaiza.domain import errors
from kaiza.domain.audit.projection import UNPROVEN
from kaiza.domain.plans.plan import APPROVED, Plan
from kaiza.policy.case import Case

ARRIVALS = {
    "git": "was brought by git",
    "other_vcs": "may have been brought by the version control system here, which only git can be asked about",
    "in_progress": "was first seen during a merge, rebase, cherry-pick or revert of git's",
    "locked": "may be git's work as long as git's index is locked (index.lock in .git): try again once git has ended",
    "bound": "was here as approved before this workspace belonged to this machine",
    "unseen": "was never seen here as a draft with this text",
}
"""How an approval that does not count came to be in a plan's file."""


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
    """Refuse a plan that a person withdrew here, by command or by editing its status."""
    # Git, or an agent's test, can set the status back to APPROVED; only a new approval by command lifts this.
    plan = case.plan
    action = case.audit_state.withdrawn.get(case.plan_id or "") or case.evidence.withdrawn_here
    if plan is None or plan.status != APPROVED or action is None:
        return None
    return errors.SystemError.invariant_violation(
        "PLAN_WITHDRAWN",
        error_code="PLAN_NOT_APPROVED",
        human_message=(
            "A person withdrew this plan, but its file says APPROVED. "
            "Ask a person to run kaiza plan approve, or use another plan."
        ),
        cause={"rule": "plan_approved", "plan_id": case.plan_id, "action": action},
    )


def check_plan_approved(case: Case) -> errors.SystemError | None:
    """Refuse a plan without APPROVED status, an expired one, and one not approved in the way the workspace requires."""
    plan = case.plan
    if plan is None:
        return _not_approved_error(case, None, "unreadable", "Ask a person to correct it.")
    if plan.status != APPROVED:
        return _not_approved_error(
            case, plan, "status", "Ask a person to approve it, then call list_plans for its new plan_hash."
        )
    if plan.is_expired(case.now):
        return _not_approved_error(case, plan, "expired", "Save a new plan and ask a person to approve it.")
    if approval_basis(case) is not None:
        return None
    if case.required_approval == "edit":
        came_by = case.evidence.came_by or "unseen"
        return errors.SystemError.invariant_violation(
            "PLAN_ARRIVED_APPROVED",
            error_code="PLAN_NOT_APPROVED",
            human_message=(
                f"Approved in the file, but it {ARRIVALS[came_by]}. Ask a person: kaiza plan approve {plan.plan_id}"
            ),
            cause={"rule": "plan_approved", "plan_id": plan.plan_id, "came_by": came_by, **_list_problems(case)},
        )
    if case.required_approval == "signature":
        return _not_approved_error(case, plan, "signature", "Ask a person to run kaiza plan approve --sign.")
    return _not_approved_error(case, plan, "approval_by_command", "Ask a person to run kaiza plan approve.")


def approval_basis(case: Case) -> str | None:
    """What a plan's approval rests on: `signed`, `command`, `edited`, `merged`, as it was sealed; None if nothing."""
    plan, evidence = case.plan, case.evidence
    if plan is None or plan.status != APPROVED:
        return None
    signed = "signed" if evidence.signer else None
    if case.required_approval == "signature":
        return signed
    if case.audit_state.approvals.get(plan.plan_id) == plan.plan_hash:
        return "command"
    if case.required_approval == "command":
        return signed
    seal = case.audit_state.seals.get(plan.plan_id)
    if seal is not None and seal.plan_hash == plan.plan_hash and seal.how != UNPROVEN:
        return seal.how
    if evidence.edited_here:
        return "edited"
    return signed or ("merged" if evidence.merged_ref else None)


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
            **_list_problems(case),
        },
    )


def _list_problems(case: Case) -> dict[str, list[str]]:
    """Why a trusted merge or a signature that is there does not count."""
    problems = [problem for problem in (case.evidence.merge_problem, case.evidence.signature_problem) if problem]
    return {"problems": problems} if problems else {}
