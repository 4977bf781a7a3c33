"""Verdict, findings and commands: the first and the last thing that a reader of the review page needs."""

from collections.abc import Sequence

from kaiza.domain.review.report import ReviewCommand, ReviewFinding, ReviewReport, SessionCard
from kaiza.render.html.markup import Html, escape, tag
from kaiza.render.html.parts import css_tone, render_counts, render_link, render_section, render_sentence


def render_verdict(report: ReviewReport) -> Html:
    """The sentence on top, why, the chips and the four numbers."""
    verdict = report.verdict
    chips = (tag("span", {"class": f"chip {css_tone(chip.tone)}"}, escape(chip.text)) for chip in verdict.chips)
    words = tag(
        "div",
        {},
        tag("h1", {"id": "verdict-title"}, escape(verdict.sentence)),
        tag("p", {}, render_sentence(verdict.why)),
        tag("p", {}, escape(_describe_agents(report.sessions))),
        tag("div", {}, *chips),
    )
    attributes = {
        "id": "verdict",
        "class": f"card verdict {css_tone(verdict.tone)}",
        "tabindex": -1,
        "aria-labelledby": "verdict-title",
    }
    return tag("section", attributes, words, _render_numbers(report))


def render_findings(report: ReviewReport) -> Html:
    """At most five findings, the gravest first; one line where there is none."""
    if not report.findings:
        nothing = tag("li", {"class": "good"}, tag("span", {}, escape("Nothing found that needs a look.")))
        return render_section("look", "Look here first", "", tag("ul", {"class": "look"}, nothing))
    rows = (_render_finding(report, finding) for finding in report.findings)
    return render_section("look", "Look here first", "", tag("ol", {"class": "look"}, *rows))


def render_commands(commands: Sequence[ReviewCommand], workspace: str) -> Html:
    """Commands to type in the workspace, each with a button that copies it."""
    rows = tag("ul", {"class": "commands"}, *map(_render_command, commands))
    return render_section("commands", "What you can do", f"type these in {workspace}", rows)


def _describe_agents(sessions: Sequence[SessionCard]) -> str:
    """Who called, and what Kaiza is, for a reader who knows neither."""
    names = dict.fromkeys(f"{card.client or 'an agent without a name'} as the {card.actor}" for card in sessions)
    what = "Kaiza checks every call of an agent against the plan, and records it"
    return f"{what}. Here: {', '.join(names)}." if names else f"{what}."


def _render_finding(report: ReviewReport, finding: ReviewFinding) -> Html:
    words = tag("div", {}, tag("b", {}, escape(finding.title)), tag("p", {}, render_sentence(finding.fact)))
    return tag("li", {"class": css_tone(finding.tone)}, words, render_link(report, finding.link))


def _render_numbers(report: ReviewReport) -> Html:
    counts = report.verdict.counts
    numbers = (
        (escape(f"{counts.calls:,}"), "calls"),
        (escape(f"{counts.changes:,}"), "file changes"),
        (escape(f"{counts.refusals:,}"), "refusals"),
        (render_counts(counts.lines_added, counts.lines_removed), "lines left"),
    )
    pairs = (tag("div", {}, tag("dt", {}, escape(label)), tag("dd", {}, value)) for value, label in numbers)
    return tag("dl", {"class": "numbers"}, *pairs)


def _render_command(command: ReviewCommand) -> Html:
    button = {"data-copy": command.command, "aria-label": f"Copy: {command.command}"}
    return tag(
        "li",
        {},
        tag("span", {}, escape(command.purpose)),
        tag("code", {}, escape(command.command)),
        tag("button", button, escape("Copy")),
    )
