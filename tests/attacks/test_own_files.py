"""No search returns what Kaiza itself writes, in a workspace that `kaiza init` made or one made by hand."""

import pytest

NEEDLE = "needle_in_the_log"


@pytest.fixture(params=["by hand", "initialized"])
def app(make_app, workspace, request):
    (workspace / "src/audit").mkdir(parents=True)
    (workspace / "src/audit/own.py").write_text(f"{NEEDLE}\n")
    (workspace / "auditor.py").write_text(f"{NEEDLE}\n")
    if request.param == "initialized":
        (workspace / "audit/.gitignore").write_text("*\n!.gitignore\n")
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})
    # Recorded, so that the log has the needle.
    app.call("read_file", {"path": f"missing/{NEEDLE}"})
    assert NEEDLE in (workspace / "audit/audit-log.jsonl").read_text()
    return app


def paths(output):
    return {item["path"] for item in output["items"]}


@pytest.mark.parametrize("more", [{}, {"include_ignored": True}, {"include_ignored": True, "glob": "**/*.jsonl"}])
def test_a_search_finds_nothing_in_the_log(app, more):
    hits = app.call("search_text", {"query": NEEDLE, **more}).output

    assert paths(hits) == (set() if "glob" in more else {"src/audit/own.py", "auditor.py"})


@pytest.mark.parametrize("path", ["audit", "audit/audit-log.jsonl", "./audit"])
def test_a_search_that_names_the_log_says_how_to_read_it(app, path):
    hits = app.call("search_text", {"query": NEEDLE, "path": path, "include_ignored": True})

    assert hits.output["items"] == []
    assert any("read_audit_log" in note for note in hits.output["diagnostics"])


@pytest.mark.parametrize("pattern", ["**", "audit/**", ".kaiza/**", "*"])
def test_no_pattern_finds_files_of_kaizas_own(app, pattern):
    found = paths(app.call("find_files", {"pattern": pattern, "include_ignored": True, "pageSize": 200}).output)

    assert not {path for path in found if path.partition("/")[0] in {"audit", ".kaiza"}}


def test_the_log_is_no_asset_of_the_project(app):
    types = app.call("project_assets_summary", {}).output["byType"]

    assert "jsonl" not in {row["type"] for row in types}
