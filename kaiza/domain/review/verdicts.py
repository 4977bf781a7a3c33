"""The sentence on top of a report: what to do, why, and four facts as chips."""

from collections.abc import Iterable, Sequence

from kaiza.domain.review.findings import SOUND_VERDICTS
from kaiza.domain.review.phrase import Phrase, Sentence, join_quoted, say
from kaiza.domain.review.report import (
    PlanCard,
    ReviewChip,
    ReviewCounts,
    ReviewFinding,
    ReviewSource,
    ReviewVerdict,
    Tone,
    UngovernedReview,
)
from kaiza.domain.review.timeline import LockedSpan

_ID_LENGTH = 8
_NUMBERS = ("no things", "one thing", "two things", "three things", "four things", "five things")
_REASONS = {
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


def compose_verdict(
    source: ReviewSource,
    findings: Sequence[ReviewFinding],
    plans: Sequence[PlanCard],
    ungoverned: UngovernedReview,
    locks: Sequence[LockedSpan],
    counts: ReviewCounts,
) -> ReviewVerdict:
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
        _record_chip(source),
        _plan_chip(plans, counts),
        _ungoverned_chip(ungoverned),
        _lock_chip(locks),
    )
    why = _explain(source, findings, plans, counts)
    return ReviewVerdict(tone, sentence, why, chips, counts)


def _explain(
    source: ReviewSource, findings: Sequence[ReviewFinding], plans: Sequence[PlanCard], counts: ReviewCounts
) -> Sentence:
    parts: list[str | Phrase] = []
    if counts.changes + counts.undos == 0:
        parts.append("Nothing was changed through Kaiza")
    else:
        # Whatever can edit the plan's file can write a name, so that name is not repeated as a fact.
        people = list(dict.fromkeys(plan.approver for plan in plans if plan.approver and plan.how != "edited"))
        by = [", which ", *join_quoted(people), " approved"] if people else []
        parts += [
            "Every change made through Kaiza was inside ",
            "the approved plan" if len(plans) == 1 else "an approved plan",
            *by,
        ]
    if source.verdict == "intact" and not any(finding.kind == "interrupted_change" for finding in findings):
        parts.append(", and the audit log is complete")
    parts.append(".")
    reasons = list(dict.fromkeys(_REASONS[finding.kind] for finding in findings))
    if reasons:
        parts.append(f" But {_join(reasons)}.")
    return say(*parts)


def _join(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])}, and {words[-1]}"


def _record_chip(source: ReviewSource) -> ReviewChip:
    if source.verdict == "intact":
        return ReviewChip("record", "ok", "Log intact, nothing cut off" if source.is_anchored else "Log intact")
    if source.verdict == "unverified":
        return ReviewChip("record", "note", "Log not yet verified as a whole")
    tone: Tone = "note" if source.verdict in SOUND_VERDICTS else "bad"
    return ReviewChip("record", tone, f"Log {source.verdict.replace('_', ' ')}")


def _plan_chip(plans: Iterable[PlanCard], counts: ReviewCounts) -> ReviewChip:
    listed = list(plans)
    if any(plan.is_changed_since for plan in listed):
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
        return ReviewChip(
            "ungoverned", "note", f"No change without Kaiza seen; {ungoverned.not_covered:,} not compared"
        )
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
