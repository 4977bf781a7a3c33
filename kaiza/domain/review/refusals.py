"""Refusals in words, gravest first, with the report that followed a lock."""

from collections.abc import Mapping, Sequence

from kaiza.domain.audit.projection import NEW_WORKSPACE
from kaiza.domain.audit.record import Record
from kaiza.domain.review.evidence import ReviewContents
from kaiza.domain.review.records import (
    actor_of,
    is_locking,
    is_refusal,
    is_report,
    merge_records,
    named_paths,
)
from kaiza.domain.review.report import RefusalReview, ReportLink, Tone

_MAX_REPORT_CHARACTERS = 4_000
_REPORTS = "docs/reports/"
_TONES: tuple[Tone, ...] = ("bad", "warn", "note")
_DRAFT_RULE = "draft"
"""Rule on drafts that a text breaks if it claims to be approved, or could be taken for that."""
_WORDS_BY_INVARIANT: Mapping[str, tuple[Tone, str]] = {
    "CONTROL_PLANE_PROTECTED": ("bad", "Plans, log or control files"),
    "READ_PROTECTED": ("warn", "A file that may hold secrets"),
    "PLAN_LIMIT_REACHED": ("warn", "A limit of the plan was reached"),
    "PLAN_CHANGED_AFTER_APPROVAL": ("warn", "The plan was changed after its approval"),
    "PLAN_WITHDRAWN": ("warn", "A person withdrew the plan"),
    "PLAN_ARRIVED_APPROVED": ("warn", "The plan arrived approved"),
    "WORKSPACE_FROZEN": ("note", "While frozen"),
    "WORKSPACE_NOT_ADOPTED": ("note", "Before the adoption"),
    "AUDIT_NOT_VERIFIED_YET": ("note", "While the log was being verified"),
}
_WORDS_BY_CODE: Mapping[str, tuple[Tone, str]] = {
    "PLAN_SCOPE_VIOLATION": ("bad", "Outside the plan"),
    "PATH_TRAVERSAL_BLOCKED": ("warn", "Out of the workspace"),
    "OUTSIDE_WORKSPACE": ("warn", "Out of the workspace"),
    "UNAUTHORIZED_ACTION": ("bad", "Not allowed to this role"),
    "INVARIANT_VIOLATION": ("warn", "A rule that always holds"),
    "PLAN_ENFORCEMENT_FAILED": ("warn", "Not a valid plan"),
    "POLICY_VIOLATION": ("warn", "A rule on content"),
    "RUST_POLICY_VIOLATION": ("warn", "A rule on Rust code"),
    "SELF_AUDIT_FAILURE": ("bad", "The record is damaged or not adopted"),
    "SESSION_LOCKED": ("note", "While locked"),
    "PLAN_NOT_APPROVED": ("note", "Before the approval"),
    "PLAN_NOT_FOUND": ("note", "No such plan"),
    "INSUFFICIENT_PERMISSIONS": ("note", "Not offered by this server"),
    "ROLE_MISMATCH": ("note", "The server is for the other role"),
    "PREFLIGHT_FAILED": ("note", "The plan's checks failed"),
    "SESSION_NOT_INITIALIZED": ("note", "No session was open"),
    "SESSION_INITIALIZATION_FAILED": ("note", "The session could not begin"),
    "AUDIT_LOG_FAILED": ("warn", "The record could not be written"),
    "AUDIT_LOCK_FAILED": ("note", "The record was in use"),
}
_ORDINARY: Mapping[str, str] = {
    "HASH_MISMATCH": "Stale hash",
    "FILE_NOT_FOUND": "No such file",
    "PATH_NOT_FOUND": "No such directory",
    "FILE_ALREADY_EXISTS": "The file exists already",
    "PATCH_APPLY_FAILED": "The patch does not fit",
    "PATCH_INVALID": "The patch is malformed",
    "INVALID_PATH": "A malformed path",
    "INVALID_TOOL_INPUT": "Wrong arguments",
    "INVALID_INPUT_TYPE": "Wrong arguments",
    "INVALID_INPUT_FORMAT": "Wrong arguments",
    "INVALID_INPUT_VALUE": "Wrong arguments",
    "MISSING_REQUIRED_FIELD": "Wrong arguments",
    "CURSOR_INVALID": "A stale cursor",
    "CAP_EXCEEDED": "Too much at once",
    "TOOL_NOT_FOUND": "No such tool",
    "FILE_READ_FAILED": "The file could not be read",
    "CONTEXT_CACHE_MISSING": "No such context cache",
    "CONTEXT_QUERY_INVALID": "Wrong arguments",
    "CONTEXT_BUDGET_INVALID": "Wrong arguments",
}
_WORDS_BY_RULE = {
    "stub": "Unfinished code may not be added",
    "secret": "A secret may not be added",
}


