"""The report of a review, computed from the log of a workspace."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import kaiza
from kaiza.clock import current_timestamp
from kaiza.domain.audit.record import GENESIS, Record
from kaiza.domain.plans import parser
from kaiza.domain.plans.plan import PlanUsage, is_plan_id
from kaiza.domain.review.build import build_report
from kaiza.domain.review.evidence import MAX_SHOWN_BYTES, PlanEvidence, ReviewContents, ReviewEvidence
from kaiza.domain.review.file_history import FileHistory, build_histories
from kaiza.domain.review.report import ReviewReport, ReviewSelection, ReviewSource
from kaiza.queries.interrupted_changes import find_interrupted
from kaiza.queries.review_contents import WorkspaceContents
from kaiza.queries.review_records import SelectedRecords, plan_ids_of, read_other_changes, read_selected
from kaiza.queries.review_ungoverned import gather_ungoverned
from kaiza.store import human_decisions
from kaiza.store.audit.checkpoint import Checkpoint
from kaiza.store.disk import state_dir
from kaiza.store.workspace import Workspace

VERIFY_SECONDS = 1.0
"""How long a review waits for the log's verification before it says that it was not verified as a whole."""


def review(workspace: Workspace, selection: ReviewSelection) -> ReviewReport:
    """The report on a selection. `selection.id` is a whole id."""
    evidence, contents = gather_evidence(workspace, selection)
    now = evidence.source.made_at
    ungoverned = gather_ungoverned(workspace, selection, evidence.selected, now)
    return build_report(replace(evidence, ungoverned=ungoverned), contents)


def gather_evidence(
    workspace: Workspace, selection: ReviewSelection, max_bytes: int = MAX_SHOWN_BYTES
) -> tuple[ReviewEvidence, WorkspaceContents]:
    """What the report on a selection is computed from, without changes that Kaiza did not make.

    Larger contents than `max_bytes` are not read.
    """
    found, contents = read_selected(workspace.root, selection), WorkspaceContents(workspace, max_bytes)
    later = _read_later(workspace, found, contents)
    evidence = ReviewEvidence(
        selection=selection,
        source=describe_source(workspace),
        selected=found.selected,
        context=found.context,
        later=later,
        plans=[_gather_plan(workspace, plan_id, found) for plan_id in plan_ids_of(found.selected)],
        lines=found.lines,
        interrupted=find_interrupted(workspace, found.selected),
    )
    return evidence, contents


def describe_source(workspace: Workspace) -> ReviewSource:
    """What the log is worth, and up to which record it was read."""
    head = workspace.log.head
    verdict = workspace.damage()
    if verdict is None:
        verdict = "intact" if workspace.verification_progress(VERIFY_SECONDS) is None else "unverified"
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


def _read_later(workspace: Workspace, found: SelectedRecords, contents: ReviewContents) -> Sequence[Record]:
    """Records of other changes to files that are not as the selected calls left them, or left between two of them."""
    if not found.selected:
        return []
    paths = _unexplained_paths(build_histories(found.selected, ()), contents)
    if not paths:
        return []
    known = {record["seq"] for record in found.selected}
    return read_other_changes(workspace.root, paths, found.selected[0]["seq"], known)


def _unexplained_paths(histories: Sequence[FileHistory], contents: ReviewContents) -> AbstractSet[str]:
    return {
        path
        for history in histories
        if history.has_gap() or contents.read_current(history.path).hash != history.last_hash
        for step in history.steps
        for path in filter(None, (step.path, step.source))
    }


def _gather_plan(workspace: Workspace, plan_id: str, found: SelectedRecords) -> PlanEvidence:
    last_seq = found.selected[-1]["seq"]
    records = sorted([*found.selected, *found.context], key=lambda record: int(record["seq"]))
    seals = [record for record in records if record["kind"] == "plan" and record["plan_id"] == plan_id]
    # The seal that was in force during the selected calls, not one that a person made since.
    earlier = [seal for seal in seals if seal["seq"] <= last_seq]
    seal = earlier[-1] if earlier else seals[0] if seals else None
    is_read = is_plan_id(plan_id) and not workspace.binding.is_foreign
    stored = workspace.plans.read(plan_id) if is_read else None
    sealed = _load_sealed(workspace, seal)
    current = stored.parsed if stored else None
    plan = sealed.plan if sealed else current.plan if current else None
    return PlanEvidence(
        plan_id=plan_id,
        plan=plan,
        usage=workspace.audit_state.usage.get(plan_id) or PlanUsage(),
        seal=seal,
        # A person may set the status to DONE; only another text is another plan.
        is_changed_since=bool(sealed and current and sealed.body_hash != current.body_hash),
        withdrawn=workspace.audit_state.withdrawn.get(plan_id),
    )


def _load_sealed(workspace: Workspace, seal: Mapping[str, Any] | None) -> parser.ParsedPlan | None:
    """The plan as it was approved; None if its text is not stored any more."""
    if seal is None or workspace.binding.is_foreign or not isinstance(seal["plan_hash"], str):
        return None
    content = human_decisions.load_plan_bytes(workspace, seal["plan_hash"])
    return None if content is None else parser.parse(content, seal["plan_id"])
