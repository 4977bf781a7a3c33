"""Builds the report: the one place where its parts come together. Pure, from records and contents."""

from collections.abc import Sequence

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.undone_changes import effective_changes
from kaiza.domain.review.actors import actor_of_role, is_refusal
from kaiza.domain.review.commands import list_commands
from kaiza.domain.review.events import build_timeline
from kaiza.domain.review.evidence import Record, ReviewContents, ReviewEvidence
from kaiza.domain.review.file_history import build_histories
from kaiza.domain.review.file_reviews import review_files
from kaiza.domain.review.findings import FindingSources, collect_findings
from kaiza.domain.review.plan_cards import describe_plan
from kaiza.domain.review.record_rows import MAX_RECORDS, list_records
from kaiza.domain.review.refusals import review_refusals
from kaiza.domain.review.report import FileReview, ReviewCounts, ReviewReport, SessionCard
from kaiza.domain.review.ungoverned import review_ungoverned
from kaiza.domain.review.verdicts import compose_verdict


def build_report(evidence: ReviewEvidence, contents: ReviewContents) -> ReviewReport:
    """The report on the evidence."""
    selected, source = evidence.selected, evidence.source
    others = _merge(evidence.context, evidence.later, without=selected)
    histories = build_histories(selected, others)
    files = review_files(histories, contents)
    plans = tuple(describe_plan(plan, _merge(selected, others)) for plan in evidence.plans)
    scopes = [plan.plan for plan in evidence.plans if plan.plan is not None]
    ungoverned = review_ungoverned(evidence.ungoverned, histories, scopes, contents)
    refusals = tuple(review_refusals(selected, others, contents))
    timeline = build_timeline(selected, others, plans, ungoverned, source.made_at)
    sources = FindingSources(
        source, selected, others, refusals, timeline.locks, plans, ungoverned, evidence.interrupted
    )
    findings = collect_findings(sources)
    counts = _count(selected, files, ungoverned.count, len(timeline.locks))
    return ReviewReport(
        selection=evidence.selection,
        source=source,
        sessions=tuple(_session_cards(selected)),
        verdict=compose_verdict(source, findings, plans, ungoverned, timeline.locks, counts),
        findings=findings,
        plans=plans,
        timeline=timeline,
        files=tuple(files),
        ungoverned=ungoverned,
        refusals=refusals,
        records=list_records(selected, evidence.lines),
        omitted_records=max(len(selected) - MAX_RECORDS, 0),
        commands=list_commands(
            evidence.selection,
            source,
            plans,
            has_changes=_has_changes(selected, others),
            kept=sum(file.state in ("changed_since", "changed_by_later_call") for file in files),
        ),
    )


def _merge(*groups: Sequence[Record], without: Sequence[Record] = ()) -> list[Record]:
    """Records of several groups in the order of the log, each once."""
    left_out = {record["seq"] for record in without}
    by_seq = {record["seq"]: record for group in groups for record in group if record["seq"] not in left_out}
    return [by_seq[seq] for seq in sorted(by_seq)]


def _count(selected: Sequence[Record], files: Sequence[FileReview], ungoverned: int, locks: int) -> ReviewCounts:
    calls = [record for record in selected if record["kind"] == "call"]
    made = [record for record in selected if took_effect(record)]
    return ReviewCounts(
        calls=len(calls),
        changes=sum(len(record["changes"]) for record in made if not is_undo(record)),
        refusals=sum(map(is_refusal, calls)),
        lines_added=sum(file.lines_added for file in files),
        lines_removed=sum(file.lines_removed for file in files),
        files=len(files),
        undos=sum(len(record["changes"]) for record in made if is_undo(record)),
        locks=locks,
        ungoverned=ungoverned,
        records=len(selected),
    )


def _has_changes(selected: Sequence[Record], others: Sequence[Record]) -> bool:
    """Whether a change of the selected calls is still in effect."""
    own = {record["seq"] for record in selected}
    made = [record for record in _merge(selected, others) if took_effect(record)]
    return any(record["seq"] in own for record in effective_changes(made))


def _session_cards(selected: Sequence[Record]) -> list[SessionCard]:
    by_session: dict[str, list[Record]] = {}
    for record in selected:
        if isinstance(record["session_id"], str):
            by_session.setdefault(record["session_id"], []).append(record)
    return [_session_card(session_id, records) for session_id, records in by_session.items()]


def _session_card(session_id: str, records: Sequence[Record]) -> SessionCard:
    first = records[0]
    ended = [record for record in records if record["tool_name"] == "end_session" and record["outcome"] == "ok"]
    role = next((record["role"] for record in records if record["role"]), "")
    return SessionCard(
        session_id=session_id,
        role=str(role),
        actor=actor_of_role(role),
        client=next((record["client"] for record in records if record["client"]), None),
        principal=first.get("principal"),
        begun_at=str(first["timestamp"]),
        ended_at=str(ended[-1]["timestamp"]) if ended else None,
    )
