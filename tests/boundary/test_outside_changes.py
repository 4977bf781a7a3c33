"""What changed without Kaiza is listed when a session ends: nothing is missed, and nothing is invented."""

import json
from hashlib import sha256

import pytest
from outside_changes import CHANGES, fill_project
from trees import differences, look

from kaiza.store import session_manifest
from kaiza.store.manifest import tree


@pytest.fixture
def project(workspace, monkeypatch):
    """A workspace with something of each kind in it; its directories are read in chunks of three."""
    monkeypatch.setattr(tree, "CHUNK_ENTRIES", 3)
    fill_project(workspace)
    return workspace


def begin(app):
    return app.call("begin_session", {"role": "WINDSURF"}).output["session_id"]


def settle(app):
    """Wait until the manifest is written and hashed, as it is a moment after `begin_session`."""
    (workspace,) = app.services.workspaces.values()
    for session_id in list(workspace.manifest._begun):
        workspace.manifest.wait(session_id, 60)


def end(app, session_id):
    output = app.call("end_session", {"session_id": session_id}).output
    return output, {(each["path"], each["change"], each.get("from")) for each in output["ungoverned"]}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_lists_what_was_changed_outside(app, project, change):
    session_id = begin(app)
    settle(app)
    before = look(project)
    change(project)

    output, listed = end(app, session_id)

    assert listed == differences(before, look(project))
    assert output["ungoverned_count"] == len(listed)
    assert output["manifest"] == "whole"


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_calls_what_was_changed_before_the_session_already_there(make_app, project, change):
    first = make_app(project)
    end(first, begin(first))
    settle(first)
    first.close()
    before = look(project)
    change(project)
    expected = differences(before, look(project))
    app = make_app(project)
    session_id = begin(app)
    settle(app)
    (workspace,) = app.services.workspaces.values()
    report = session_manifest.compare_session(workspace, session_id, "2026-01-01T00:00:00.000Z", "", 30)

    _, listed = end(app, session_id)

    assert listed == set()
    assert {(each.path, each.change, each.source) for each in report.already_there} == expected


def test_the_hash_of_a_changed_secret_is_in_no_report(app, workspace):
    for name in (".env", "id_rsa"):
        (workspace / name).write_text("one\n")
    (workspace / "src").mkdir()
    session_id = begin(app)
    settle(app)
    (workspace / ".env").write_text("two\n")
    (workspace / "id_rsa").rename(workspace / "src/notes.txt")
    (opened,) = app.services.workspaces.values()
    report = session_manifest.compare_session(opened, session_id, "2026-01-01T00:00:00.000Z", "", 30)
    text = json.dumps(report.as_json())

    assert {(each.path, each.change) for each in report.ungoverned} == {
        (".env", "modified"),
        ("src/notes.txt", "renamed"),
    }
    assert not [word for word in (b"one\n", b"two\n") if sha256(word).hexdigest() in text]
    assert report.ungoverned[0].after.size == len("two\n")
    assert end(app, session_id)[0]["ungoverned_count"] == 2
