"""`kaiza context`: what is packed, what is left out and named, and what stops a build."""

import json
import os
import re
import shutil

import pytest
from context_caches import cache_version_of, write_cache
from scenes import make_ready, records

from kaiza.app import App
from kaiza.domain.context import cache_format
from kaiza.store import human_decisions
from kaiza.store.context import cache_builder
from kaiza.store.disk import state_dir
from kaiza.store.trust.binding import Standing, read_binding

TOKEN = "gh" + "p_" + "a1B2" * 9


@pytest.fixture
def docs(workspace):
    """Two documents below docs/."""
    for name, text in {"Hello.md": "Hello world\n", "sub/b.md": "Goodbye world\n"}.items():
        path = workspace / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return workspace / "docs"


BUILT = {"hello.md": "Hello world\n", "sub/b.md": "Goodbye world\n"}


def build(kaiza, *options, name="docs"):
    return kaiza("context", "build", name, "--source", "docs", *options)


def files_of(directory):
    return {
        str(path.relative_to(directory)): re.sub(rb'"created_at": "[^"]*"', b"", path.read_bytes())
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_documents_get_ids_relative_to_their_source_in_lower_case(kaiza, docs):
    result = build(kaiza, "--json")

    assert result.status == 0
    assert json.loads(result.out) == {
        "cache": "docs",
        "cache_version": cache_version_of(BUILT),
        "document_count": 2,
        "left_out": [],
    }


def test_a_document_that_is_another_name_of_a_secret_is_left_out(kaiza, docs, workspace):
    (workspace / ".env").write_text("TOKEN=1\n")
    os.link(workspace / ".env", docs / "notes.md")
    result = json.loads(build(kaiza, "--json").out)

    assert result["left_out"] == [{"path": "docs/notes.md", "why": "unreadable"}]
    assert result["document_count"] == 2


def test_an_agent_resolves_what_a_person_built_and_the_command_prints_the_same_bytes(kaiza, docs, workspace):
    build(kaiza)
    printed = kaiza("context", "resolve", "docs", "--query", "hello", "--budget", "100")
    pretty = kaiza("context", "resolve", "docs", "--query", "hello", "--budget", "100", "--pretty")
    app = App([str(workspace)])
    answered = app.call("context_resolve", {"cache": "docs", "query": "hello", "budget": 100}).output
    app.close()

    assert printed.out == json.dumps(answered, separators=(",", ":")) + "\n"
    assert [one["id"] for one in answered["documents"]] == ["hello.md", "sub/b.md"]
    assert json.loads(pretty.out) == answered
    assert pretty.out.count("\n") > 20


def test_two_builds_of_the_same_sources_differ_only_in_their_time(kaiza, docs, workspace):
    build(kaiza)
    build(kaiza, name="again")
    home = workspace / ".kaiza/context"

    assert files_of(home / "docs") == files_of(home / "again")
    assert {"manifest.json", "index.json"} < files_of(home / "docs").keys()


def test_a_build_and_a_removal_are_decisions_of_a_person_in_the_log(kaiza, docs, workspace):
    build(kaiza, "--as", "Ada")
    kaiza("context", "remove", "docs", "--as", "Ada")
    built, removed = records(workspace)[-2:]

    assert (built["kind"], removed["kind"]) == ("person", "person")
    assert built["detail"] == {
        "action": "context_build",
        "person": "Ada",
        "cache": "docs",
        "cache_version": cache_version_of(BUILT),
        "document_count": 2,
        "sources": ["docs"],
        "glob": "**/*.md",
    }
    assert removed["detail"] == {"action": "context_remove", "person": "Ada", "cache": "docs"}


def test_a_source_without_documents_builds_an_empty_cache(kaiza, docs):
    assert build(kaiza, "--glob", "*.txt").status == 0
    assert json.loads(kaiza("context", "inspect", "docs", "--json").out)["document_count"] == 0
    assert json.loads(kaiza("context", "resolve", "docs", "--query", "x", "--budget", "9").out)["documents"] == []


def test_files_that_agents_may_not_read_or_git_ignores_and_links_are_left_out_and_named(kaiza, docs, workspace):
    (docs / ".gitignore").write_text("ignored.md\nbuild/\n")
    (docs / "build").mkdir()
    (docs / "sub/.env.md").write_text("A=1\n")
    for name in ("ignored.md", "build/made.md"):
        (docs / name).write_text(f"{name}\n")
    (docs / "link.md").symlink_to("Hello.md")
    (workspace / "elsewhere").mkdir()
    (workspace / "elsewhere/far.md").write_text("far\n")
    (docs / "linked").symlink_to("../elsewhere")
    os.mkfifo(docs / "fifo.md")
    result = build(kaiza, "--json")
    text = build(kaiza, "--force").out

    assert json.loads(result.out)["cache_version"] == cache_version_of(BUILT)
    assert {each["path"]: each["why"] for each in json.loads(result.out)["left_out"]} == {
        "docs/build/made.md": "ignored by .gitignore",
        "docs/ignored.md": "ignored by .gitignore",
        "docs/fifo.md": "not a regular file",
        "docs/link.md": "not a regular file",
        "docs/sub/.env.md": "unreadable",
    }
    assert "Left out: docs/sub/.env.md (unreadable)" in text.splitlines()


def test_what_kaiza_itself_keeps_is_never_packed(kaiza, docs, workspace):
    (workspace / ".kaiza").mkdir(exist_ok=True)
    (workspace / ".kaiza/notes.md").write_text("x\n")
    whole = json.loads(kaiza("context", "build", "all", "--source", ".", "--json").out)
    inside = json.loads(kaiza("context", "build", "own", "--source", ".kaiza", "--json").out)

    assert whole["document_count"] == 2
    assert inside["document_count"] == 0
    assert [each["why"] for each in inside["left_out"]] == ["unreadable"]


REFUSED = {
    "a secret": lambda docs: (docs / "key.md").write_text(f"one\nuse {TOKEN}\n"),
    "two files with one id": lambda docs: (docs / "HELLO.md").write_text("other\n"),
    "two files with one content": lambda docs: (docs / "copy.md").write_text("Hello world\n"),
    "not UTF-8": lambda docs: (docs / "latin.md").write_bytes(b"\xe4\n"),
    "too large": lambda docs: (docs / "large.md").write_bytes(b"x" * (1024 * 1024 + 1)),
    "too many control characters": lambda docs: (docs / "control.md").write_bytes(b"\x01" * (1024 * 1024)),
    "a name with a control character": lambda docs: (docs / "a\x1b[31m.md").write_text("odd\n"),
    "a name that is not UTF-8": lambda docs: (docs / os.fsdecode(b"\xff.md")).write_text("odd\n"),
}


@pytest.mark.parametrize("spoil", REFUSED.values(), ids=REFUSED.keys())
def test_a_document_that_cannot_be_packed_stops_the_build_and_leaves_the_old_cache(kaiza, docs, workspace, spoil):
    build(kaiza)
    before = files_of(workspace / ".kaiza/context")
    recorded = len(records(workspace))
    spoil(docs)
    result = build(kaiza, "--force")

    assert (result.status, result.out) == (1, "")
    assert files_of(workspace / ".kaiza/context") == before
    assert len(records(workspace)) == recorded
    assert "\x1b" not in result.err
    assert "docs/" in result.err


def test_a_file_of_exactly_1_mib_is_packed(kaiza, docs):
    (docs / "large.md").write_bytes(b"x" * 1024 * 1024)

    assert build(kaiza).status == 0


def test_a_conflict_names_both_files_and_a_secret_its_place(kaiza, docs):
    (docs / "HELLO.md").write_text("other\n")
    conflict = " ".join(build(kaiza).err.split())
    (docs / "HELLO.md").write_text(f"one\nuse {TOKEN}\n")
    (docs / "Hello.md").unlink()
    secret = " ".join(build(kaiza).err.split())

    assert "docs/HELLO.md and docs/Hello.md" in conflict
    assert "docs/HELLO.md:2:5" in secret
    assert TOKEN not in secret


def test_a_cache_is_replaced_only_with_force(kaiza, docs, workspace):
    build(kaiza)
    (docs / "new.md").write_text("new\n")

    assert build(kaiza).status == 1
    assert build(kaiza, "--force").status == 0
    assert json.loads(kaiza("context", "inspect", "docs", "--json").out)["document_count"] == 3
    assert [path.name for path in (workspace / ".kaiza/context").iterdir()] == ["docs"]


def test_a_source_outside_the_workspace_has_to_be_allowed(kaiza, docs, tmp_path, workspace):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "far.md").write_text("far\n")
    (workspace / "link").symlink_to(outside)

    for named in (str(outside), "link"):
        assert kaiza("context", "build", "far", "--source", named).status == 1
        result = kaiza("context", "build", "far", "--source", named, "--outside", "--force", "--json")
        assert json.loads(result.out)["cache_version"] == cache_version_of({"far.md": "far\n"})
    assert records(workspace)[-1]["detail"]["sources"] == [str(outside)]


