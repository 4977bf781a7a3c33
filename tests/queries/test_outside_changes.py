"""The read model for reviews: saved with the session's end, checked against the log, or compared now."""

import json

import pytest
from agents import sha
from scenes import records

from kaiza.domain.audit.record import Record
from kaiza.queries.review_ungoverned import read_outside_changes
from kaiza.store import session_manifest
from kaiza.store.disk import state_dir


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
    return read_outside_changes(workspace, session_id, "2026-01-01T00:00:00.000Z", end_record, "now")


def end(app, session_id, root):
    app.call("end_session", {"session_id": session_id})
    return Record(records(root)[-1])


def saved_path(root, session_id):
    return state_dir.path_of(str(root)) / session_manifest.REPORTS / f"{session_id}.json"


def test_an_open_session_is_compared_now(begun, changed):
    edited, renamed = read(begun, changed).ungoverned

    assert (edited.path, edited.change, edited.before.hash, edited.after.hash) == (
        "a",
        "modified",
        sha(b"1\n"),
        sha(b"1\n2\n3"),
    )
    assert (edited.before.lines, edited.after.lines, edited.after.kind, edited.after.size) == (1, 3, "file", 5)
    assert (renamed.path, renamed.source, renamed.change, renamed.after.hash) == ("c", "b", "renamed", sha(b"1\n2\n"))


def test_an_ended_session_has_the_report_of_its_end(begun, changed, workspace):
    compared = read(begun, changed)
    record = end(begun, changed, workspace)
    (workspace / "later").write_text("later\n")
    saved = read(begun, changed, record)

    assert (saved.ungoverned, saved.ungoverned_count) == (compared.ungoverned, 2)
    assert record.detail["manifest"]["sha256"] == saved.list_hash
    assert record.detail["manifest"]["ungoverned"] == 2


def test_a_report_that_was_altered_or_lost_is_not_shown_but_the_counts_of_the_log_are(begun, changed, workspace):
    record = end(begun, changed, workspace)
    path = saved_path(workspace, changed)
    content = json.loads(path.read_text())
    content["ungoverned"] = content["ungoverned"][1:]
    path.write_text(json.dumps(content))
    altered = read(begun, changed, record)
    path.unlink()
    missing = read(begun, changed, record)

    assert [(each.ungoverned, each.ungoverned_count) for each in (altered, missing)] == [((), 2)] * 2


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"{}", b"null", b'{"session_id": 1}', b"[" * 100_000])
def test_a_report_file_of_any_content_is_missing(begun, changed, workspace, content):
    record = end(begun, changed, workspace)
    saved_path(workspace, changed).write_bytes(content)
    missing = read(begun, changed, record)

    assert (missing.ungoverned, missing.ungoverned_count) == ((), 2)


def test_nothing_is_known_of_a_session_whose_end_recorded_nothing(begun, changed, workspace):
    record = Record({**end(begun, changed, workspace).members, "detail": None})

    assert read(begun, changed, record) is None
