"""Workspaces made to lead the project tools astray, to stall them, or to make them tell what is outside."""

import json
import os

import pytest

from kaiza.domain.call import CallRequest
from kaiza.tools.project.project_references_missing import NOT_LOOKED_UP

TOOLS = ("project_info", "project_assets_summary", "project_references_missing")


@pytest.fixture
def ask(make_app, workspace):
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})

    def call(tool="project_references_missing"):
        return app.answer(app.stamp(CallRequest(tool, {})))

    return call


def targets(outcome):
    return [row["target"] for row in outcome.output["brokenReferences"] + outcome.output["missingScripts"]]


@pytest.mark.parametrize(
    "target",
    ["../outside.md", "../gone.md", "%2e%2e/gone.md", "link/outside.md", "link/gone.md", ".kaiza/key", ".kaiza/gone"],
)
def test_the_existence_of_an_unreadable_file_is_not_revealed(ask, workspace, target):
    outside = workspace.parent
    (outside / "outside.md").write_text("")
    (workspace / "link").symlink_to(outside)
    (workspace / "a.md").write_text(f"[x]({target})")
    outcome = ask()

    assert targets(outcome) == []
    assert outcome.diagnostics == [NOT_LOOKED_UP.format(1)]


def test_a_link_to_an_unreadable_file_is_not_followed(ask, workspace):
    (workspace / ".env").write_text("SECRET=1")
    (workspace / "plain.md").symlink_to(".env")
    (workspace / "a.md").write_text("[x](plain.md)")

    assert ask().diagnostics == [NOT_LOOKED_UP.format(1)]


def test_files_that_are_no_regular_files_are_not_opened(ask, workspace):
    os.mkfifo(workspace / "fifo.md")
    (workspace / "loop.md").symlink_to("loop.md")
    (workspace / "zero.md").symlink_to("/dev/zero")
    (workspace / "dir.md").mkdir()
    (workspace / "a.md").write_text("[x](fifo.md) [y](loop.md) [z](zero.md)")

    for tool in TOOLS:
        assert ask(tool).envelope is None
    assert targets(ask()) == []


@pytest.mark.parametrize("name", ["a\nb.md", "a\x1b[2J.md", "\udcff.md", "\u202e.md", "a" * 252 + ".md"])
def test_odd_names_do_not_break_the_answer(ask, workspace, name):
    path = os.fsencode(workspace) + b"/" + name.encode(errors="surrogateescape")
    with open(path, "wb") as file:
        file.write(b"[x](gone\xff.md)")
    outcome = ask()

    json.dumps(outcome.output).encode()
    assert targets(outcome) == ["gone\\xff.md"]
    assert ask("project_assets_summary").output["byType"]


def test_a_deep_tree_is_walked(ask, workspace):
    deep = workspace
    for _ in range(600):
        deep /= "d"
    os.makedirs(deep)
    (deep / "a.md").write_text("[x](gone.md)")

    assert targets(ask()) == ["gone.md"]
    assert ask("project_info").output["directories"] >= 600


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "[" * 10_000_000),
        ("b.md", "](" * 200_000),
        ("package.json", '{"a":' * 90_000),
        ("package.json", '{"bin":' + json.dumps({str(number): "\\u0041" for number in range(20_000)}) + "}"),
        (".github/workflows/a.yml", "a: &a [*a, *a]\n" * 10_000),
        ("pyproject.toml", "[project.scripts]\n" + "a." * 200_000 + "a = 'x'"),
        ("a.py", "(" * 400_000),
        ("a.ts", "`${" * 150_000),
    ],
)
def test_a_file_crafted_to_stall_a_parser_does_not_stop_the_scan(ask, workspace, name, content):
    (workspace / name).parent.mkdir(parents=True, exist_ok=True)
    (workspace / name).write_text(content)

    assert ask().envelope is None


def test_a_link_that_leads_nowhere_is_not_repeated_at_length(ask, workspace):
    (workspace / "a.md").write_text(f"[x]({'y/' * 500}z.md)")

    assert [len(target) for target in targets(ask())] == [200]