def test_a_source_that_contains_the_workspace_is_refused_even_outside(kaiza, docs):
    assert kaiza("context", "build", "far", "--source", "..", "--outside").status == 1


def test_an_inspection_says_whether_the_sources_have_changed_since(kaiza, docs, workspace):
    build(kaiza)
    state = [json.loads(kaiza("context", "inspect", "docs", "--json").out)]
    (docs / "Hello.md").write_text("changed\n")
    state.append(json.loads(kaiza("context", "inspect", "docs", "--json").out))
    write_cache(workspace, "theirs", {"a.md": "x"})
    state.append(json.loads(kaiza("context", "inspect", "theirs", "--json").out))

    assert [each["changed"] for each in state] == [False, True, None]
    assert state[0]["sources"] == ["docs"]
    assert "changed since it was built" in kaiza("context", "inspect", "docs").out


def test_a_manifest_that_could_not_be_read_is_not_written(kaiza, docs, workspace, monkeypatch):
    monkeypatch.setattr(cache_format, "MAX_VALUES", 10)

    assert build(kaiza).status == 1
    assert list((workspace / ".kaiza/context").iterdir()) == []


def test_a_cache_whose_sources_are_gone_has_changed(kaiza, docs):
    build(kaiza)
    shutil.rmtree(docs)

    assert json.loads(kaiza("context", "inspect", "docs", "--json").out)["changed"] is True


