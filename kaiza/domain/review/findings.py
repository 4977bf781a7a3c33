"""What to look at first: at most five findings, worst first, and the verdict that stands above them.

A finding has one fact and one link. The verdict says what to do, why, and four facts as chips.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kaiza.domain.audit.record import Record
from kaiza.domain.review.evidence import InterruptedChange
from kaiza.domain.review.refusals import is_control_attempt
from kaiza.domain.review.report import (
    MAX_FINDINGS,
    FindingKind,
    LinkTarget,
    LockedSpan,
    PlanCard,
    RefusalReview,
    ReviewChip,
    ReviewCounts,
    ReviewFinding,
    ReviewSource,
    ReviewVerdict,
    Tone,
    UngovernedFile,
    UngovernedReview,
)
from kaiza.domain.review.sentence import Phrase, Sentence, join_quoted, quote, say

LIMIT_SHARE = 0.8
"""A limit of which more than this is used gets a finding."""
SOUND_VERDICTS = frozenset({"intact", "torn_tail", "unverified"})
_MAX_NAMED = 3
_ID_LENGTH = 8
_NUMBERS = ("no things", "one thing", "two things", "three things", "four things", "five things")
_REASONS: dict[FindingKind, str] = {
    "record_not_intact": "the audit log is not intact",
    "interrupted_change": "a crash interrupted a change, which is not settled",
    "ungoverned_governed": "files changed without Kaiza",
    "ungoverned": "files changed without Kaiza",
    "locking_refusal": "a refused call locked all changes",
    "control_attempt": "the agent reached for plans, the record or control files",
    "edited_approval": "only an edited file shows the approval",
    "unclear_recovery": "a recovery left something unknown",
    "limit_nearly_used": "a limit is nearly used up",
}


@dataclass(frozen=True, slots=True)
class FindingSources:
    """What findings and the verdict are taken from."""

    source: ReviewSource
    selected: Sequence[Record]
    others: Sequence[Record]
    refusals: Sequence[RefusalReview]
    locks: Sequence[LockedSpan]
    plans: Sequence[PlanCard]
    ungoverned: UngovernedReview
    counts: ReviewCounts
    interrupted: Sequence[InterruptedChange] = ()


def collect_findings(sources: FindingSources) -> tuple[ReviewFinding, ...]:
    """The first MAX_FINDINGS findings, in the order of their kinds."""
    found = [
        *_record_findings(sources.source),
        *_interruption_findings(sources.interrupted),
        *_ungoverned_findings(sources.ungoverned),
        *_locking_findings(sources.refusals),
        *_control_findings(sources),
        *_approval_findings(sources.plans),
        *_recovery_findings([*sources.selected, *sources.others]),
        *_limit_findings(sources.plans),
    ]
    return tuple(found[:MAX_FINDINGS])


def _record_findings(source: ReviewSource) -> Iterator[ReviewFinding]:
    if source.verdict in SOUND_VERDICTS:
        return
    fact = say(
        "The audit log is ", quote(source.verdict), ". What follows may not be all that happened, or not what happened."
    )
    link = LinkTarget("records", "Records")
    yield ReviewFinding("record_not_intact", "bad", "The record is not intact", fact, link)


def _interruption_findings(interrupted: Iterable[InterruptedChange]) -> Iterator[ReviewFinding]:
    for each in interrupted:
        more = f" and {len(each.paths) - _MAX_NAMED:,} more" if len(each.paths) > _MAX_NAMED else ""
        fact = say(
            *("A crash interrupted ", quote(each.tool_name), " on ", *join_quoted(list(each.paths[:_MAX_NAMED])), more),
            ". Some of it may be there. The next call of an agent completes it or takes it back.",
        )
        link = LinkTarget("records", f"Record #{each.seq}", seq=each.seq)
        yield ReviewFinding("interrupted_change", "bad", "A change was interrupted, and is not settled", fact, link)


def _ungoverned_findings(ungoverned: UngovernedReview) -> Iterator[ReviewFinding]:
    governed = [file for file in ungoverned.files if file.is_over_governed or file.is_in_scope]
    others = [file for file in ungoverned.files if file not in governed]
    if governed:
        over = sum(file.is_over_governed for file in governed)
        where = "inside the plan's scope"
        if over == len(governed):
            where = "after Kaiza wrote it" if over == 1 else "after Kaiza wrote them"
        advice = ". The plan allows changes there, but no call made these."
        if over:
            which = "" if over == len(governed) else f" {over} of them after Kaiza wrote the file."
            advice = f".{which} `kaiza undo` leaves these files as they are, with what the agent wrote in them."
        yield _ungoverned_finding("ungoverned_governed", governed, len(governed), f", {where}", advice)
    # The report lists only some of very many files; the count is of all.
    count = ungoverned.count - len(governed)
    if count:
        yield _ungoverned_finding("ungoverned", others, count, "", ". No call of this report explains it.")


def _ungoverned_finding(
    kind: FindingKind, files: Sequence[UngovernedFile], count: int, where: str, advice: str
) -> ReviewFinding:
    named = join_quoted([file.path for file in files[:_MAX_NAMED]], "and" if count <= _MAX_NAMED else ",")
    more = f" and {count - _MAX_NAMED:,} more" if count > _MAX_NAMED else ""
    files_words = "1 file" if count == 1 else f"{count:,} files"
    link = LinkTarget("ungoverned", "Show the file" if count == 1 else f"Show the {files_words}")
    return ReviewFinding(kind, "warn", f"{files_words} changed without Kaiza{where}", say(*named, more, advice), link)


def _locking_findings(refusals: Iterable[RefusalReview]) -> Iterator[ReviewFinding]:
    locking = [refusal for refusal in refusals if refusal.is_locking]
    if not locking:
        return
    first = locking[0]
    reported = "changes were locked until a report" if first.report else "changes were locked"
    fact = say(quote(first.tool_name), *_name_paths(first), f" was refused; {reported}.")
    title = first.words if len(locking) == 1 else f"{len(locking)} attempts locked the role; the first: {first.words}"
    yield ReviewFinding("locking_refusal", "bad", title, fact, _link_call(first))


def _control_findings(sources: FindingSources) -> Iterator[ReviewFinding]:
    locking = {refusal.seq for refusal in sources.refusals if refusal.is_locking}
    attempts = [record for record in sources.selected if is_control_attempt(record) and record.seq not in locking]
    if not attempts:
        return
    first = next(refusal for refusal in sources.refusals if refusal.seq == attempts[0].seq)
    more = f" {len(attempts)} such calls in all." if len(attempts) > 1 else ""
    if first.tool_name == "save_plan":
        title, fact = "It tried to save a plan that claims an approval", say(f"Refused: no tool can approve.{more}")
    else:
        title = "It tried to change plans, the record or control files"
        fact = say(quote(first.tool_name), *_name_paths(first), f" was refused.{more}")
    yield ReviewFinding("control_attempt", "warn", title, fact, _link_call(first))


def _name_paths(refusal: RefusalReview) -> list[str | Phrase]:
    return [" on ", *join_quoted(list(refusal.paths[:_MAX_NAMED]))] if refusal.paths else []


def _link_call(refusal: RefusalReview) -> LinkTarget:
    return LinkTarget("refusals", f"Call #{refusal.seq}", seq=refusal.seq)


def _approval_findings(plans: Iterable[PlanCard]) -> Iterator[ReviewFinding]:
    for plan in plans:
        if plan.how == "edited":
            name = [" says ", quote(plan.approver), "."] if plan.approver else [" names no person."]
            doubt = " Whatever can edit that file can write this; no command and no signature confirms it."
            fact = say("The file of ", quote(plan.plan_id), *name, doubt)
            link = LinkTarget("plan", "Plan")
            yield ReviewFinding("edited_approval", "note", "Approved only by an edit of the plan's file", fact, link)


def _recovery_findings(records: Iterable[Record]) -> Iterator[ReviewFinding]:
    for record in records:
        is_unclear = record.detail.get("result") == "unknown" or record.detail.get("left")
        if record.kind == "recovery" and is_unclear:
            paths = [change["path"] for change in record.changes][:_MAX_NAMED]
            what = ["It is not known whether ", *join_quoted(paths)] if paths else ["It is not known what"]
            fact = say(*what, " changed: a crash interrupted the call, and the files are as neither side left them.")
            link = LinkTarget("records", f"Record #{record.seq}", seq=record.seq)
            yield ReviewFinding("unclear_recovery", "warn", "A recovery left something unknown", fact, link)


def _limit_findings(plans: Iterable[PlanCard]) -> Iterator[ReviewFinding]:
    for plan in plans:
        near = [limit for limit in plan.limits if limit.used > LIMIT_SHARE * limit.allowed]
        if near:
            worst = max(near, key=lambda limit: limit.used / max(limit.allowed, 1))
            fact = say(f"{worst.label}: {worst.used:,} of {worst.allowed:,} under ", quote(plan.plan_id), ".")
            link = LinkTarget("plan", "Plan")
            yield ReviewFinding("limit_nearly_used", "note", "A limit is nearly used up", fact, link)


def compose_verdict(sources: FindingSources, findings: Sequence[ReviewFinding]) -> ReviewVerdict:
    """The verdict. Notes are findings too, but nothing that must be looked at."""
    serious = [finding for finding in findings if finding.tone != "note"]
    tone: Tone = "bad" if any(finding.kind == "record_not_intact" for finding in findings) else "warn"
    if serious:
        notes = len(findings) - len(serious)
        more = f", and at {'a note' if notes == 1 else 'some notes'}" if notes else ""
        sentence = f"Look at {_NUMBERS[len(serious)]} before you accept this{more}."
    elif findings:
        tone = "note"
        sentence = "Nothing here needs you; there is a note." if len(findings) == 1 else "Nothing here needs you."
    else:
        tone, sentence = "ok", "Nothing found that you must look at."
    chips = (
        _record_chip(sources.source),
        _plan_chip(sources.plans, sources.counts),
        _ungoverned_chip(sources.ungoverned),
        _lock_chip(sources.locks),
    )
    return ReviewVerdict(tone, sentence, _explain_verdict(sources, findings), chips, sources.counts)


def _explain_verdict(sources: FindingSources, findings: Sequence[ReviewFinding]) -> Sentence:
    parts: list[str | Phrase] = []
    if sources.counts.changes + sources.counts.undos == 0:
        parts.append("Nothing was changed through Kaiza")
    else:
        parts.append("Every change made through Kaiza was inside ")
        parts.append("the approved plan" if len(sources.plans) == 1 else "an approved plan")
        # Whatever can edit the plan's file can write a name, so that name is not repeated as a fact.
        people = list(dict.fromkeys(plan.approver for plan in sources.plans if plan.approver and plan.how != "edited"))
        parts += [", which ", *join_quoted(people), " approved"] if people else []
    if sources.source.verdict == "intact" and not sources.interrupted:
        parts.append(", and the audit log is complete")
    parts.append(".")
    reasons = list(dict.fromkeys(_REASONS[finding.kind] for finding in findings))
    if reasons:
        *first, last = reasons
        parts.append(f" But {', '.join(first)}, and {last}." if first else f" But {last}.")
    return say(*parts)


def _record_chip(source: ReviewSource) -> ReviewChip:
    if source.verdict == "intact":
        return ReviewChip("record", "ok", "Log intact, nothing cut off" if source.is_anchored else "Log intact")
    if source.verdict == "unverified":
        return ReviewChip("record", "note", "Log not yet verified as a whole")
    tone: Tone = "note" if source.verdict in SOUND_VERDICTS else "bad"
    return ReviewChip("record", tone, f"Log {source.verdict.replace('_', ' ')}")


def _plan_chip(plans: Sequence[PlanCard], counts: ReviewCounts) -> ReviewChip:
    if any(plan.is_changed_since for plan in plans):
        return ReviewChip("plan", "warn", "The plan's file changed after its approval")
    if not counts.changes:
        return ReviewChip("plan", "ok", "No changes")
    what = "The change" if counts.changes == 1 else f"All {counts.changes:,} changes"
    return ReviewChip("plan", "ok", f"{what} within the plan")


def _ungoverned_chip(ungoverned: UngovernedReview) -> ReviewChip:
    if ungoverned.count:
        what = "1 file" if ungoverned.count == 1 else f"{ungoverned.count:,} files"
        return ReviewChip("ungoverned", "warn", f"{what} changed without Kaiza")
    if ungoverned.manifest is None:
        return ReviewChip("ungoverned", "note", "Changes to other files are not known")
    if ungoverned.manifest == "partial":
        not_seen = f"No change without Kaiza seen; {ungoverned.not_covered:,} not compared"
        return ReviewChip("ungoverned", "note", not_seen)
    return ReviewChip("ungoverned", "ok", "Nothing changed without Kaiza")


def _lock_chip(locks: Sequence[LockedSpan]) -> ReviewChip:
    if not locks:
        return ReviewChip("locks", "ok", "Never locked")
    what = "Locked once" if len(locks) == 1 else f"Locked {len(locks)} times"
    others = sorted({lock.other_session[:_ID_LENGTH] for lock in locks if lock.other_session is not None})
    if others:
        what += f", by session {' and '.join(others)}"
    if any(lock.to is None for lock in locks):
        return ReviewChip("locks", "bad", f"{what}, still locked")
    by = {lock.release for lock in locks}
    return ReviewChip("locks", "bad", f"{what}, released by {' and '.join(sorted(filter(None, by)))}")
