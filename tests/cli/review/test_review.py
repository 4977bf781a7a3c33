"""`kaiza review`: its forms, where the page goes, and what a hostile name can do in none of them."""

import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from agents import sha
from hostile_texts import INVALID_UTF8, TEXTS, file_names, invisible_characters
from jsonschema import Draft202012Validator
from review_samples import sample_report
from scenes import records

from kaiza.queries import review_records
from kaiza.render.html.page import render_review

SCHEMA = json.loads(Path(__file__).parents[3].joinpath("schemas/review.json").read_text())
CONTRACT = {"session", "plan", "verdict", "counts", "limits", "findings", "files", "ungoverned", "refusals", "records"}


@pytest.fixture
def hostile(scene):
    """A session in which every hostile text is a name or a content, written by the agent and by something else."""
    for name in file_names():
        scene.call("write_file", path=f"src/{name}", content=name + "\n")
        scene.call("read_file", path=f"../{name}")
        if (scene.root / f"src/{name}").exists():
            (scene.root / f"src/{name}").write_text(f"{name} changed\n")
    scene.overwrite("src/contents.txt", "\n".join(TEXTS.values()))
    scene.write("src/invalid.txt", INVALID_UTF8)
    scene.change("delete_file", path="src/invalid.txt", expected_hash=sha(INVALID_UTF8))
    scene.close()
    return scene


def test_the_json_has_the_members_of_the_contract_and_fits_its_schema(story, kaiza):
    result = kaiza("review", "--json")
    document = json.loads(result.out)

    assert result.status == 0
    assert document.keys() >= CONTRACT
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []
    assert document["session"]["session_id"] == story.session_id
    assert document["manifest"] == "whole"
    assert [(file["path"], file["change"]) for file in document["ungoverned"]] == [("docs/auth.md", "modified")]
    assert {file["path"]: file["state"] for file in document["files"]} == {
        "docs/auth.md": "changed_since",
        "src/auth/rotation.py": "as_left",
        "src/auth/store.py": "put_back",
        "src/auth/tokens.py": "as_left",
    }


def test_each_changed_line_of_the_json_names_its_call(story, kaiza):
    document = json.loads(kaiza("review", "--json").out)
    calls = {record["request_id"]: record["seq"] for record in records(story.root) if record["kind"] == "call"}
    lines = [
        line
        for file in document["files"]
        for shown in (file, *file["calls"])
        for hunk in shown["hunks"]
        for line in hunk["lines"]
    ]

    assert all(("by" in line) == (line["kind"] != "context") for line in lines)
    assert all(
        line["by"] == "without Kaiza" or calls[line["by"]["request_id"]] == line["by"]["seq"]
        for line in lines
        if "by" in line
    )


