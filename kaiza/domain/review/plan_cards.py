"""Plans of the report: who approved them and how, their scope in their own words, how much of their limits is used."""

from collections.abc import Iterator, Sequence

from kaiza.domain.plans.plan import LIMITS, Plan, Scope
from kaiza.domain.review.actors import action_of, detail_of, is_refusal
from kaiza.domain.review.evidence import PlanEvidence, Record
from kaiza.domain.review.report import ApprovalHow, ApprovalInterval, LimitUse, PlanCard, ScopeRow

_LABELS = {"files": "Files", "lines": "Lines", "bytes": "Bytes", "operations": "Operations"}
_REFUSALS_LABEL = "Locking refusals"
_HOWS: tuple[ApprovalHow, ...] = ("edited", "command", "merged", "signed", "unproven")


def describe_plan(evidence: PlanEvidence, records: Sequence[Record]) -> PlanCard:
    """The card of one plan; `records` are those of the report and of people's decisions, in order."""
    plan, seal = evidence.plan, evidence.seal
    decision = _find_approval(evidence.plan_id, records)
    how = _find_how(seal, decision)
    approver = detail_of(seal).get("approved_by") if seal else None
    person = detail_of(decision).get("person") if decision else None
    approval = decision or (seal if how in ("command", "signed") else None)
    return PlanCard(
        plan_id=evidence.plan_id,
        title=plan.title if plan else None,
        approver=_text_or_none(approver) or _text_or_none(person),
        how=how,
        approved_at=str(approval["timestamp"]) if approval else None,
        interval=_find_interval(evidence.plan_id, seal, records) if seal and how == "edited" else None,
        sealed_seq=seal["seq"] if seal else None,
        plan_hash=_text_or_none(seal["plan_hash"]) if seal else None,
        scope=tuple(_scope_rows(plan.scope)) if plan else (),
        limits=tuple(_limit_uses(plan, evidence)) if plan else (),
        is_changed_since=evidence.is_changed_since,
        withdrawn=evidence.withdrawn,
    )


def _find_approval(plan_id: str, records: Sequence[Record]) -> Record | None:
    """The last record by which a person approved the plan with a command."""
    approvals = [record for record in records if record["plan_id"] == plan_id and action_of(record) == "approve"]
    return approvals[-1] if approvals else None


def _find_how(seal: Record | None, decision: Record | None) -> ApprovalHow | None:
    said = detail_of(seal).get("how") if seal else None
    return next((how for how in _HOWS if how == said), "command" if decision else "edited" if seal else None)


def _find_interval(plan_id: str, seal: Record, records: Sequence[Record]) -> ApprovalInterval:
    """From the last record that shows the plan as not approved, to its seal."""
    shown = [record for record in records if record["seq"] < seal["seq"] and _shows_draft(record, plan_id)]
    last = shown[-1] if shown else None
    after_seq, after = (last["seq"], str(last["timestamp"])) if last else (None, None)
    return ApprovalInterval(after_seq, after, seal["seq"], str(seal["timestamp"]))


def _shows_draft(record: Record, plan_id: str) -> bool:
    if record["plan_id"] == plan_id and is_refusal(record):
        return bool(record["error_code"] == "PLAN_NOT_APPROVED")
    arguments = record["arguments"]
    saved = arguments.get("plan_id") if isinstance(arguments, dict) else None
    return bool(record["tool_name"] == "save_plan" and record["outcome"] == "ok" and saved == plan_id)


def _scope_rows(scope: Scope) -> Iterator[ScopeRow]:
    moves = tuple(f"{rule.source.text} → {rule.target.text}" for rule in scope.move)
    rows = (
        ("May modify", tuple(glob.text for glob in scope.modify)),
        ("May create", tuple(glob.text for glob in scope.create)),
        ("May delete", tuple(glob.text for glob in scope.delete)),
        ("May move", moves),
        ("Never", tuple(glob.text for glob in scope.deny)),
        ("Unlocked", tuple(map(str, scope.unlock))),
    )
    return (ScopeRow(label, patterns) for label, patterns in rows if patterns)


def _limit_uses(plan: Plan, evidence: PlanEvidence) -> Iterator[LimitUse]:
    for name in LIMITS:
        allowed = getattr(plan.limits, name)
        if allowed is not None:
            used = evidence.usage.file_count if name == "files" else getattr(evidence.usage, name)
            yield LimitUse(name, _LABELS.get(name, _REFUSALS_LABEL), used, allowed)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None
