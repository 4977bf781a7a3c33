"""The read model for reviews: saved with the session's end, checked against the log, or compared now."""

import json

import pytest
from agents import sha
from scenes import records

from kaiza.domain.audit.record import Record
from kaiza.domain.manifest.report import OutsideReport
from kaiza.queries.outside_changes import read_outside_changes
from kaiza.store.disk import state_dir
from kaiza.store.manifest import report_files


@pytest.fixture
def changed(begun, workspace):
    """A session during which a file was edited, one renamed and one made ignored; its id."""
    app = begun
    (kept,) = app.services.workspaces.values()
    for earlier in kept.audit_state.sessions:  # two begins at once share a scan, in which these files would be new
        kept.manifest.wait(earlier, 60)
    (workspace / "a").write_text("1\n")
    (workspace / "b").write_text("1\n2\n")
    session_id = app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]
    kept.manifest.wait(session_id, 60)
    (workspace / "a").write_text("1\n2\n3")
    (workspace / "b").rename(workspace / "c")
    return session_id


def read(app, session_id, end_record=None):
    (workspace,) = app.services.workspaces.values()
    return read_outside_changes(
        workspace, session_id, "2026-01-01T00:00:00.000Z", end_record and Record(end_record), "now"
    )


def end(app, session_id, root):
    app.call("end_session", {"session_id": session_id})
    return records(root)[-1]


def saved_path(root, session_id):
    return state_dir.path_of(str(root)) / report_files.DIRECTORY / f"{session_id}.json"


def test_an_open_session_is_compared_now(begun, changed):
    found = read(begun, changed)
    edited, renamed = found.report.ungoverned

    assert found.source == "compared"
    assert (edited.path, edited.change, edited.before.hash, edited.after.hash) == (
        "a",
        "modified",
        sha(b"1\n"),
        sha(b"1\n2\n3"),
    )
    assert (edited.before.lines, edited.after.lines, edited.after.kind, edited.after.size) == (1, 3, "file", 5)
    assert (renamed.path, renamed.source, renamed.change, renamed.after.hash) == ("c", "b", "renamed", sha(b"1\n2\n"))


def test_an_ended_session_has_the_report_of_its_end(begun, changed, workspace):
    compared = read(begun, changed).report
    record = end(begun, changed, workspace)
    (workspace / "later").write_text("later\n")
    found = read(begun, changed, record)

    assert found.source == "saved"
    assert (found.report.ungoverned, found.report.ungoverned_count) == (compared.ungoverned, 2)
    assert record["detail"]["manifest"]["sha256"] == found.report.list_hash
    assert record["detail"]["manifest"]["ungoverned"] == 2


def test_a_report_that_was_altered_or_lost_is_not_shown_but_the_counts_of_the_log_are(begun, changed, workspace):
    record = end(begun, changed, workspace)
    path = saved_path(workspace, changed)
    content = json.loads(path.read_text())
    content["ungoverned"] = content["ungoverned"][1:]
    path.write_text(json.dumps(content))
    altered = read(begun, changed, record)
    path.unlink()
    missing = read(begun, changed, record)

    assert (altered.source, altered.report.ungoverned, altered.report.ungoverned_count) == ("altered", (), 2)
    assert (missing.source, missing.report.ungoverned, missing.report.ungoverned_count) == ("missing", (), 2)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b'{"session_id": 1}', b"[" * 100_000])
def test_a_report_file_of_any_content_is_missing(begun, changed, workspace, content):
    record = end(begun, changed, workspace)
    saved_path(workspace, changed).write_bytes(content)

    assert read(begun, changed, record).source == "missing"


def test_a_session_ended_by_a_version_without_manifest_says_so(begun, changed, workspace):
    record = {**end(begun, changed, workspace), "detail": None}
    found = read(begun, changed, record)

    assert (found.source, found.report.coverage.state) == ("not_taken", "partial")


def test_a_report_survives_its_json_form(begun, changed):
    report = read(begun, changed).report

    assert OutsideReport.from_json(json.loads(json.dumps(report.as_json()))) == report
