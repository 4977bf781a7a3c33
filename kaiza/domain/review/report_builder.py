"""Builder of the report: the one place where its parts come together. Pure, from records and contents."""

import shlex
from collections.abc import Iterator, Sequence

from kaiza.domain.audit.inverse_changes import is_undo, took_effect
from kaiza.domain.audit.record import Record
from kaiza.domain.audit.undone_changes import effective_changes
from kaiza.domain.review.evidence import ReviewContents, ReviewEvidence
from kaiza.domain.review.files import build_histories, review_files
from kaiza.domain.review.findings import FindingSources, collect_findings, compose_verdict
from kaiza.domain.review.plan_cards import describe_plan
from kaiza.domain.review.records import MAX_RECORDS, actor_of_role, is_refusal, list_records, merge_records
from kaiza.domain.review.refusals import review_refusals
from kaiza.domain.review.report import (
    FileReview,
    PlanCard,
    ReviewCommand,
    ReviewCounts,
    ReviewReport,
    ReviewSelection,
    ReviewSource,
    SessionCard,
)
from kaiza.domain.review.timeline import build_timeline
from kaiza.domain.review.ungoverned import review_ungoverned


def build_report(evidence: ReviewEvidence, contents: ReviewContents) -> ReviewReport:
    """The report on the evidence."""
    selected, source = evidence.selected, evidence.source
    others = merge_records(evidence.context, evidence.later, without=selected)
    histories = build_histories(selected, others)
    files = review_files(histories, contents)
    plans = tuple(describe_plan(plan, merge_records(selected, others)) for plan in evidence.plans)
    scopes = [plan.plan for plan in evidence.plans if plan.plan is not None]
    ungoverned = review_ungoverned(evidence.ungoverned, histories, scopes, contents)
    refusals = tuple(review_refusals(selected, others, contents))
    timeline = build_timeline(selected, others, plans, ungoverned, source.made_at)
    counts = _count(selected, files, ungoverned.count, len(timeline.locks))
    sources = FindingSources(
        source, selected, others, refusals, timeline.locks, plans, ungoverned, counts, evidence.interrupted
    )
    findings = collect_findings(sources)
    return ReviewReport(
        selection=evidence.selection,
        source=source,
        sessions=_describe_sessions(selected),
        verdict=compose_verdict(sources, findings),
        findings=findings,
        plans=plans,
        timeline=timeline,
        files=tuple(files),
        ungoverned=ungoverned,
        refusals=refusals,
        records=list_records(selected, evidence.lines),
        omitted_records=max(len(selected) - MAX_RECORDS, 0),
        commands=(
            *_selection_commands(evidence.selection, selected, others, files),
            *_verify_command(source),
            *_revoke_commands(plans),
        ),
    )


def _count(selected: Sequence[Record], files: Sequence[FileReview], ungoverned: int, locks: int) -> ReviewCounts:
    calls = [record for record in selected if record.kind == "call"]
    made = [record for record in selected if took_effect(record)]
    return ReviewCounts(
        calls=len(calls),
        changes=sum(len(record.changes) for record in made if not is_undo(record)),
        refusals=sum(map(is_refusal, calls)),
        lines_added=sum(file.lines_added for file in files),
        lines_removed=sum(file.lines_removed for file in files),
        files=len(files),
        undos=sum(len(record.changes) for record in made if is_undo(record)),
        locks=locks,
        ungoverned=ungoverned,
        records=len(selected),
    )


def _describe_sessions(selected: Sequence[Record]) -> tuple[SessionCard, ...]:
    by_session: dict[str, list[Record]] = {}
    for record in selected:
        if record.session_id is not None:
            by_session.setdefault(record.session_id, []).append(record)
    cards = []
    for session_id, records in by_session.items():
        ended = [record for record in records if record.tool_name == "end_session" and record.outcome == "ok"]
        role = next((record.role for record in records if record.role), "")
        cards.append(
            SessionCard(
                session_id=session_id,
                role=role or "",
                actor=actor_of_role(role),
                client=next((record.client for record in records if record.client), None),
                principal=records[0].principal,
                begun_at=records[0].timestamp,
                ended_at=ended[-1].timestamp if ended else None,
            )
        )
    return tuple(cards)


def _selection_commands(
    selection: ReviewSelection, selected: Sequence[Record], others: Sequence[Record], files: Sequence[FileReview]
) -> Iterator[ReviewCommand]:
    """Commands on what is reviewed. An id that a shell or a terminal could misread is left out with its command."""
    if selection.kind == "time" or not selection.id or not _is_typable(selection.id):
        return
    chosen = f"--{selection.kind} {shlex.quote(selection.id)}"
    yield ReviewCommand(f"kaiza diff {chosen}", "Show what the agent changed")
    own = {record.seq for record in selected}
    made = list(filter(took_effect, merge_records(selected, others)))
    if not any(record.seq in own for record in effective_changes(made)):
        return
    yield ReviewCommand(f"kaiza undo {chosen} --dry-run", "Show what an undo would restore")
    kept = sum(file.state in ("changed_since", "changed_by_later_call") for file in files)
    left_alone = ""
    if kept:
        which = "The file that" if kept == 1 else f"The {kept:,} files that"
        left_alone = f" {which} changed since stays as it is, with what the agent wrote in it."
    purpose = f"Restore the files as they were before.{left_alone} Reports and plans stay."
    yield ReviewCommand(f"kaiza undo {chosen}", purpose)


def _verify_command(source: ReviewSource) -> Iterator[ReviewCommand]:
    head = f"{source.head_seq}:{source.head_hash}"
    if source.head_seq and _is_typable(head):
        yield ReviewCommand(f"kaiza audit verify --head {head}", "Verify the record up to this report")


def _revoke_commands(plans: Sequence[PlanCard]) -> Iterator[ReviewCommand]:
    for plan in plans:
        if plan.how is not None and plan.withdrawn is None and _is_typable(plan.plan_id):
            yield ReviewCommand(f"kaiza plan revoke {shlex.quote(plan.plan_id)}", "Stop changes under the plan")


def _is_typable(text: str) -> bool:
    return text.isascii() and text.isprintable() and not text.startswith("-")
