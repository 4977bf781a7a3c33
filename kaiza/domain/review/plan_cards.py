"""Plans of the report: who approved them and how, their scope in their own words, how much of their limits is used."""

from collections.abc import Sequence

from kaiza.domain.audit.record import Record
from kaiza.domain.plans.plan import LIMITS, Scope
from kaiza.domain.review.evidence import PlanEvidence
from kaiza.domain.review.records import action_of, is_refusal
from kaiza.domain.review.report import APPROVAL_WORDS, ApprovalHow, ApprovalInterval, LimitUse, PlanCard


def describe_plan(evidence: PlanEvidence, records: Sequence[Record]) -> PlanCard:
    """The card of one plan; `records` are those of the report and of people's decisions, in order."""
    plan, seal, plan_id = evidence.plan, evidence.seal, evidence.plan_id
    approvals = [record for record in records if record.plan_id == plan_id and action_of(record) == "approve"]
    decision = approvals[-1] if approvals else None
    sealed, decided = seal.detail if seal else {}, decision.detail if decision else {}
    otherwise: ApprovalHow | None = "command" if decision else "edited" if seal else None
    how = next((how for how in APPROVAL_WORDS if how == sealed.get("how")), otherwise)
    # A merge or an edit has no moment of its own: the seal is only when it was noticed.
    approval = decision or (seal if how in ("command", "signed") else None)
    return PlanCard(
        plan_id=plan_id,
        title=plan.title if plan else None,
        approver=_text_or_none(sealed.get("approved_by")) or _text_or_none(decided.get("person")),
        how=how,
        approved_at=approval.timestamp if approval else None,
        interval=_find_interval(plan_id, seal, records) if seal and how == "edited" else None,
        sealed_seq=seal.seq if seal else None,
        plan_hash=seal.plan_hash if seal else None,
        scope=_describe_scope(plan.scope) if plan else {},
        limits=tuple(
            LimitUse(
                name,
                "Locking refusals" if name == "refusals" else name.capitalize(),
                evidence.usage.file_count if name == "files" else getattr(evidence.usage, name),
                allowed,
            )
            for name in LIMITS
            if plan and (allowed := getattr(plan.limits, name)) is not None
        ),
        is_changed_since=evidence.is_changed_since,
        withdrawn=evidence.withdrawn,
    )


def _find_interval(plan_id: str, seal: Record, records: Sequence[Record]) -> ApprovalInterval:
    """From the last record that shows the plan as not approved, to its seal."""
    after_seq, after = None, None
    for record in records:
        if record.plan_id == plan_id and is_refusal(record):
            shows_draft = record.error_code == "PLAN_NOT_APPROVED"
        else:
            shows_draft = record.tool_name == "save_plan" and record.outcome == "ok"
            shows_draft = shows_draft and record.arguments.get("plan_id") == plan_id
        if shows_draft and record.seq < seal.seq:
            after_seq, after = record.seq, record.timestamp
    return ApprovalInterval(after_seq, after, seal.seq, seal.timestamp)


def _describe_scope(scope: Scope) -> dict[str, tuple[str, ...]]:
    rows = {
        "May modify": tuple(glob.text for glob in scope.modify),
        "May create": tuple(glob.text for glob in scope.create),
        "May delete": tuple(glob.text for glob in scope.delete),
        "May move": tuple(f"{rule.source.text} → {rule.target.text}" for rule in scope.move),
        "Never": tuple(glob.text for glob in scope.deny),
        "Unlocked": tuple(map(str, scope.unlock)),
    }
    return {label: patterns for label, patterns in rows.items() if patterns}


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