def test_a_build_that_the_log_of_a_clone_names_is_not_looked_for(kaiza, docs, workspace):
    build(kaiza)
    (workspace / ".kaiza/id").write_text("f" * 32 + "\n")
    shown = json.loads(kaiza("context", "inspect", "docs", "--json").out)

    assert (shown["valid"], shown["sources"], shown["changed"]) == (True, None, None)


def test_no_cache_is_published_without_its_record(kaiza, docs, workspace, monkeypatch):
    def crash(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(human_decisions, "record_decision", crash)

    assert build(kaiza).status != 0
    assert list((workspace / ".kaiza/context").iterdir()) == []


@pytest.mark.parametrize(("name", "most"), [("MAX_DOCUMENTS", 1), ("MAX_TOTAL_BYTES", 20)])
def test_a_cache_beyond_its_bounds_is_not_built(kaiza, docs, workspace, monkeypatch, name, most):
    monkeypatch.setattr(cache_builder, name, most)

    assert build(kaiza).status == 1
    assert list((workspace / ".kaiza/context").iterdir()) == []


@pytest.mark.parametrize("text", ["hello\n", f"use {TOKEN}\n"], ids=["built", "refused"])
def test_a_workspace_whose_first_command_is_a_build_belongs_here(kaiza, tmp_path, text):
    fresh = make_ready(tmp_path / "fresh")
    (fresh / "docs").mkdir()
    (fresh / "docs/a.md").write_text(text)
    kaiza("context", "build", "docs", "--source", str(fresh / "docs"), "--workspace", str(fresh))

    assert (fresh / ".kaiza").exists()
    assert read_binding(str(fresh), state_dir.path_of(str(fresh))).standing is Standing.BOUND


def test_caches_are_listed(kaiza, docs):
    assert json.loads(kaiza("context", "list", "--json").out) == {"caches": []}
    build(kaiza)

    assert json.loads(kaiza("context", "list", "--json").out) == {"caches": [{"path": "docs", "has_manifest": True}]}
    assert kaiza("context", "list").out == "docs\n"


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("inspect", "none"), 1),
        (("resolve", "none", "--query", "x", "--budget", "1"), 1),
        (("remove", "none"), 1),
        (("inspect", "../x"), 2),
        (("resolve", "docs", "--query", "x" * 513, "--budget", "1"), 2),
        (("resolve", "docs", "--query", "x", "--budget", "1.5"), 2),
        (("resolve", "docs", "--query", "x", "--budget", "100001"), 2),
        (("build", "x", "--source", "missing"), 3),
        (("build", "x", "--source", "docs", "--glob", "["), 2),
    ],
)
def test_every_failure_has_its_exit_status_and_an_empty_output(kaiza, docs, words, status):
    result = kaiza("context", *words)

    assert (result.status, result.out) == (status, "")
    assert result.err


