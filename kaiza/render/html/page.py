"""Review page: one HTML file that opens by a double click and makes no request."""

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from kaiza.domain.review.report import LinkTarget, ReviewCommand, ReviewReport
from kaiza.render.html.files import file_anchor, render_files
from kaiza.render.html.markup import (
    EMPTY,
    Html,
    css_tone,
    escape,
    escape_plain,
    join,
    render_counts,
    render_facts,
    render_section,
    render_sentence,
    tag,
)
from kaiza.render.html.plan_cards import render_plans
from kaiza.render.html.record_list import render_record_list
from kaiza.render.html.refusals import render_refusals, render_ungoverned
from kaiza.render.html.timeline_chart import render_timeline
from kaiza.render.terminal import format_time

_KEYS = (
    ("j k", "next, previous part of the page"),
    ("n p", "next, previous file"),
    ("/", "filter the records"),
    ("g", "back to the top"),
    ("t", "light or dark"),
    ("?", "this list"),
    ("Esc", "close"),
)


@dataclass(frozen=True, slots=True)
class Assets:
    """Content of the page's style and script elements."""

    style: str
    script: str

    @property
    def policy(self) -> str:
        """Content security policy of the page: no request, and no style or script but these two."""
        style, script = (
            f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"
            for content in (self.style, self.script)
        )
        return (
            f"default-src 'none'; style-src '{style}'; script-src '{script}'; "
            "img-src 'none'; base-uri 'none'; form-action 'none'"
        )


@cache
def load_assets() -> Assets:
    """The files `review.css` and `review.js` of this package."""
    folder = files(__package__)
    return Assets((folder / "review.css").read_text("utf-8"), (folder / "review.js").read_text("utf-8"))


def render_review(report: ReviewReport) -> str:
    """The page of a report."""
    assets = load_assets()
    return f'<!doctype html>\n<html lang="en">{_render_head(report, assets)}{_render_body(report, assets)}</html>\n'


def title_of(report: ReviewReport) -> str:
    """The page's title: the workspace and what is reviewed."""
    plan = next((card.title for card in report.plans if card.title), None)
    return f"{report.source.workspace_name}: {plan or report.selection.id or 'records'} · Kaiza review"


def _render_head(report: ReviewReport, assets: Assets) -> Html:
    return tag(
        "head",
        {},
        tag("meta", {"charset": "utf-8"}),
        tag("meta", {"http-equiv": "Content-Security-Policy", "content": assets.policy}),
        tag("meta", {"name": "viewport", "content": "width=device-width, initial-scale=1"}),
        tag("meta", {"name": "referrer", "content": "no-referrer"}),
        tag("title", {}, escape_plain(title_of(report))),
        Html(f"<style>{assets.style}</style>"),
    )


def _render_body(report: ReviewReport, assets: Assets) -> Html:
    source = report.source
    made = f"Made by Kaiza {source.kaiza} at {format_time(source.made_at)} from record {source.head_seq} of "
    return tag(
        "body",
        {},
        tag("a", {"class": "skip", "href": "#verdict"}, escape("Skip to the verdict")),
        _render_bar(report),
        tag(
            "main",
            {},
            _render_verdict(report),
            _render_findings(report),
            tag("div", {"class": "pair"}, render_plans(report), render_timeline(report)),
            render_files(report),
            render_ungoverned(report),
            render_refusals(report.refusals),
            render_record_list(report),
            render_section(
                "commands",
                "What you can do",
                f"type these in {source.workspace}",
                tag("ul", {"class": "commands"}, *map(_render_command, report.commands)),
            ),
        ),
        tag(
            "footer",
            {},
            escape(made),
            tag("code", {}, escape(source.workspace)),
            escape(", hash "),
            tag("code", {}, escape(source.head_hash)),
            escape("."),
        ),
        _render_keys(),
        Html(f"<script>{assets.script}</script>"),
    )


