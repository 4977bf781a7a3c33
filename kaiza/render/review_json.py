"""A review as JSON, in the form of `schemas/review.json`."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from kaiza.domain.paths.shown_names import escape_name
from kaiza.domain.review.diff import DiffHunk, DiffLine, LineAuthor, ReviewDiff
from kaiza.domain.review.phrase import plain_text
from kaiza.domain.review.report import (
    FileCall,
    FileReview,
    PlanCard,
    RefusalReview,
    ReviewFinding,
    ReviewReport,
    SessionCard,
    UngovernedFile,
)

WITHOUT_KAIZA = "without Kaiza"


def encode_review(report: ReviewReport) -> dict[str, Any]:
    """The report as one JSON document."""
    return {
        "selection": asdict(report.selection),
        "session": _session_json(report.sessions[0]) if len(report.sessions) == 1 else None,
        "sessions": [_session_json(session) for session in report.sessions],
        "plan": _plan_json(report.plans[0]) if len(report.plans) == 1 else None,
        "plans": [_plan_json(plan) for plan in report.plans],
        "verdict": _verdict_json(report),
        "counts": asdict(report.verdict.counts),
        "limits": [{"plan_id": plan.plan_id, **asdict(limit)} for plan in report.plans for limit in plan.limits],
        "findings": [_finding_json(finding) for finding in report.findings],
        "files": [_file_json(file) for file in report.files],
        "manifest": report.ungoverned.manifest,
        "ungoverned": [_ungoverned_json(file) for file in report.ungoverned.files],
        "refusals": [_refusal_json(refusal) for refusal in report.refusals],
        "records": _records_json(report),
    }


def _session_json(session: SessionCard) -> dict[str, Any]:
    return asdict(session)


def _plan_json(plan: PlanCard) -> dict[str, Any]:
    members = asdict(plan)
    return {**members, "scope": {row.label: list(row.patterns) for row in plan.scope}}


def _verdict_json(report: ReviewReport) -> dict[str, Any]:
    verdict = report.verdict
    return {
        "tone": verdict.tone,
        "sentence": verdict.sentence,
        "why": plain_text(verdict.why),
        "record": report.source.verdict,
        "anchored": report.source.is_anchored,
        "facts": [asdict(chip) for chip in verdict.chips],
    }


def _finding_json(finding: ReviewFinding) -> dict[str, Any]:
    link = asdict(finding.link)
    return {
        "kind": finding.kind,
        "tone": finding.tone,
        "title": finding.title,
        "fact": "".join(escape_name(part.text) if part.is_quoted else part.text for part in finding.fact),
        "link": link,
    }


def _file_json(file: FileReview) -> dict[str, Any]:
    return {
        "path": escape_name(file.path),
        "source": file.source and escape_name(file.source),
        "operation": file.operation,
        "state": file.state,
        "before_hash": file.before_hash,
        "now_hash": file.now_hash,
        "mode_before": file.mode_before,
        "mode_now": file.mode_now,
        "lines_added": file.lines_added,
        "lines_removed": file.lines_removed,
        "calls": [_call_json(call) for call in file.calls],
        **_diff_json(file.diff),
    }


def _call_json(call: FileCall) -> dict[str, Any]:
    return {
        "seq": call.seq,
        "request_id": call.request_id,
        "timestamp": call.at,
        "tool_name": call.tool_name,
        "operation": call.operation,
        "source": call.source and escape_name(call.source),
        "is_undo": call.is_undo,
        "is_undone": call.is_undone,
        "is_selected": call.is_selected,
        **_diff_json(call.diff),
    }


def _diff_json(diff: ReviewDiff) -> dict[str, Any]:
    """Hunks, or the reason why there are none."""
    return {
        "hunks": [_hunk_json(hunk) for hunk in diff.hunks],
        "not_shown": None if diff.fold is None else {"reason": diff.fold.reason, "sentence": diff.fold.sentence},
    }


def _hunk_json(hunk: DiffHunk) -> dict[str, Any]:
    return {
        "old_start": hunk.old_start,
        "old_count": hunk.old_count,
        "new_start": hunk.new_start,
        "new_count": hunk.new_count,
        "lines": [_line_json(line) for line in hunk.lines],
    }


def _line_json(line: DiffLine) -> dict[str, Any]:
    members: dict[str, Any] = {"kind": line.kind, "text": line.text}
    if line.author is not None:
        members["by"] = _author_json(line.author)
    if line.words:
        members["words"] = [list(span) for span in line.words]
    if line.omitted:
        members["omitted"] = line.omitted
    if line.lacks_newline:
        members["lacks_newline"] = True
    return members


def _author_json(author: LineAuthor) -> Mapping[str, Any] | str | None:
    """The call, `without Kaiza`, or null if contents in between were not kept."""
    if author.seq is not None:
        return {"seq": author.seq, "request_id": author.request_id}
    return WITHOUT_KAIZA if author.is_known else None


def _ungoverned_json(file: UngovernedFile) -> dict[str, Any]:
    return {
        "path": escape_name(file.path),
        "change": file.change,
        **({"from": escape_name(file.source)} if file.source else {}),
        "in_scope": file.is_in_scope,
        "over_governed": file.is_over_governed,
        "note": file.note,
        **_diff_json(file.diff),
    }


def _refusal_json(refusal: RefusalReview) -> dict[str, Any]:
    members = asdict(refusal)
    return {**members, "paths": list(map(escape_name, refusal.paths))}


def _records_json(report: ReviewReport) -> dict[str, Any]:
    seqs = [row.seq for row in report.records]
    return {
        "count": report.verdict.counts.records,
        "first_seq": min(seqs, default=None),
        "last_seq": max(seqs, default=None),
        "head": {"seq": report.source.head_seq, "entry_hash": report.source.head_hash},
        "made_at": report.source.made_at,
        "kaiza": report.source.kaiza,
        "workspace": report.source.workspace,
    }
