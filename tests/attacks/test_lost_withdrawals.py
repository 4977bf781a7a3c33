"""A withdrawal by editing outlives the process that saw it, also where the state directory cannot be written."""

import os
from pathlib import Path

import pytest
from agents import confirm, hash_of, plan
from scenes import records, see_plans

from kaiza.store.disk import state_dir
from kaiza.store.trust.seen_plans import SeenPlans

PATH = "plans/PLAN-1.md"


def write(app, root):
    arguments = {"path": "src/a", "content": "x\n", "plan_hash": hash_of(root), "dry_run": True}
    envelope = app.call("write_file", arguments).envelope
    return envelope and (envelope["invariant_id"] or envelope["error_code"])


@pytest.fixture
def approved(workspace, make_app):
    """An application with a session, under an approved plan; and the plan's file."""
    (workspace / "src").mkdir()
    plan(workspace)
    app = make_app(workspace)
    app.call("begin_session", {"role": "WINDSURF"})
    assert write(app, workspace) is None
    return app, workspace / PATH


@pytest.fixture
def full_state(monkeypatch):
    """SeenPlans cannot be saved, as on a full or read-only disk; what was saved before can be read."""

    def refuse(*_words, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(SeenPlans, "_write_plans", refuse)
    return monkeypatch


def restart(app, make_app, root):
    app.close()
    app = make_app(root)
    app.call("begin_session", {"role": "WINDSURF"})
    return app


@pytest.mark.parametrize("status", ["REVOKED", "REJECTED", "DONE", "DRAFT"])
def test_one_seen_while_the_state_directory_is_full_is_in_the_log(approved, workspace, make_app, full_state, status):
    app, path = approved
    content = path.read_bytes()
    path.write_bytes(content.replace(b"APPROVED", status.encode()))
    assert app.call("list_plans", {}).envelope is None
    path.write_bytes(content)
    app = restart(app, make_app, workspace)
    full_state.undo()

    assert write(app, workspace) == "PLAN_WITHDRAWN"
    assert [each["detail"] for each in records(workspace) if each["kind"] == "recovery"] == [
        {"result": "plan_withdrawn", "status": status}
    ]


def test_one_seen_by_the_watch_only_is_recorded_when_the_server_ends(approved, workspace, make_app, full_state):
    app, path = approved
    content = path.read_bytes()
    path.write_bytes(content.replace(b"APPROVED", b"REVOKED"))
    (opened,) = app.services.workspaces.values()
    opened.look_at_plans()
    path.write_bytes(content)
    app = restart(app, make_app, workspace)

    assert write(app, workspace) == "PLAN_WITHDRAWN"


def test_where_neither_can_be_written_no_call_succeeds_until_it_is_recorded(approved, workspace, full_state):
    app, path = approved
    content = path.read_bytes()
    (opened,) = app.services.workspaces.values()
    path.write_bytes(content.replace(b"APPROVED", b"REVOKED"))
    opened.look_at_plans()
    path.write_bytes(content)
    real_append = opened.log.append

    def refuse(*_words, **_options):
        raise OSError(28, "No space left on device")

    full_state.setattr(opened.log, "append", refuse)
    refused = write(app, workspace), app.call("list_plans", {}).envelope["error_code"]
    full_state.setattr(opened.log, "append", real_append)

    assert refused == ("AUDIT_LOG_FAILED", "AUDIT_LOG_FAILED")
    assert write(app, workspace) == "PLAN_WITHDRAWN"


def test_one_in_the_log_survives_the_loss_of_what_was_seen_and_ends_with_an_approval(approved, workspace, make_app):
    app, path = approved
    content = path.read_bytes()
    path.write_bytes(content.replace(b"APPROVED", b"REVOKED"))
    app.call("list_plans", {})
    path.write_bytes(content)
    os.unlink(Path(state_dir.path_of(str(workspace)), "sights.json"))
    app = restart(app, make_app, workspace)
    withdrawn = write(app, workspace)
    assert confirm(workspace, "plan", "approve", "PLAN-1") == 0
    approved_again = write(app, workspace)
    see_plans(workspace)

    assert (withdrawn, approved_again, write(app, workspace)) == ("PLAN_WITHDRAWN", None, None)
    assert [each["kind"] for each in records(workspace)].count("recovery") == 1


def test_one_that_another_process_saw_is_recorded_once(approved, workspace, make_app):
    app, path = approved
    other = make_app(workspace)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"APPROVED", b"REVOKED"))
    see_plans(workspace)
    path.write_bytes(content)
    for each in (app, other, app):
        each.call("server_info", {})

    assert write(app, workspace) == "PLAN_WITHDRAWN"
    assert [each["kind"] for each in records(workspace)].count("recovery") == 1
