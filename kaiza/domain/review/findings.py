"""What to look at first: at most five findings, worst first, each with one fact and one link."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from kaiza.domain.review.actors import detail_of
from kaiza.domain.review.evidence import InterruptedChange, Record
from kaiza.domain.review.phrase import Phrase, join_quoted, quote, say
from kaiza.domain.review.refusals import is_control_attempt
from kaiza.domain.review.report import (
    MAX_FINDINGS,
    FindingKind,
    LinkTarget,
    PlanCard,
    RefusalReview,
    ReviewFinding,
    ReviewSource,
    UngovernedFile,
    UngovernedReview,
)
from kaiza.domain.review.timeline import LockedSpan

LIMIT_SHARE = 0.8
SOUND_VERDICTS = frozenset({"intact", "torn_tail", "unverified"})
_MAX_NAMED = 3


@dataclass(frozen=True, slots=True)
class FindingSources:
    """What findings are taken from."""

    source: ReviewSource
    selected: Sequence[Record]
    others: Sequence[Record]
    refusals: Sequence[RefusalReview]
    locks: Sequence[LockedSpan]
    plans: Sequence[PlanCard]
    ungoverned: UngovernedReview
    interrupted: Sequence[InterruptedChange] = ()


def collect_findings(sources: FindingSources) -> tuple[ReviewFinding, ...]:
    """The first MAX_FINDINGS findings, in the order of their kinds."""
    order = get_args(FindingKind)
    found = sorted(_all_findings(sources), key=lambda finding: order.index(finding.kind))
    return tuple(found[:MAX_FINDINGS])


def _all_findings(sources: FindingSources) -> Iterator[ReviewFinding]:
    yield from _record_findings(sources.source)
    yield from _interruption_findings(sources.interrupted)
    yield from _ungoverned_findings(sources.ungoverned)
    yield from _locking_findings(sources.refusals)
    yield from _control_findings(sources)
    yield from _approval_findings(sources.plans)
    yield from _recovery_findings([*sources.selected, *sources.others])
    yield from _limit_findings(sources.plans)


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
        where = "after Kaiza wrote it" if len(governed) == 1 else "after Kaiza wrote them"
        if not all(file.is_over_governed for file in governed):
            where = "inside the plan's scope"
        title = f"{_count_files(len(governed))} changed without Kaiza, {where}"
        fact = say(*_name_files(governed, len(governed)), _overwrite_sentence(governed))
        yield ReviewFinding("ungoverned_governed", "warn", title, fact, _ungoverned_link(len(governed)))
    count = ungoverned.count - len(governed)
    if count:
        title = f"{_count_files(count)} changed without Kaiza"
        fact = say(*_name_files(others, count), ". No call of this report explains it.")
        yield ReviewFinding("ungoverned", "warn", title, fact, _ungoverned_link(count))


def _overwrite_sentence(files: Sequence[UngovernedFile]) -> str:
    over = sum(file.is_over_governed for file in files)
    if not over:
        return ". The plan allows changes there, but no call made these."
    which = "" if over == len(files) else f" {over} of them after Kaiza wrote the file."
    return f".{which} `kaiza undo` leaves these files as they are, with what the agent wrote in them."


def _name_files(files: Sequence[UngovernedFile], count: int) -> list[str | Phrase]:
    named = join_quoted([file.path for file in files[:_MAX_NAMED]], "and" if count <= _MAX_NAMED else ",")
    return [*named, f" and {count - _MAX_NAMED:,} more"] if count > _MAX_NAMED else named


def _count_files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def _ungoverned_link(count: int) -> LinkTarget:
    return LinkTarget("ungoverned", "Show the file" if count == 1 else f"Show the {count:,} files")


def _locking_findings(refusals: Iterable[RefusalReview]) -> Iterator[ReviewFinding]:
    locking = [refusal for refusal in refusals if refusal.is_locking]
    if not locking:
        return
    first = locking[0]
    what = [" on ", *join_quoted(list(first.paths[:_MAX_NAMED]))] if first.paths else []
    reported = "changes were locked until a report" if first.report else "changes were locked"
    fact = say(quote(first.tool_name), *what, f" was refused; {reported}.")
    title = first.words if len(locking) == 1 else f"{len(locking)} attempts locked the role; the first: {first.words}"
    link = LinkTarget("refusals", f"Call #{first.seq}", seq=first.seq)
    yield ReviewFinding("locking_refusal", "bad", title, fact, link)


def _control_findings(sources: FindingSources) -> Iterator[ReviewFinding]:
    locking = {refusal.seq for refusal in sources.refusals if refusal.is_locking}
    attempts = [record for record in sources.selected if is_control_attempt(record) and record["seq"] not in locking]
    if not attempts:
        return
    seq = attempts[0]["seq"]
    row = next(refusal for refusal in sources.refusals if refusal.seq == seq)
    more = f" {len(attempts)} such calls in all." if len(attempts) > 1 else ""
    what = [" on ", *join_quoted(list(row.paths[:_MAX_NAMED]))] if row.paths else []
    if row.tool_name == "save_plan":
        title, fact = "It tried to save a plan that claims an approval", say(f"Refused: no tool can approve.{more}")
    else:
        title = "It tried to change plans, the record or control files"
        fact = say(quote(row.tool_name), *what, f" was refused.{more}")
    yield ReviewFinding("control_attempt", "warn", title, fact, LinkTarget("refusals", f"Call #{seq}", seq=seq))


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
        detail = detail_of(record)
        if record["kind"] == "recovery" and (detail.get("result") == "unknown" or detail.get("left")):
            paths = [change["path"] for change in record["changes"] or ()][:_MAX_NAMED]
            what = ["It is not known whether ", *join_quoted(paths)] if paths else ["It is not known what"]
            fact = say(*what, " changed: a crash interrupted the call, and the files are as neither side left them.")
            link = LinkTarget("records", f"Record #{record['seq']}", seq=record["seq"])
            yield ReviewFinding("unclear_recovery", "warn", "A recovery left something unknown", fact, link)


def _limit_findings(plans: Iterable[PlanCard]) -> Iterator[ReviewFinding]:
    for plan in plans:
        near = [limit for limit in plan.limits if limit.used > LIMIT_SHARE * limit.allowed]
        if near:
            worst = max(near, key=lambda limit: limit.used / max(limit.allowed, 1))
            fact = say(f"{worst.label}: {worst.used:,} of {worst.allowed:,} under ", quote(plan.plan_id), ".")
            link = LinkTarget("plan", "Plan")
            yield ReviewFinding("limit_nearly_used", "note", "A limit is nearly used up", fact, link)
