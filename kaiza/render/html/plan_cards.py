"""Plan cards: who approved and how, what the plan allows, how much of its limits is used."""

from kaiza.domain.review.findings import LIMIT_SHARE
from kaiza.domain.review.report import APPROVAL_WORDS, LimitUse, PlanCard, ReviewReport
from kaiza.render.html.markup import (
    EMPTY,
    Html,
    escape,
    join,
    link_record,
    render_facts,
    render_section,
    render_tag,
    tag,
)
from kaiza.render.terminal import format_time

_WITHDRAWN = {"reject": "rejected", "REJECTED": "rejected", "DONE": "done", "DRAFT": "a draft again"}
_SHOWN_HASH = 16


def render_plans(report: ReviewReport) -> Html:
    """All plans under which files were changed."""
    if not report.plans:
        note = tag("p", {"class": "soft"}, escape("No plan was used: no file could be changed."))
        return render_section("plan", "Plan", "", note)
    title = "Plan" if len(report.plans) == 1 else "Plans"
    return render_section("plan", title, "", *map(_render_card, report.plans))


def _render_card(card: PlanCard) -> Html:
    rows = [("Plan file", tag("code", {}, escape(f"plans/{card.plan_id}.md"))), ("Approved", _render_approval(card))]
    if card.plan_hash:
        digest = tag("code", {"title": card.plan_hash}, escape(f"{card.plan_hash[:_SHOWN_HASH]}…"))
        place = [] if card.sealed_seq is None else [escape("in record "), link_record(card.sealed_seq), escape(", ")]
        rows.append(("Sealed", join([*place, digest])))
    for label, patterns in card.scope.items():
        rows.append((label, join(join([tag("code", {}, escape(text)), tag("br", {})]) for text in patterns)))
    if card.is_changed_since:
        rows.append(("Now", render_tag("warn", "the file has changed since")))
    if card.withdrawn:
        rows.append(("Now", render_tag("note", _WITHDRAWN.get(card.withdrawn, "revoked"))))
    heading = tag("h3", {}, escape(card.title or card.plan_id))
    meters = tag("div", {"class": "meters"}, *map(_render_meter, card.limits)) if card.limits else EMPTY
    return join([heading, render_facts(((escape(label), value) for label, value in rows), "facts"), meters])


def _render_approval(card: PlanCard) -> Html:
    if card.how is None:
        return render_tag("bad", "never")
    words, interval = APPROVAL_WORDS[card.how], card.interval
    parts = [escape(card.approver or "no name given"), escape(" "), render_tag(words.tone, words.tag)]
    if card.how == "edited" and card.approver:
        parts.append(escape(" The name is a claim: whatever can edit the file can write it."))
    if interval is not None:
        if interval.after_seq is not None:
            parts += [escape(" Edited after "), link_record(interval.after_seq), escape(";")]
        parts += [escape(" Edited before "), link_record(interval.before_seq)]
        parts.append(escape(f" ({format_time(interval.before)})"))
    elif card.approved_at:
        parts.append(escape(f" {format_time(card.approved_at)}"))
    return join(parts)


def _render_meter(limit: LimitUse) -> Html:
    words = f"{limit.used:,} of {limit.allowed:,}"
    attributes = {
        "min": 0,
        "max": max(limit.allowed, 1),
        "high": str(limit.allowed * LIMIT_SHARE),
        "optimum": 0,
        "value": limit.used,
        "aria-label": f"{limit.label}: {words}",
    }
    return join(
        [tag("span", {"class": "soft"}, escape(limit.label)), tag("meter", attributes), tag("span", {}, escape(words))]
    )
