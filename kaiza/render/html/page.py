"""Review page: one HTML file that opens by a double click and makes no request."""

from kaiza.domain.review.report import ReviewReport
from kaiza.render.html.assets import Assets, load_assets
from kaiza.render.html.file_diffs import render_files
from kaiza.render.html.findings import render_commands, render_findings, render_verdict
from kaiza.render.html.markup import EMPTY, Html, escape, escape_plain, join, tag
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
    pair = tag("div", {"class": "pair"}, render_plans(report), render_timeline(report))
    return tag(
        "body",
        {},
        tag("a", {"class": "skip", "href": "#verdict"}, escape("Skip to the verdict")),
        _render_bar(report),
        tag(
            "main",
            {},
            render_verdict(report),
            render_findings(report),
            pair,
            render_files(report),
            render_ungoverned(report),
            render_refusals(report.refusals),
            render_record_list(report),
            render_commands(report.commands, report.source.workspace),
        ),
        _render_footer(report),
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
    where = f"{report.source.workspace_name} · {format_time(report.source.made_at)}"
    return tag(
        "header",
        {"class": "bar"},
        tag("b", {}, escape("Kaiza review")),
        tag("span", {"class": "where"}, escape(where)),
        tag("nav", {"aria-label": "Parts of this page"}, *(_render_link(*link) for link in links)),
        _render_button("theme", "◐", "Light or dark (t)"),
        _render_button("help", "?", "Keys (?)"),
    )


def _render_link(target: str, label: str, count: int | None) -> Html:
    number = EMPTY if count is None else tag("b", {}, escape(f" {count:,}"))
    return tag("a", {"href": target}, escape(label), number)


def _render_button(identifier: str, sign: str, label: str) -> Html:
    return tag("button", {"id": identifier, "class": "round", "aria-label": label, "title": label}, escape(sign))


def _render_footer(report: ReviewReport) -> Html:
    source = report.source
    made = f"Made by Kaiza {source.kaiza} at {format_time(source.made_at)} from record {source.head_seq} of "
    parts = [escape(made), tag("code", {}, escape(source.workspace)), escape(", hash ")]
    return tag("footer", {}, join(parts), tag("code", {}, escape(source.head_hash)), escape("."))


def _render_keys() -> Html:
    rows = [
        join([tag("dt", {}, *(tag("kbd", {}, escape(key)) for key in keys.split())), tag("dd", {}, escape(meaning))])
        for keys, meaning in _KEYS
    ]
    close = tag("button", {"data-close": ""}, escape("Close"))
    attributes = {"id": "keys", "class": "keys", "aria-labelledby": "keys-title"}
    return tag("dialog", attributes, tag("h2", {"id": "keys-title"}, escape("Keys")), tag("dl", {}, *rows), close)
