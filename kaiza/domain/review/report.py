"""Report of a review: one value, computed once, that every form (HTML, Markdown, JSON, SARIF, terminal) shows.

Texts are as they were recorded or read. Each form escapes them.
"""

from dataclasses import dataclass, field
from typing import Literal

from kaiza.domain.review.diff import ReviewDiff
from kaiza.domain.review.phrase import Sentence
from kaiza.domain.review.timeline import Actor, Timeline

MAX_FINDINGS = 5
MAX_UNGOVERNED = 200

ChipSubject = Literal["record", "plan", "ungoverned", "locks"]
Tone = Literal["ok", "note", "warn", "bad"]
FindingKind = Literal[
    "record_not_intact",
    "interrupted_change",  # not recovered yet
    "ungoverned_governed",  # without Kaiza, inside the plan's scope or over a file that Kaiza wrote
    "ungoverned",
    "locking_refusal",
    "control_attempt",  # on plans, the record or control files
    "edited_approval",
    "unclear_recovery",
    "limit_nearly_used",
]
"""In the order in which findings are listed."""
Section = Literal["verdict", "look", "plan", "timeline", "files", "ungoverned", "refusals", "records", "commands"]
ApprovalHow = Literal["edited", "command", "merged", "signed", "unproven"]
FileOperation = Literal["create", "modify", "delete", "move", "mode", "none"]
FileState = Literal[
    "as_left",  # as Kaiza left it
    "changed_since",  # changed since, without Kaiza
    "changed_by_later_call",  # changed since by calls that are not part of this report
    "put_back",  # no change is left
    "unknown",  # the file cannot be read now
]
UngovernedChange = Literal["created", "modified", "deleted", "renamed", "mode", "kind"]
RecordGroup = Literal["change", "refusal", "read", "other"]


@dataclass(frozen=True, slots=True)
class ReviewSelection:
    """What is reviewed: a session, a plan, a call, or a span of time."""

    kind: Literal["session", "plan", "request", "time"]
    id: str | None = None
    since: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewSource:
    """What the report was made from, and when."""

    workspace: str
    workspace_name: str
    kaiza: str
    made_at: str
    head_seq: int
    head_hash: str
    verdict: str
    """Verdict on the log: intact, torn_tail, broken, cut_off, replaced, missing; or `unverified`."""
    is_anchored: bool
    """Whether the log contains the checkpoint kept outside the workspace."""


@dataclass(frozen=True, slots=True)
class SessionCard:
    """One session that the report is about."""

    session_id: str
    role: str
    actor: Actor
    client: str | None
    principal: str | None
    begun_at: str
    ended_at: str | None


@dataclass(frozen=True, slots=True)
class ReviewChip:
    """A fact beside the verdict, in a few words."""

    subject: ChipSubject
    tone: Tone
    text: str


@dataclass(frozen=True, slots=True)
class ReviewCounts:
    """Numbers of the report. `changes` are those of calls, without undos; the lines are those of the net diffs."""

    calls: int = 0
    changes: int = 0
    refusals: int = 0
    lines_added: int = 0
    lines_removed: int = 0
    files: int = 0
    undos: int = 0
    """File changes by undos."""
    locks: int = 0
    ungoverned: int = 0
    records: int = 0


@dataclass(frozen=True, slots=True)
class ReviewVerdict:
    """The sentence on top, why, and the chips. `tone` ok: nothing was found."""

    tone: Tone
    sentence: str
    why: Sentence
    chips: tuple[ReviewChip, ...]
    counts: ReviewCounts


@dataclass(frozen=True, slots=True)
class LinkTarget:
    """Where a finding leads: a record (`seq`), a file of the report (`path`), or a section."""

    section: Section
    label: str
    seq: int | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """Something to look at: a title, one fact, and one link."""

    kind: FindingKind
    tone: Tone
    title: str
    fact: Sentence
    link: LinkTarget


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """Patterns of one operation, in the plan's own words."""

    label: str
    patterns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LimitUse:
    """A limit of the plan: how much all sessions together used of it."""

    name: str
    label: str
    used: int
    allowed: int


@dataclass(frozen=True, slots=True)
class ApprovalInterval:
    """When an edited word approved a plan: after the one record and before the other. Its moment is not known."""

    after_seq: int | None
    after: str | None
    before_seq: int
    before: str


