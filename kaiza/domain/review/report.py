"""Report of a review: one value, computed once, that every form (HTML, Markdown, JSON, SARIF, terminal) shows.

Texts are as they were recorded or read. Each form escapes them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from kaiza.domain.review.diff import ReviewDiff
from kaiza.domain.review.json_document import HIDDEN, IF_SET, INLINE, NAME, as_document, in_json_as
from kaiza.domain.review.sentence import Sentence

MAX_FINDINGS = 5
MAX_UNGOVERNED = 200

Actor = Literal["person", "planner", "executor", "outside"]
ACTORS: tuple[Actor, ...] = ("person", "planner", "executor", "outside")
ACTOR_NAMES = {"person": "Person", "planner": "Planner", "executor": "Executor", "outside": "Without Kaiza"}

EventKind = Literal[
    "read",  # reads, searches, status, sessions
    "change",
    "undone_change",  # a change that was undone later
    "undo",
    "draft",  # a plan was saved
    "report",
    "refusal",
    "locking_refusal",
    "approval",
    "decision",  # another decision of a person: revoke, freeze, unlock, …
    "recovery",
    "outside",  # changes without Kaiza
]
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


class ApprovalWords(NamedTuple):
    """How a plan was approved: in a sentence after "approved", in a tag, and what it is worth."""

    way: str
    tag: str
    tone: Tone


APPROVAL_WORDS: Mapping[ApprovalHow, ApprovalWords] = {
    "edited": ApprovalWords("by an edit of its file", "edited file", "warn"),
    "command": ApprovalWords("by command", "by command", "ok"),
    "merged": ApprovalWords("by a merge", "by merge", "ok"),
    "signed": ApprovalWords("by a signature", "signed", "ok"),
    "unproven": ApprovalWords("not proven", "not proven", "warn"),
}


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
    chips: tuple[ReviewChip, ...] = field(metadata=HIDDEN)
    counts: ReviewCounts = field(metadata=HIDDEN)


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
    scope: Mapping[str, tuple[str, ...]]
    """Patterns of each operation, in the plan's own words."""
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
    at: str = field(metadata=in_json_as("timestamp"))
    tool_name: str
    operation: str
    source: str | None = field(metadata=NAME)
    is_undo: bool
    is_undone: bool
    is_selected: bool
    """Whether the call belongs to what is reviewed; False for a later change by another session or plan."""
    diff: ReviewDiff = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class FileReview:
    """One file: what is left in the end, and the calls that led to it."""

    path: str = field(metadata=NAME)
    source: str | None = field(metadata=NAME)
    """Its name before, if it was renamed."""
    operation: FileOperation
    state: FileState
    state_words: str = field(metadata=HIDDEN)
    before_hash: str | None
    now_hash: str | None
    mode_before: int | None
    mode_now: int | None
    lines_added: int
    """Lines of the net diff that the selected calls added. Those written without Kaiza do not count."""
    lines_removed: int
    calls: tuple[FileCall, ...]
    diff: ReviewDiff = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class UngovernedFile:
    """A file that changed without Kaiza. `diff` is folded where the old content was not kept."""

    path: str = field(metadata=NAME)
    change: UngovernedChange
    source: str | None = field(metadata=in_json_as("from") | IF_SET | NAME)
    is_in_scope: bool = field(metadata=in_json_as("in_scope"))
    is_over_governed: bool = field(metadata=in_json_as("over_governed"))
    """Whether Kaiza wrote the file before."""
    note: str
    diff: ReviewDiff = field(metadata=INLINE)


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
    paths: tuple[str, ...] = field(metadata=NAME)
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
class TimelineEvent:
    """One event. `until` is set where only an interval is known: an approval by editing, changes without Kaiza."""

    kind: EventKind
    actor: Actor
    at: str
    label: str
    """What happened in a few words, without paths: `write_file`, `approved by an edit of its file`, `3 files`."""
    seq: int | None = None
    until: str | None = None
    path: str | None = None
    error_code: str | None = None


@dataclass(frozen=True, slots=True)
class LockedSpan:
    """Time in which a role was locked. `to` is None if it still is."""

    actor: Actor
    role: str
    since: str
    locked_by: int
    to: str | None = None
    released_by: int | None = None
    """Number of the report's or the person's record that released it."""
    release: Literal["report", "person"] | None = None
    other_session: str | None = None
    """The session whose refusal locked, if that refusal is not under review."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """Events in the order of time, and locked spans."""

    events: tuple[TimelineEvent, ...] = ()
    locks: tuple[LockedSpan, ...] = ()
    begins_at: str | None = None
    ends_at: str | None = None


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

    def as_json(self) -> dict[str, Any]:
        """The document that `schemas/review.json` describes."""
        sessions, plans = as_document(self.sessions), as_document(self.plans)
        verdict, source, seqs = self.verdict, self.source, [row.seq for row in self.records]
        return {
            "selection": as_document(self.selection),
            "session": sessions[0] if len(sessions) == 1 else None,
            "sessions": sessions,
            "plan": plans[0] if len(plans) == 1 else None,
            "plans": plans,
            "verdict": {
                **as_document(verdict),
                "record": source.verdict,
                "anchored": source.is_anchored,
                "facts": as_document(verdict.chips),
            },
            "counts": as_document(verdict.counts),
            "limits": [{"plan_id": plan["plan_id"], **limit} for plan in plans for limit in plan["limits"]],
            "findings": as_document(self.findings),
            "files": as_document(self.files),
            "manifest": self.ungoverned.manifest,
            "ungoverned": as_document(self.ungoverned.files),
            "refusals": as_document(self.refusals),
            "records": {
                "count": verdict.counts.records,
                "first_seq": min(seqs, default=None),
                "last_seq": max(seqs, default=None),
                "head": {"seq": source.head_seq, "entry_hash": source.head_hash},
                "made_at": source.made_at,
                "kaiza": source.kaiza,
                "workspace": source.workspace,
            },
        }
