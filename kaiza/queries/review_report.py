"""The report of a review, computed from the log of a workspace."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path, PurePath

import kaiza
from kaiza.clock import current_timestamp
from kaiza.domain.audit.record import GENESIS, Record
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import PlanUsage, is_plan_id
from kaiza.domain.review.evidence import MAX_SHOWN_BYTES, PlanEvidence, ReviewContents, ReviewEvidence
from kaiza.domain.review.files import build_histories
from kaiza.domain.review.records import merge_records
from kaiza.domain.review.report import ReviewReport, ReviewSelection, ReviewSource
from kaiza.domain.review.report_builder import build_report
from kaiza.queries.review_contents import WorkspaceContents
from kaiza.queries.review_records import SelectedRecords, find_interrupted, read_other_changes, read_selected
from kaiza.queries.review_ungoverned import gather_ungoverned
from kaiza.store import human_decisions
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.disk import state_dir
from kaiza.store.documents.review_files import write_review
from kaiza.store.trust.binding import Standing
from kaiza.store.workspace import Workspace

VERIFY_SECONDS = 1.0
"""How long a review waits for the log's verification before it says that it was not verified as a whole."""


def review(workspace: Workspace, selection: ReviewSelection) -> ReviewReport:
    """The report on a selection. `selection.id` is a whole id."""
    evidence, contents = gather_evidence(workspace, selection)
    now = evidence.source.made_at
    ungoverned = gather_ungoverned(workspace, selection, evidence.selected, now)
    return build_report(replace(evidence, ungoverned=ungoverned), contents)


def save_page(workspace: Workspace, name: str, content: bytes) -> Path:
    """Write the page of a review into `.kaiza/reviews/`; its path."""
    # A workspace from elsewhere gets nothing new: its pages are in the state directory.
    kaiza_dir = workspace.blobs.kaiza_dir if workspace.binding.standing is Standing.BOUND else None
    return write_review(workspace.root, kaiza_dir, name, content)


def gather_evidence(
    workspace: Workspace, selection: ReviewSelection, max_bytes: int = MAX_SHOWN_BYTES
) -> tuple[ReviewEvidence, WorkspaceContents]:
    """What the report on a selection is computed from, without changes that Kaiza did not make.

    Larger contents than `max_bytes` are not read.
    """
    found, contents = read_selected(workspace.root, selection), WorkspaceContents(workspace, max_bytes)
    later = _read_later(workspace, found.selected, contents)
    plan_ids = {record.plan_id for record in found.selected if record.plan_id is not None}
    evidence = ReviewEvidence(
        selection=selection,
        source=_describe_source(workspace),
        selected=found.selected,
        context=found.context,
        later=later,
        plans=[_gather_plan(workspace, plan_id, found) for plan_id in sorted(plan_ids)],
        lines=found.lines,
        interrupted=find_interrupted(workspace, found.selected),
    )
    return evidence, contents


def _read_later(workspace: Workspace, selected: Sequence[Record], contents: ReviewContents) -> Sequence[Record]:
    """Records of other changes to files that are not as the selected calls left them, or left between two of them."""
    paths = {
        path
        for history in build_histories(selected, ())
        if history.find_gap() or contents.read_current(history.path).hash != history.last_hash
        for step in history.steps
        for path in filter(None, (step.path, step.source))
    }
    if not paths:
        return []
    return read_other_changes(workspace.root, paths, selected[0].seq, {record.seq for record in selected})


def _describe_source(workspace: Workspace) -> ReviewSource:
    """What the log is worth, and up to which record it was read."""
    head = workspace.log.head
    verdict = workspace.damage()
    if verdict is None:
        verdict = "intact" if workspace.verification_progress(VERIFY_SECONDS) is None else "unverified"
        # The wait may have found damage.
        verdict = workspace.damage() or verdict
    return ReviewSource(
        workspace=workspace.root,
        workspace_name=PurePath(workspace.root).name,
        kaiza=kaiza.__version__,
        made_at=current_timestamp(),
        head_seq=head.seq if head else 0,
        head_hash=head.entry_hash if head else GENESIS,
        verdict=verdict,
        is_anchored=verdict == "intact" and Checkpoint(state_dir.path_of(workspace.root)).read() is not None,
    )


def _gather_plan(workspace: Workspace, plan_id: str, found: SelectedRecords) -> PlanEvidence:
    last_seq, is_foreign = found.selected[-1].seq, workspace.binding.is_foreign
    records = merge_records(found.selected, found.context)
    seals = [record for record in records if record.kind == "plan" and record.plan_id == plan_id]
    # The seal that was in force during the selected calls, not one that a person made since.
    earlier = [seal for seal in seals if seal.seq <= last_seq]
    seal = earlier[-1] if earlier else seals[0] if seals else None
    stored = workspace.plans.read(plan_id) if is_plan_id(plan_id) and not is_foreign else None
    current = stored.parsed if stored else None
    sealed = None
    if seal is not None and seal.plan_hash is not None and not is_foreign:
        content = human_decisions.load_plan_bytes(workspace, seal.plan_hash)
        sealed = None if content is None else parser.parse(content, plan_id)
    shown = sealed or current
    return PlanEvidence(
        plan_id=plan_id,
        plan=shown.plan if shown else None,
        usage=workspace.audit_state.usage.get(plan_id) or PlanUsage(),
        seal=seal,
        # A person may set the status to DONE; only another text is another plan.
        is_changed_since=bool(sealed and current and sealed.body_hash != current.body_hash),
        withdrawn=workspace.audit_state.withdrawn.get(plan_id),
    )
