"""The review page in a real browser: accessibility, keys, filter, links to records, print, policy."""

import json
from dataclasses import replace

import pytest
from review_samples import record, sample_report, stretched

from kaiza.render.html.page import render_review

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "review.html"
    path.write_text(render_review(sample_report()), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("width", "scheme", "background"),
    [
        (1280, "light", "rgb(244, 246, 248)"),
        (1280, "dark", "rgb(15, 19, 23)"),
        (320, "light", "rgb(244, 246, 248)"),
        (320, "dark", "rgb(15, 19, 23)"),
    ],
)
def test_axe_finds_nothing_and_the_page_asks_for_nothing(browse, page, width, scheme, background):
    seen = browse("look", page, json.dumps({"width": width, "colorScheme": scheme}))

    assert seen["violations"] == []
    assert seen["passes"] > 20
    assert seen["overflow"] == 0
    assert seen["requests"] == [page.as_uri()]
    assert seen["messages"] == []
    assert seen["background"] == background


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark"), (320, "light")])
def test_texts_of_300_characters_do_not_widen_the_page(browse, tmp_path, width, scheme):
    wide = tmp_path / "wide.html"
    wide.write_text(render_review(stretched(sample_report())), encoding="utf-8")
    seen = browse("look", wide, json.dumps({"width": width, "colorScheme": scheme}))

    assert (seen["overflow"], seen["messages"]) == (0, [])


def test_every_key_does_what_the_list_of_keys_says(browse, page):
    seen = browse("keyboard", page)

    assert seen["focused"] == {
        "j": ["look", "plan"],
        "k": ["look"],
        "n": ["f-0", "f-1"],
        "p": ["f-0"],
        "g": ["verdict"],
    }
    assert seen["changed"]
    assert seen["help"]
    assert seen["filter"] == "query"
    assert seen["typed"] == "jtg?"
    assert (seen["row"], seen["opened"], seen["back"]) == ("#r-2", "Record #2", "#r-2")


def test_the_filter_finds_records_by_tool_path_outcome_and_number(browse, page):
    seen = browse("filter", page, json.dumps(["pyproject", "WRITE_file plan_scope", "#7", "no such word"]))

    assert {words: seen[words]["count"] for words in list(seen)[:4]} == {
        "pyproject": "1 of 20",
        "WRITE_file plan_scope": "1 of 20",
        "#7": "1 of 20",
        "no such word": "0 of 20",
    }
    assert "#17" in seen["pyproject"]["rows"][0]
    assert (seen["refusals"], seen["failed"]) == ("1 of 20", ["PLAN_SCOPE_VIOLATION"])


def test_a_link_to_a_record_opens_the_exact_record(browse, page):
    seen = browse("permalink", page, "17")

    assert (seen["title"], seen["next"]) == ("Record #17", "Record #18")
    assert seen["exact"] == sample_report().records[16].line
    assert json.loads(seen["text"]) == json.loads(seen["exact"])
    assert seen["messages"] == []


def test_a_record_with_hidden_characters_and_large_numbers_is_shown_without_loss(browse, tmp_path):
    hidden = record(1, note="a\u202eb\u200bc\u001b[2J", large=0)
    hidden = replace(hidden, line=hidden.line.replace('"large":0', '"large":12345678901234567890'))
    path = tmp_path / "hidden.html"
    path.write_text(render_review(sample_report(records=(hidden, record(2)))), encoding="utf-8")

    seen = browse("permalink", path, "1")

    assert seen["exact"] == hidden.line
    assert json.loads(seen["text"]) == json.loads(hidden.line)
    assert seen["text"].isascii()
    assert "12345678901234567890" in seen["text"]


def test_the_policy_stops_markup_scripts_and_requests_that_content_could_bring(browse, page):
    seen = browse("policy", page)

    assert not seen["broken"]
    assert seen["requests"] == []
    assert {"img-src", "script-src-attr", "script-src-elem", "style-src-attr", "connect-src"} <= set(seen["found"])


def test_without_script_everything_but_the_list_of_records_can_be_read(browse, page):
    text = browse("plain", page)["text"]

    for words in (
        "Look at three things",
        "Ada Byron",
        "LIFETIME",
        "</script><script>alert(1)",
        "PLAN_SCOPE_VIOLATION",
        "kaiza undo",
    ):
        assert words in text


def test_print_shows_the_diffs_and_all_records_and_no_controls(browse, page):
    seen = browse("print", page)

    assert (seen["bar"], seen["filter"], seen["hidden"], seen["rows"]) == ("none", "none", "visible", 20)
    assert seen["pdf"] > 10_000
