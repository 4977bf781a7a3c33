"""The project tools on real workspaces."""

import os
import re
import subprocess
from types import SimpleNamespace

import pytest

from kaiza.domain.call import CallRequest
from kaiza.domain.caps import Caps
from kaiza.domain.paging.response_size import AnswerBudget
from kaiza.domain.paths import rel_path
from kaiza.tools.project import project_references_missing

MISSING = "project_references_missing"


def missing(reader):
    answer = reader.call(MISSING)
    return [(row["path"], row["line"], row["target"]) for row in answer["missingScripts"] + answer["brokenReferences"]]


def git(root, *words):
    identity = ("-c", "user.name=x", "-c", "user.email=x@x.org", "-c", "init.defaultBranch=main")
    result = subprocess.run(["git", *identity, *words], cwd=root, capture_output=True, check=True, text=True)
    return result.stdout.strip()


def call(app, tool):
    app.call("begin_session", {"role": "WINDSURF"})
    return app.answer(app.stamp(CallRequest(tool, {}))).output


def test_project_info_counts_what_is_not_ignored(make_app, workspace):
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text("")
    (workspace / "build").mkdir()
    (workspace / "build/x").write_text("")
    (workspace / ".gitignore").write_text("build/\n")
    output = call(make_app(workspace), "project_info")

    assert output["name"] == "project"
    assert output["root"] == f"file://{os.path.realpath(workspace)}"
    # src and plans; .gitignore and src/a.py. The log and its directory are Kaiza's own.
    assert (output["files"], output["directories"]) == (2, 2)
    assert "head" not in output


def test_project_info_names_commit_and_branch(make_app, workspace):
    git(workspace, "init", "-q")
    assert "head" not in call(make_app(workspace), "project_info")
    git(workspace, "commit", "-q", "--allow-empty", "-m", "x")
    commit = git(workspace, "rev-parse", "HEAD")

    assert call(make_app(workspace), "project.info")["head"] == {"commit": commit, "branch": "main"}
    git(workspace, "checkout", "-q", "--detach")
    assert call(make_app(workspace), "project.info")["head"] == {"commit": commit}


def test_assets_are_counted_by_type_and_the_largest_named(reader):
    for path, size in {"a.py": 5, "b.PY": 6, "Makefile": 1, ".profile": 2, "x/c.tar.gz": 9, "x/d.": 0}.items():
        reader.write(path, b"x" * size)
    answer = reader.call("project_assets_summary")

    assert (answer["totalAssets"], answer["totalBytes"]) == (6, 23)
    assert answer["byType"] == [
        {"type": "gz", "count": 1, "bytes": 9},
        {"type": "none", "count": 3, "bytes": 3},
        {"type": "py", "count": 2, "bytes": 11},
    ]
    assert answer["largeAssets"][:2] == [{"path": "x/c.tar.gz", "bytes": 9}, {"path": "b.PY", "bytes": 6}]


def test_links_are_no_assets(reader):
    reader.write("a.py", b"x")
    (reader.path / "l.py").symlink_to("a.py")

    assert reader.call("project_assets_summary")["totalAssets"] == 1


def test_rows_after_one_that_does_not_fit_are_only_counted():
    rows = project_references_missing.MissingRows(AnswerBudget(250))
    for length in (10, 500, 10):
        rows.add({"target": "x" * length})

    assert (rows.count, len(rows.items)) == (3, 1)


def test_a_file_that_cannot_be_opened_is_counted():
    view = SimpleNamespace(caps=Caps(), is_unreadable=lambda _: False)
    checker = project_references_missing.ReferenceChecker(view)
    vanished = SimpleNamespace(type="file", path="a.md", real=rel_path.parse("a.md"), open=lambda: None)
    checker.check_entry(vanished, lambda: False)

    assert checker.notes == {project_references_missing.UNREADABLE: 1}