def test_an_invalid_cache_is_a_failure_of_inspect_and_resolve(kaiza, docs, workspace):
    build(kaiza)
    (workspace / ".kaiza/context/docs/manifest.json").write_text("not-json")

    assert kaiza("context", "inspect", "docs").status == 1
    assert kaiza("context", "resolve", "docs", "--query", "x", "--budget", "1").status == 1


@pytest.mark.parametrize("stranger", ["notes.txt", "documents/notes.txt", "documents/00.json"])
def test_a_directory_that_holds_anything_else_is_neither_removed_nor_replaced(kaiza, docs, workspace, stranger):
    build(kaiza)
    path = workspace / ".kaiza/context/docs" / stranger
    path.write_text("mine\n")
    before = files_of(workspace / ".kaiza/context")

    assert kaiza("context", "remove", "docs").status == 1
    assert build(kaiza, "--force").status == 1
    assert files_of(workspace / ".kaiza/context") == before


def test_a_link_in_place_of_a_cache_is_neither_removed_nor_replaced(kaiza, docs, workspace, tmp_path):
    build(kaiza)
    home = workspace / ".kaiza/context"
    (home / "docs").rename(tmp_path / "moved")
    (home / "docs").symlink_to(tmp_path / "moved")

    assert kaiza("context", "remove", "docs").status == 1
    assert build(kaiza, "--force").status == 1
    assert (tmp_path / "moved/manifest.json").exists()


@pytest.mark.parametrize("part", ["manifest.json", "index.json", "documents/0123456789ab.json"])
def test_a_cache_with_a_directory_in_place_of_a_file_is_neither_removed_nor_replaced(kaiza, docs, workspace, part):
    build(kaiza)
    path = workspace / ".kaiza/context/docs" / part
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "mine.txt").write_text("mine\n")
    before = files_of(workspace / ".kaiza/context")

    assert kaiza("context", "remove", "docs").status == 1
    assert build(kaiza, "--force").status == 1
    assert files_of(workspace / ".kaiza/context") == before


@pytest.mark.parametrize("name", [".kaiza/context", ".kaiza/context/docs/documents"])
def test_a_link_in_place_of_a_directory_is_named_and_left_alone(kaiza, docs, workspace, tmp_path, name):
    build(kaiza)
    (workspace / name).rename(tmp_path / "moved")
    (workspace / name).symlink_to(tmp_path / "moved")
    before = files_of(tmp_path / "moved")
    results = [kaiza("context", "remove", "docs"), build(kaiza, "--force")]

    assert [each.status for each in results] == [1, 1]
    assert all(".kaiza/context" in each.err for each in results)
    assert files_of(tmp_path / "moved") == before


def test_removing_a_cache_leaves_its_sources(kaiza, docs, workspace):
    build(kaiza)

    assert kaiza("context", "remove", "docs").status == 0
    assert list((workspace / ".kaiza/context").iterdir()) == []
    assert (docs / "Hello.md").exists()


def test_resolve_prints_control_characters_of_documents_escaped_on_a_terminal(screen, kaiza, docs):
    (docs / "red.md").write_text("a \x1b[31m b\n")
    build(kaiza)
    shown = screen("context", "resolve", "docs", "--query", "a", "--budget", "100", "--pretty")
    shown.end()

    assert "\\u001b[31m" in shown.shown
    assert "\x1b[31m" not in shown.shown
