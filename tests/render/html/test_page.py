"""The page as text: its policy, its size, and that every link has a target. `tests/browser` opens it."""

import base64
import hashlib
import json
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser

from review_samples import at, record, sample_report

from kaiza.domain.review.report import ReviewReport, ReviewVerdict, Timeline, TimelineEvent
from kaiza.domain.review.sentence import Sentence
from kaiza.render.html.page import load_assets, render_review, title_of

_VOID = {"meta", "br", "input"}


class Reader(HTMLParser):
    """Collects elements; fails if one is not closed where it should be."""

    def __init__(self, page):
        super().__init__()
        self.open = []
        self.elements = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        if name not in _VOID:
            self.open.append(name)

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def all(self, attribute):
        return [attributes[attribute] for _name, attributes in self.elements if attribute in attributes]


def unpack(text):
    return zlib.decompress(base64.b64decode(text)).decode()


def data_of(page):
    packed = json.loads(re.search(r'<script id="record-data" type="application/json">(.*?)</script>', page)[1])
    return {**json.loads(unpack(packed["columns"])), "blocks": [unpack(block) for block in packed["blocks"]]}


def test_the_page_is_well_formed_and_every_link_has_a_target():
    page = Reader(render_review(sample_report()))
    anchors = page.all("id")
    records = {f"#r-{row.seq}" for row in sample_report().records}

    assert len(anchors) == len(set(anchors))
    links = page.all("href")
    assert len(links) > 30
    assert {link for link in links if link not in records} <= {f"#{anchor}" for anchor in anchors}


def test_the_policy_names_exactly_the_style_and_the_script_of_the_page():
    page = render_review(sample_report())
    policy = next(value for value in Reader(page).all("content") if "default-src" in value)

    for element, directive in (("style", "style-src"), ("script", "script-src")):
        content = re.search(f"<{element}>(.*?)</{element}>", page, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")


def test_no_element_has_an_inline_style_a_handler_or_an_address_outside_the_page():
    page = Reader(render_review(sample_report()))

    for _name, attributes in page.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on") or name == "src"]
    assert all(link.startswith("#") for link in page.all("href"))


def test_style_and_script_take_at_most_40_kilobytes():
    assets = load_assets()

    assert 10_000 < len(assets.style.encode()) + len(assets.script.encode()) <= 40_000


def test_records_read_back_from_their_blocks_as_they_were():
    records = tuple(record(seq, note="\u202e<&>\udcff") for seq in range(1, 1202))
    data = data_of(render_review(sample_report(records=records)))
    lines = [line for block in data["blocks"] for line in block.split("\n")]

    assert [json.loads(line)["seq"] for line in lines] == data["seq"] == list(range(1, 1202))
    assert len(data["blocks"]) == 3
    assert [data["words"][index] for index in data["tool"]] == [row.tool_name for row in records]


def test_a_record_with_a_time_in_another_form_does_not_break_the_page():
    odd = replace(record(1), at="yesterday")
    event = TimelineEvent("change", "executor", "yesterday", "edit_file", 1)
    page = render_review(sample_report(records=(odd,), timeline=Timeline((event,), (), "yesterday", "later")))

    assert data_of(page)["at"] == [None]


def test_a_lane_with_many_events_counts_them_in_bins_but_draws_each_refusal():
    events = [TimelineEvent("read", "executor", at(second), "read_file", second) for second in range(1, 600)]
    events += [TimelineEvent("refusal", "executor", at(second), "write_file", second) for second in range(600, 900)]
    page = render_review(sample_report(timeline=Timeline(tuple(events), (), at(1), at(900))))
    marks = Reader(page).all("class")

    assert marks.count("refused") == 301  # one is in the legend
    assert marks.count("read") == 1
    assert 0 < marks.count("bin") <= 120


def test_an_empty_review_says_so_in_each_section():
    verdict = ReviewVerdict("ok", "Nothing was changed.", Sentence(), (), sample_report().verdict.counts)
    page = render_review(ReviewReport(sample_report().selection, sample_report().source, (), verdict))

    for words in (
        "Nothing found that needs a look.",
        "No plan was used",
        "No file was changed.",
        "No call was refused.",
        "not known",
    ):
        assert words in page
    Reader(page)


def test_the_title_names_the_workspace_and_the_plan_and_shows_hidden_characters():
    report = sample_report(source=replace(sample_report().source, workspace_name="<b>\u202eshop"))

    assert title_of(report).endswith("Rotate session tokens every day · Kaiza review")
    assert "<title>&lt;b&gt;\\u202eshop: Rotate" in render_review(report)