def test_sarif_has_only_what_should_be_looked_at(story, kaiza):
    document = json.loads(kaiza("review", "--sarif").out)
    (run,) = document["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]

    assert document["version"] == "2.1.0"
    assert [result["ruleId"] for result in run["results"]] == ["changed-without-kaiza", "attempt-outside-the-plan"]
    assert [place_of(result) for result in run["results"]] == [("docs/auth.md", 8), ("pyproject.toml", 1)]
    assert all(rules[result["ruleIndex"]] == result["ruleId"] for result in run["results"])
    assert all(result["level"] in ("none", "note", "warning", "error") for result in run["results"])
    assert len({result["partialFingerprints"]["kaiza/v1"] for result in run["results"]}) == 2


def place_of(result):
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
    return place["artifactLocation"]["uri"], place["region"]["startLine"]


def test_a_session_with_nothing_to_look_at_has_no_sarif_results(scene, kaiza):
    scene.overwrite("src/a.py", "x\n")

    assert json.loads(kaiza("review", "--sarif").out)["runs"][0]["results"] == []


def test_hostile_texts_stay_text_in_sarif(hostile, kaiza):
    result = kaiza("review", "--sarif")
    (run,) = json.loads(result.out)["runs"]
    messages = [found["message"]["text"] for found in run["results"]]
    uris = [location_uri(found) for found in run["results"]]

    assert len(messages) > 10
    assert [char for text in messages for char in invisible_characters(text)] == []
    assert [text for text in messages if re.search(r"(?<!\\)\[|(?<!\\)\]", text)] == []
    assert all(re.fullmatch(r"[A-Za-z0-9._~/%-]*", uri) for uri in uris)


def location_uri(result):
    return result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


def test_hostile_texts_survive_json_unchanged(hostile, kaiza):
    result = kaiza("review", "--json")
    document = json.loads(result.out)
    paths = {file["path"].removeprefix("src/") for file in document["files"]}
    shown = next(file for file in document["files"] if file["path"] == "src/contents.txt")
    lines = [line["text"] for hunk in shown["hunks"] for line in hunk["lines"]]

    assert paths >= {name for name in file_names() if (hostile.root / "src" / name).is_file()}
    assert set("\n".join(TEXTS.values()).split("\n")) - set(lines) == {TEXTS["long"]}
    assert any("caf\\xe9" in line["text"] for line in lines_of(document, "src/invalid.txt"))
    assert list(Draft202012Validator(SCHEMA).iter_errors(document)) == []


def lines_of(document, path):
    file = next(file for file in document["files"] if file["path"] == path)
    return [line for hunk in file["hunks"] for line in hunk["lines"]]


def test_json_on_a_terminal_has_no_control_characters(hostile, at_terminal):
    screen = at_terminal("review", "--json")

    assert screen.end() == 0
    assert invisible_characters(screen.shown.replace("\r", "")) == []  # the terminal adds one to each line


class Alive(HTMLParser):
    """Tags that are in a text outside of code."""

    def __init__(self):
        super().__init__()
        self.tags = []

    def handle_starttag(self, tag, _attributes):
        self.tags.append(tag)


def without_code(markdown):
    """The document without its code spans and fences, as CommonMark reads them."""
    kept, fence = [], None
    for line in markdown.split("\n"):
        ticks = re.match(r" *(`{3,})", line)
        if fence is not None:
            if ticks and len(ticks[1]) >= len(fence) and line.strip() == ticks[1]:
                fence = None
        elif ticks:
            fence = ticks[1]
        else:
            kept.append(re.sub(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", line))
    assert fence is None
    return "\n".join(kept)


def test_hostile_texts_stay_text_in_markdown(hostile, kaiza):
    result = kaiza("review", "--markdown")
    rest = without_code(result.out)
    alive = Alive()
    alive.feed(rest)

    assert result.status == 0
    assert [char for char in invisible_characters(result.out) if char != "\t"] == []
    assert alive.tags == []
    assert html.unescape(rest) == rest
    assert re.findall(r"[<>\[\]@]|https?:|www\.|#\d|GH-\d", rest) == []
    assert "alert(1)" in result.out


class PageReader(HTMLParser):
    """The elements and attributes of a page, and its text without script, style and data."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.open = set(), set(), [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.attributes.update(name for name, _value in attributes)
        self.text += [value or "" for _name, value in attributes]
        if tag not in ("meta", "br", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)


def test_hostile_texts_stay_text_in_the_page(hostile, kaiza):
    known = PageReader(render_review(sample_report()))
    page = Path(kaiza("review", "--session", hostile.session_id).out.strip()).read_text()
    shown = PageReader(page)
    text = "".join(shown.text)

    assert shown.open == []
    assert shown.tags - known.tags <= {"del", "ins", "details", "summary"}
    assert shown.attributes <= known.attributes | {"colspan"}
    assert [char for char in invisible_characters(page) if char != "\t"] == []
    assert len(re.findall(r"</?script", page)) == 4  # the script and its data
    for words in ("alert(1)", "U+202E", "U+200B", "U+001B", "&lt;b&gt;", "{{7*7}}", "\\xe9"):
        assert words in text, words


def test_the_markdown_shows_each_line_with_its_call(story, kaiza):
    result = kaiza("review", "--markdown")
    seq = next(
        record["seq"]
        for record in records(story.root)
        if record["request_id"] == story.outcomes.docs["request_id"] and record["kind"] == "call"
    )

    assert f"{seq:>8} + A session token lives for a day." in result.out
    assert " no call + <!-- </script><script>alert(1)</script> -->" in result.out


def test_the_page_goes_to_kaiza_s_directory_and_its_path_is_printed(story, kaiza):
    result = kaiza("review")
    path = story.root / f".kaiza/reviews/{story.session_id}.html"

    assert (result.status, result.out) == (0, f"{path}\n")
    assert path.read_text().startswith("<!doctype html>")
    assert "Rotate session tokens every day · Kaiza review</title>" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_page_of_a_plan_has_the_plan_s_name_and_replaces_an_earlier_one(story, kaiza):
    first, second = kaiza("review", "--plan", "PLAN-0007"), kaiza("review", "--plan", "PLAN-0007-rotate-tokens")

    assert first.out == second.out == f"{story.root}/.kaiza/reviews/PLAN-0007-rotate-tokens.html\n"
    assert [path.name for path in (story.root / ".kaiza/reviews").iterdir()] == ["PLAN-0007-rotate-tokens.html"]


def test_the_page_goes_where_one_says(story, kaiza, tmp_path):
    result = kaiza("review", "--since", "2000-01-01", "--output", str(tmp_path / "page.html"))

    assert result.status == 0
    assert "Look at" in (tmp_path / "page.html").read_text()
    assert not (story.root / ".kaiza/reviews").exists()


def test_nothing_is_written_into_a_workspace_that_does_not_belong_here(story, kaiza, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "another-machine"))
    result = kaiza("review")

    assert result.status == 0
    assert Path(result.out.strip()).is_relative_to(tmp_path / "another-machine")
    assert not (story.root / ".kaiza/reviews").exists()


def test_a_link_in_place_of_the_directory_of_pages_is_not_followed(story, kaiza, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (story.root / ".kaiza/reviews").symlink_to(outside)
    result = kaiza("review")

    assert result.status != 0
    assert list(outside.iterdir()) == []


def test_an_id_that_is_no_file_name_gets_another_name(story, kaiza):
    log = story.root / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(story.session_id.encode(), b"../../../../up"))
    result = kaiza("review")

    assert result.status == 1
    assert re.fullmatch(rf"{story.root}/\.kaiza/reviews/[0-9a-f]{{64}}\.html\n", result.out)


def test_a_damaged_log_is_reviewed_with_status_1(story, kaiza):
    log = story.root / "audit/audit-log.jsonl"
    log.write_bytes(log.read_bytes().replace(b'"duration_ms":', b'"duration_ms":1', 1))
    result = kaiza("review", "--json")
    document = json.loads(result.out)

    assert (result.status, document["findings"][0]["kind"]) == (1, "record_not_intact")
    assert document["verdict"]["record"] == "broken"
    assert json.loads(kaiza("review", "--sarif").out)["runs"][0]["results"][0]["ruleId"] == "record-not-intact"
    assert kaiza("review", "--markdown").out.index("not intact") < 2000


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["--json", "--markdown"], 2),
        (["--session", "a", "--since", "1h"], 2),
        (["--session", "zz", "--json"], 1),
        (["--until", "2000-01-01", "--json"], 1),
        (["--since", "nonsense"], 2),
    ],
)
def test_wrong_and_unknown_choices_say_so(story, kaiza, words, status):
    result = kaiza("review", *words)

    assert (result.status, result.out) == (status, "")
    assert result.err


def test_status_and_the_end_of_a_session_name_the_command(scene, kaiza):
    scene.overwrite("src/a.py", "x\n")
    open_session = kaiza("status").out
    summary = scene.change("end_session")["summary"]

    assert f"kaiza review --session {scene.session_id}" in open_session
    assert summary.endswith("kaiza review")
    assert re.search(r"^review +kaiza review$", kaiza("status").out, re.MULTILINE)


@pytest.mark.parametrize("words", [["review", "--json"], ["diff"], ["review", "--since", "2000-01-01", "--json"]])
def test_more_records_than_fit_into_memory_are_refused_with_what_to_do(story, kaiza, monkeypatch, words):
    monkeypatch.setattr(review_records, "MAX_SELECTED", 3)
    result = kaiza(*words)

    assert (result.status, result.out) == (1, "")
    assert "--since" in result.err


def test_the_page_is_not_written_through_a_link_that_the_workspace_brought(story, kaiza, tmp_path):
    (tmp_path / "profile").write_text("mine")
    (story.root / "page.html").symlink_to(tmp_path / "profile")
    refused = kaiza("review", "--output", "page.html")
    (story.root / "page.html").unlink()
    (story.root / "page.html").write_text("an earlier page")
    written = kaiza("review", "--output", "page.html")

    assert (refused.status, written.status) == (1, 0)
    assert (tmp_path / "profile").read_text() == "mine"
    assert (story.root / "page.html").read_text().startswith("<!doctype html>")
    assert "</html>" in kaiza("review", "--output", "/dev/stdout").out