def _render_bar(report: ReviewReport) -> Html:
    counts = report.verdict.counts
    links = (
        ("#verdict", "Verdict", None),
        ("#plan", "Plan", None),
        ("#files", "Files", len(report.files)),
        ("#outside", "Without Kaiza", counts.ungoverned),
        ("#refusals", "Refused", len(report.refusals)),
        ("#records", "Records", counts.records),
        ("#commands", "Undo", None),
    )
    parts = (
        tag(
            "a",
            {"href": target},
            escape(label),
            EMPTY if count is None else tag("b", {}, escape(f" {count:,}")),
        )
        for target, label, count in links
    )
    where = f"{report.source.workspace_name} · {format_time(report.source.made_at)}"
    return tag(
        "header",
        {"class": "bar"},
        tag("b", {}, escape("Kaiza review")),
        tag("span", {"class": "where"}, escape(where)),
        tag("nav", {"aria-label": "Parts of this page"}, *parts),
        _render_button("theme", "◐", "Light or dark (t)"),
        _render_button("help", "?", "Keys (?)"),
    )


def _render_button(identifier: str, sign: str, label: str) -> Html:
    return tag("button", {"id": identifier, "class": "round", "aria-label": label, "title": label}, escape(sign))


def _render_verdict(report: ReviewReport) -> Html:
    """The sentence on top, why, who called, the chips and the four numbers."""
    verdict, counts = report.verdict, report.verdict.counts
    # For a reader who knows neither the agents nor Kaiza.
    names = dict.fromkeys(f"{card.client or 'an agent without a name'} as the {card.actor}" for card in report.sessions)
    what = "Kaiza checks every call of an agent against the plan, and records it"
    words = tag(
        "div",
        {},
        tag("h1", {"id": "verdict-title"}, escape(verdict.sentence)),
        tag("p", {}, render_sentence(verdict.why)),
        tag("p", {}, escape(f"{what}. Here: {', '.join(names)}." if names else f"{what}.")),
        tag(
            "div",
            {},
            *(tag("span", {"class": f"chip {css_tone(chip.tone)}"}, escape(chip.text)) for chip in verdict.chips),
        ),
    )
    numbers = (
        ("calls", escape(f"{counts.calls:,}")),
        ("file changes", escape(f"{counts.changes:,}")),
        ("refusals", escape(f"{counts.refusals:,}")),
        ("lines left", render_counts(counts.lines_added, counts.lines_removed)),
    )
    pairs = (tag("div", {}, tag("dt", {}, escape(label)), tag("dd", {}, value)) for label, value in numbers)
    attributes = {
        "id": "verdict",
        "class": f"card verdict {css_tone(verdict.tone)}",
        "tabindex": -1,
        "aria-labelledby": "verdict-title",
    }
    return tag("section", attributes, words, tag("dl", {"class": "numbers"}, *pairs))


def _render_findings(report: ReviewReport) -> Html:
    """At most five findings, the gravest first; one line where there is none."""
    if not report.findings:
        nothing = tag("li", {"class": "good"}, tag("span", {}, escape("Nothing found that needs a look.")))
        return render_section("look", "Look here first", "", tag("ul", {"class": "look"}, nothing))
    rows = (
        tag(
            "li",
            {"class": css_tone(finding.tone)},
            tag("div", {}, tag("b", {}, escape(finding.title)), tag("p", {}, render_sentence(finding.fact))),
            tag("a", {"class": "go", "href": f"#{_anchor_of(report, finding.link)}"}, escape(finding.link.label)),
        )
        for finding in report.findings
    )
    return render_section("look", "Look here first", "", tag("ol", {"class": "look"}, *rows))


def _anchor_of(report: ReviewReport, link: LinkTarget) -> str:
    """Where a finding leads: a record, a file, or a section."""
    if link.seq is not None:
        return f"r-{link.seq}"
    anchor = file_anchor(report, link.path) if link.path is not None else None
    return anchor or ("outside" if link.section == "ungoverned" else link.section)


def _render_command(command: ReviewCommand) -> Html:
    """A command to type in the workspace, with a button that copies it."""
    button = {"data-copy": command.command, "aria-label": f"Copy: {command.command}"}
    return tag(
        "li",
        {},
        tag("span", {}, escape(command.purpose)),
        tag("code", {}, escape(command.command)),
        tag("button", button, escape("Copy")),
    )


def _render_keys() -> Html:
    rows = ((join(tag("kbd", {}, escape(key)) for key in keys.split()), escape(meaning)) for keys, meaning in _KEYS)
    close = tag("button", {"data-close": ""}, escape("Close"))
    attributes = {"id": "keys", "class": "keys", "aria-labelledby": "keys-title"}
    return tag("dialog", attributes, tag("h2", {"id": "keys-title"}, escape("Keys")), render_facts(rows), close)
