"""Plan cards: who approved and how, what the plan allows, how much of its limits is used."""

from kaiza.domain.review.report import LimitUse, PlanCard, ReviewReport
from kaiza.render.html.markup import EMPTY, Html, escape, join, tag
from kaiza.render.html.parts import link_record, render_section, render_tag
from kaiza.render.terminal import format_time

_HOW = {
    "edited": ("warn", "edited file"),
    "command": ("ok", "by command"),
    "merged": ("ok", "by merge"),
    "signed": ("ok", "signed"),
    "unproven": ("warn", "not proven"),
}
_WITHDRAWN = {"reject": "rejected", "REJECTED": "rejected", "DONE": "done", "DRAFT": "a draft again"}
_NEARLY_USED = 0.8
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
        rows.append(("Sealed", _render_seal(card)))
    rows += [(row.label, join(_render_patterns(row.patterns))) for row in card.scope]
    if card.is_changed_since:
        rows.append(("Now", render_tag("warn", "the file has changed since")))
    if card.withdrawn:
        rows.append(("Now", render_tag("note", _WITHDRAWN.get(card.withdrawn, "revoked"))))
    facts = (join([tag("dt", {}, escape(label)), tag("dd", {}, value)]) for label, value in rows)
    heading = tag("h3", {}, escape(card.title or card.plan_id))
    return join([heading, tag("dl", {"class": "facts"}, *facts), _render_meters(card.limits)])


def _render_approval(card: PlanCard) -> Html:
    if card.how is None:
        return render_tag("bad", "never")
    tone, how = _HOW[card.how]
    parts = [escape(card.approver or "no name given"), escape(" "), render_tag(tone, how)]
    if card.how == "edited" and card.approver:
        parts.append(escape(" The name is a claim: whatever can edit the file can write it."))
    if card.interval is not None:
        parts.append(_render_interval(card))
    elif card.approved_at:
        parts.append(escape(f" {format_time(card.approved_at)}"))
    return join(parts)


def _render_interval(card: PlanCard) -> Html:
    interval = card.interval
    if interval is None:
        return EMPTY
    before = join(
        [escape(" Edited before "), link_record(interval.before_seq), escape(f" ({format_time(interval.before)})")]
    )
    if interval.after_seq is None:
        return before
    return join([escape(" Edited after "), link_record(interval.after_seq), escape(";"), before])


def _render_seal(card: PlanCard) -> Html:
    plan_hash = card.plan_hash or ""
    digest = tag("code", {"title": plan_hash}, escape(f"{plan_hash[:_SHOWN_HASH]}…"))
    if card.sealed_seq is None:
        return digest
    return join([escape("in record "), link_record(card.sealed_seq), escape(", "), digest])


def _render_patterns(patterns: tuple[str, ...]) -> list[Html]:
    return [join([tag("code", {}, escape(pattern)), tag("br", {})]) for pattern in patterns]


def _render_meters(limits: tuple[LimitUse, ...]) -> Html:
    if not limits:
        return EMPTY
    return tag("div", {"class": "meters"}, *(_render_meter(limit) for limit in limits))


def _render_meter(limit: LimitUse) -> Html:
    words = f"{limit.used:,} of {limit.allowed:,}"
    attributes = {
        "min": 0,
        "max": max(limit.allowed, 1),
        "high": str(limit.allowed * _NEARLY_USED),
        "optimum": 0,
        "value": limit.used,
        "aria-label": f"{limit.label}: {words}",
    }
    return join(
        [tag("span", {"class": "soft"}, escape(limit.label)), tag("meter", attributes), tag("span", {}, escape(words))]
    )