def test_the_twenty_largest_assets_are_sorted_by_size_then_path(reader):
    for number in range(100):
        reader.write(f"{number:02d}", b"x" * (number // 2))

    largest = reader.call("project_assets_summary")["largeAssets"]
    assert [asset["path"] for asset in largest[:4]] == ["98", "99", "96", "97"]
    assert len(largest) == 20


def test_only_a_thousand_types_are_shown(reader):
    reader.caps = reader.caps._replace(answer_bytes=160 * 1024)
    for number in range(1_001):
        reader.write(f"a.{number}")

    assert len(reader.call("project_assets_summary")["byType"]) == 1_000
    assert reader.diagnostics == ["Showing 1000 of 1001 types."]


@pytest.mark.rows("S4-65")
def test_broken_references_are_listed_by_path_line_and_target(reader):
    reader.write("b.md", "[x](gone.md) [y](a/c.py)\n[z](also.md) [w](aaa.md)\n")
    reader.write("a/c.py", "from .gone import x\nfrom .d import y\nfrom ..e import z\n")
    reader.write("a/d.py")
    reader.write("e/__init__.py")
    reader.write("a/page.html", '<img src="gone.png"><a href="../b.md">')
    reader.write("w/a.ts", "import './b'\nimport './c.js'\nimport './gone'\n")
    reader.write("w/b.tsx")
    reader.write("w/c.ts")
    answer = reader.call(MISSING)

    assert answer["missingScripts"] == []
    assert [(row["path"], row["line"], row["target"], row["kind"]) for row in answer["brokenReferences"]] == [
        ("a/c.py", 1, ".gone", "python_import"),
        ("a/page.html", 1, "gone.png", "link"),
        ("b.md", 1, "gone.md", "link"),
        ("b.md", 2, "aaa.md", "link"),
        ("b.md", 2, "also.md", "link"),
        ("w/a.ts", 3, "./gone", "script_import"),
    ]
    assert reader.diagnostics == []


def test_configured_files_that_are_not_there_are_missing_scripts(reader):
    reader.write("pyproject.toml", '[project.scripts]\na = "pkg.cli:main"\nb = "pkg.gone:main"\n')
    reader.write("src/pkg/cli.py")
    reader.write("web/package.json", '{"main": "dist/index.js", "bin": {"x": "bin/x.js"}}')
    reader.write("web/bin/x.js")
    reader.write(".github/workflows/ci.yml", "steps:\n - uses: ./.github/actions/a\n - run: ./gone.sh\n")
    reader.write(".github/actions/a/action.yml")
    answer = reader.call(MISSING)

    assert [(row["path"], row["line"], row["target"], row["kind"]) for row in answer["missingScripts"]] == [
        (".github/workflows/ci.yml", 3, "./gone.sh", "workflow_path"),
        ("pyproject.toml", 3, "pkg.gone:main", "python_script"),
        ("web/package.json", 1, "dist/index.js", "package_main"),
    ]
    assert answer["brokenReferences"] == []


def test_only_a_thousand_rows_are_shown_and_the_rest_is_counted(reader):
    reader.caps = reader.caps._replace(answer_bytes=160 * 1024)
    reader.write("a.md", "".join(f"[x]({number:04d}.md)\n" for number in range(1_200)))
    answer = reader.call(MISSING)

    assert [row["line"] for row in answer["brokenReferences"]] == list(range(1, 1_001))
    assert reader.diagnostics == ["Showing 1000 of 1200 broken references."]
    assert answer["summary"] == "0 missing scripts, 1200 broken references."


def test_rows_that_would_not_fit_into_the_response_are_left_out(reader):
    directory = "/".join("\x01" * 200 for _ in range(15))
    reader.write(f"{directory}/a.md", "[x](gone.md)\n" * 500)
    answer = reader.call(MISSING)

    shown = len(answer["brokenReferences"])
    assert 0 < shown < 500
    assert reader.diagnostics == [f"Showing {shown} of 500 broken references."]


@pytest.mark.rows("S4-60")
def test_ignored_directories_are_counted_and_not_scanned(reader):
    reader.write(".gitignore", "node_modules/\n*.tmp.md\n")
    reader.write("node_modules/a.md", "[x](gone.md)")
    reader.write("w/node_modules/b.md", "[x](gone.md)")
    reader.write("c.tmp.md", "[x](gone.md)")

    assert missing(reader) == []
    assert reader.diagnostics == ["Ignored by .gitignore: 2 directories."]


@pytest.mark.rows("S4-59")
def test_files_that_are_read_in_part_or_not_at_all_are_counted(reader):
    reader.write("a.md", b"\xff [x](gone.md)")
    reader.write("big.md", b"[x](gone.md)" + b" " * project_references_missing.MAX_FILE_BYTES)
    reader.write("package.json", "[" * 10_000)
    reader.write(".env/notes.md", "[x](gone.md)")

    assert missing(reader) == [("a.md", 1, "gone.md")]
    assert reader.diagnostics == [
        "Not UTF-8, read as far as possible: 1 files.",
        "Skipped, may not be read: 1 files.",
        "Skipped, not valid JSON: 1 files.",
        "Skipped, too large: 1 files.",
    ]


@pytest.mark.rows("S4-54", "S4-55", "S4-56", "S4-57")
@pytest.mark.parametrize(
    ("tool", "guard"), [(MISSING, "references_guard_ms"), ("project_assets_summary", "assets_guard_ms")]
)
def test_a_scan_past_its_guard_returns_what_it_has(reader, tool, guard):
    for name in ("a", "b"):
        reader.write(f"{name}.md", "[x](gone.md)")
    reader.caps = Caps()._replace(**{guard: 0})
    answer = reader.call(tool)

    sentence = r"Scan stopped after \d+ms\. Processed 0 of 2 items\. Results may be partial\."
    assert re.fullmatch(sentence, reader.diagnostics[0])
    assert "or more" in answer["summary"]


def test_the_guard_stops_within_a_file_of_many_references(reader):
    reader.write("a.md", "[x](gone.md)\n" * 30_000)
    reader.caps = Caps()._replace(references_guard_ms=100)
    reader.call(MISSING)

    assert re.match(r"Scan stopped after \d+ms\. Processed 1 of 1 items\.", reader.diagnostics[0])


def test_a_scan_past_the_deadline_of_the_call_fails(reader):
    reader.write("a.md", "[x](gone.md)")
    reader.is_late = True

    assert reader.code(MISSING) == "CAP_EXCEEDED"


@pytest.mark.rows("S4-55", "S4-56")
def test_the_guards_are_those_of_the_caps():
    caps = Caps().as_json()

    assert (caps["references_guard_ms"], caps["assets_guard_ms"]) == (15_000, 10_000)
