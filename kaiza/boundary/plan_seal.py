"""Records the seal of an approved plan before the first change under it, and the number of files that it reaches.

The number follows in a record of its own where counting takes long. Such a record decides nothing.
"""

from contextlib import suppress
from typing import Any

from kaiza.boundary.call import Call
from kaiza.clock import current_timestamp
from kaiza.domain.audit import record
from kaiza.domain.audit.projection import COUNTED_SEAL
from kaiza.domain.plans.plan import Plan
from kaiza.policy.case import Case
from kaiza.policy.rules.plan_approved import approval_basis
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace


def record_plan_seal(call: Call, case: Case, workspace: Workspace) -> None:
    """Record the hash of the approved plan before the first change under it; from then on no other bytes are valid."""
    plan = case.parsed.plan if case.parsed else None
    if plan is None or case.plan_id in case.audit_state.seals:
        return
    human_decisions.store_approved_plan(workspace, plan)
    members = _seal_members(call, plan, workspace)
    approval = {"how": approval_basis(case), "approved_by": plan.approved_by}
    files = workspace.scope_counts.count_if_small(plan)

    def new_seal() -> record.Body:
        # Under the log's lock: another process may have sealed the plan since the check above.
        state = workspace.audit_state
        if state.is_partial or plan.plan_id in state.seals:
            raise _AlreadySealedError
        return _new_record(members, {**approval, **human_decisions.describe_count(files)})

    with suppress(_AlreadySealedError):  # if it sealed other bytes, the rules at the intent refuse this change
        seal = workspace.log.append(new_seal, durable=False)
        # A deterministic log has no records whose place depends on time.
        if files is None and not workspace.audit_state.is_deterministic:
            detail = {**approval, COUNTED_SEAL: seal.seq}

            def record_count(count: int) -> None:
                counted = {**detail, **human_decisions.describe_count(count)}
                workspace.log.append(lambda: _new_record(members, counted), durable=False)

            workspace.scope_counts.start(plan, record_count)


def _seal_members(call: Call, plan: Plan, workspace: Workspace) -> dict[str, Any]:
    session = call.session
    return {
        "request_id": call.request_id,
        "session_id": session.session_id if session else None,
        "role": session.role if session else None,
        "principal": call.principal_label,
        "workspace_root": workspace.root,
        "plan_id": plan.plan_id,
        "plan_hash": plan.plan_hash,
    }


def _new_record(members: dict[str, Any], detail: dict[str, Any]) -> record.Body:
    return record.new_body("plan", timestamp=current_timestamp(), **members, detail=detail)


class _AlreadySealedError(Exception):
    """Another process sealed the plan first, or may have done so in a part of the log that is not read yet."""