@dataclass(frozen=True, slots=True)
class PlanCard:
    """A plan that changes were made under, as it was approved."""

    plan_id: str
    title: str | None
    """None if the plan's text is not known any more."""
    approver: str | None
    how: ApprovalHow | None
    """None if the plan was never approved. With `edited` the approver's name is only a claim."""
    approved_at: str | None
    interval: ApprovalInterval | None
    sealed_seq: int | None
    plan_hash: str | None
    scope: tuple[ScopeRow, ...]
    limits: tuple[LimitUse, ...]
    is_changed_since: bool = False
    """Whether the plan's file is no longer the one that was approved."""
    withdrawn: str | None = None
    """`reject` or `revoke`, if the plan was not approved since."""


@dataclass(frozen=True, slots=True)
class FileCall:
    """One call's change of a file, with its own diff."""

    seq: int
    request_id: str
    at: str
    tool_name: str
    operation: str
    source: str | None
    is_undo: bool
    is_undone: bool
    is_selected: bool
    """Whether the call belongs to what is reviewed; False for a later change by another session or plan."""
    diff: ReviewDiff


@dataclass(frozen=True, slots=True)
class FileReview:
    """One file: what is left in the end, and the calls that led to it."""

    path: str
    source: str | None
    """Its name before, if it was renamed."""
    operation: FileOperation
    state: FileState
    state_words: str
    before_hash: str | None
    now_hash: str | None
    mode_before: int | None
    mode_now: int | None
    lines_added: int
    """Lines of the net diff that the selected calls added. Those written without Kaiza do not count."""
    lines_removed: int
    diff: ReviewDiff
    calls: tuple[FileCall, ...]


@dataclass(frozen=True, slots=True)
class UngovernedFile:
    """A file that changed without Kaiza. `diff` is folded where the old content was not kept."""

    path: str
    change: UngovernedChange
    source: str | None
    is_in_scope: bool
    is_over_governed: bool
    """Whether Kaiza wrote the file before."""
    note: str
    diff: ReviewDiff


@dataclass(frozen=True, slots=True)
class UngovernedReview:
    """Changes without Kaiza. `manifest` None: there was nothing to compare with, so nothing is known."""

    manifest: Literal["whole", "partial"] | None = None
    not_covered: int = 0
    compared_since: str | None = None
    count: int = 0
    files: tuple[UngovernedFile, ...] = ()
    compared: int = 0
    """Files and directories that were compared."""


@dataclass(frozen=True, slots=True)
class ReportLink:
    """The report that an agent wrote after a refusal."""

    seq: int
    path: str | None
    at: str
    text: str | None = None
    """What it says, if the file is still the one that was written."""


@dataclass(frozen=True, slots=True)
class RefusalReview:
    """A refused call, in words. `tone` note: an ordinary mistake."""

    seq: int
    request_id: str
    at: str
    actor: Actor
    tone: Tone
    words: str
    is_ordinary: bool
    tool_name: str
    paths: tuple[str, ...]
    rule: str
    error_code: str
    is_locking: bool
    report: ReportLink | None = None


@dataclass(frozen=True, slots=True)
class RecordRow:
    """One record: the columns of the list, and the line of the log."""

    seq: int
    at: str
    actor: Actor
    kind: str
    tool_name: str
    what: str
    outcome: str
    group: RecordGroup
    duration_ms: int | None
    line: str
    """The record as JSON, its members in the order of the log."""


@dataclass(frozen=True, slots=True)
class ReviewCommand:
    """A command to type, and what it does."""

    command: str
    purpose: str


@dataclass(frozen=True, slots=True)
class ReviewReport:
    """Everything that a review shows."""

    selection: ReviewSelection
    source: ReviewSource
    sessions: tuple[SessionCard, ...]
    verdict: ReviewVerdict
    findings: tuple[ReviewFinding, ...] = ()
    plans: tuple[PlanCard, ...] = ()
    timeline: Timeline = field(default_factory=Timeline)
    files: tuple[FileReview, ...] = ()
    ungoverned: UngovernedReview = field(default_factory=UngovernedReview)
    refusals: tuple[RefusalReview, ...] = ()
    records: tuple[RecordRow, ...] = ()
    omitted_records: int = 0
    """Records of the selection that are not in `records`."""
    commands: tuple[ReviewCommand, ...] = ()