def review_refusals(
    selected: Sequence[Record], others: Sequence[Record], contents: ReviewContents | None = None
) -> list[RefusalReview]:
    """Every refused call, gravest first; those of the same gravity in the order of the log.

    The text of a report is read from `contents`.
    """
    reports = list(filter(is_report, merge_records(selected, others)))
    rows = []
    for record in filter(is_refusal, selected):
        tone, words, is_ordinary = _describe(record)
        locking = is_locking(record)
        rows.append(
            RefusalReview(
                seq=record.seq,
                request_id=record.request_id or "",
                at=record.timestamp,
                actor=actor_of(record),
                tone="bad" if locking else tone,
                words=words,
                is_ordinary=is_ordinary,
                tool_name=record.tool_name or "",
                paths=named_paths(record),
                rule=record.human_message or "",
                error_code=record.error_code or "",
                is_locking=locking,
                report=_find_report(record, reports, contents) if locking else None,
            )
        )
    return sorted(rows, key=lambda row: (not row.is_locking, _TONES.index(row.tone), row.is_ordinary, row.seq))


def is_control_attempt(record: Record) -> bool:
    """Whether a refused call was an attempt on plans, the record or control files."""
    return is_refusal(record) and (record.invariant_id == "CONTROL_PLANE_PROTECTED" or _claims_approval(record))


def _claims_approval(record: Record) -> bool:
    """Whether a plan was refused because its text said that it is approved already."""
    findings = record.cause.get("findings") if isinstance(record.cause, Mapping) else None
    listed = findings if isinstance(findings, list) else []
    rules = [finding.get("rule") for finding in listed if isinstance(finding, Mapping)]
    return record.tool_name == "save_plan" and _DRAFT_RULE in rules


def _describe(record: Record) -> tuple[Tone, str, bool]:
    """Gravity, words, and whether it is an ordinary mistake. What is most special comes first."""
    code = record.error_code or ""
    rule = record.cause.get("rule") if isinstance(record.cause, Mapping) else None
    if _claims_approval(record):
        return "warn", "Not a plain draft: it claimed an approval", False
    if rule == NEW_WORKSPACE:
        return "warn", "It would have made a workspace inside this one", False
    if rule == "unlocked":
        return "bad", "A file that steers agents, editors or CI", False
    by_invariant = _WORDS_BY_INVARIANT.get(record.invariant_id or "")
    if by_invariant is not None:
        return *by_invariant, False
    family = rule.split("-")[0] if isinstance(rule, str) else ""
    if family in _WORDS_BY_RULE:
        return "warn", _WORDS_BY_RULE[family], False
    if code in _WORDS_BY_CODE:
        return *_WORDS_BY_CODE[code], False
    if code in _ORDINARY:
        return "note", f"{_ORDINARY[code]}: an ordinary mistake", True
    return "note", "Failed", False


def _find_report(record: Record, reports: Sequence[Record], contents: ReviewContents | None) -> ReportLink | None:
    """The first report of the same role after a refusal."""
    following = (report for report in reports if report.seq > record.seq and report.role == record.role)
    report = next(following, None)
    if report is None:
        return None
    path = report.detail.get("path")
    path = path if isinstance(path, str) else None
    return ReportLink(report.seq, path, report.timestamp, _read_report(report, path, contents))


def _read_report(record: Record, path: str | None, contents: ReviewContents | None) -> str | None:
    """The text of a report, if its file is still the one whose hash the record has."""
    digest = record.detail.get("sha256")
    # The log may have come with a clone: only a file where reports are is read.
    if contents is None or path is None or not path.startswith(_REPORTS) or not isinstance(digest, str):
        return None
    file = contents.read_current(path)
    if file.content is None or file.hash != digest:
        return None
    return file.content.decode(errors="backslashreplace")[:_MAX_REPORT_CHARACTERS]
