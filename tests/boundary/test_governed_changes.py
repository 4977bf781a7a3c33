"""What the log explains is not listed as changed without Kaiza, and what happened in between is."""

import os
import signal

import pytest
from agents import edit, person, plan, several, sha
from outside_changes import begin
from scenes import records

from kaiza.store import session_manifest
from kaiza.store.changes.transaction import TransactionManager

SCOPE = (
    '{modify: ["src/**", "out/**"], create: ["src/**", "out/**"], delete: ["src/**"],'
    ' move: [{from: "src/**", to: "src/**"}]}'
)


@pytest.fixture
def project(workspace):
    (workspace / "src").mkdir()
    for name in "abc":
        (workspace / f"src/{name}").write_text(f"{name}\n")
    (workspace / "src/run").write_text("#!/bin/sh\n")
    (workspace / "src/run").chmod(0o755)
    (workspace / ".gitignore").write_text("out\n")
    return workspace


@pytest.fixture
def session(make_app, project):
    """An application, its session, and an approved plan that was there before."""
    approved = plan(project, scope=SCOPE)
    app = make_app(project)
    return app, begin(app), approved


def call(session, tool, **arguments):
    app, _, approved = session
    outcome = app.call(tool, {"plan_hash": approved, **arguments})
    assert outcome.envelope is None, outcome.envelope
    return outcome.output


def end(session):
    app, session_id, _ = session
    output = app.call("end_session", {"session_id": session_id}).output
    assert output["manifest"] == "whole"
    return {(each["path"], each["change"]) for each in output["ungoverned"]}


def write(session, path, content, root):
    """Replace a file by the agent, which has read it."""
    return call(session, "write_file", path=path, content=content, expected_hash=sha((root / path).read_bytes()))


def test_all_changes_of_an_agent_are_explained(session, project):
    call(session, "write_file", path="src/new/er/d", content="d\n")
    write(session, "src/a", "A\n", project)
    write(session, "src/a", "AA\n", project)
    call(session, "delete_file", path="src/b", expected_hash=sha(b"b\n"))
    call(session, "move_file", source="src/c", destination="src/moved/c", expected_hash=sha(b"c\n"))
    write(session, "src/run", "#!/bin/bash\n", project)
    call(session, "write_file", path="out/made", content="ignored\n")

    assert end(session) == set()
    assert records(project)[-1]["detail"]["manifest"]["governed"] == 7


def test_an_undo_by_the_agent_and_one_by_a_person_are_explained(session, project):
    created = call(session, "write_file", path="src/new/d", content="d\n")
    written = write(session, "src/a", "A\n", project)
    removed = call(session, "delete_file", path="src/run", expected_hash=sha(b"#!/bin/sh\n"))
    call(session, "undo_changes", request_ids=[written["request_id"]])

    assert person(project, "undo", "--request", removed["request_id"], created["request_id"], "--yes") == 0
    assert (project / "src/run").stat().st_mode & 0o777 == 0o755
    assert end(session) == set()


@pytest.mark.parametrize(
    ("outside", "expected"),
    [
        (lambda root: (root / "src/a").write_text("X\n"), {("src/a", "modified")}),
        (lambda root: (root / "src/a").write_text("a\n"), {("src/a", "modified")}),
        (lambda root: (root / "src/a").unlink(), {("src/a", "deleted")}),
        (lambda root: (root / "src/a").chmod(0o600), {("src/a", "mode")}),
        (lambda root: (root / "src/new").unlink(), {("src/new", "deleted")}),
        (lambda root: (root / "src/new").write_text("X\n"), {("src/new", "modified")}),
        (lambda root: (root / "src/new").chmod(0o755), {("src/new", "mode")}),
        (lambda root: (root / "src/new").rename(root / "src/newer"), {("src/newer", "renamed")}),
        (lambda root: (root / "src/c").rename(root / "src/a"), {("src/a", "modified"), ("src/c", "deleted")}),
        (lambda root: (root / "src/b").write_text("b\n"), {("src/b", "created")}),
        (lambda root: (root / "src/b").mkdir(), {("src/b", "created")}),
    ],
)
def test_what_something_else_did_after_the_agent_is_listed(session, project, outside, expected):
    write(session, "src/a", "A\n", project)
    call(session, "write_file", path="src/new", content="new\n")
    call(session, "delete_file", path="src/b", expected_hash=sha(b"b\n"))
    outside(project)

    assert end(session) == expected


def test_what_something_else_did_before_or_between_the_agents_changes_is_listed(session, project):
    (project / "src/a").write_text("X\n")
    write(session, "src/a", "A\n", project)
    write(session, "src/c", "C\n", project)
    (project / "src/c").write_text("X\n")
    write(session, "src/c", "CC\n", project)
    (project / "src/run").chmod(0o700)
    write(session, "src/run", "run\n", project)

    assert end(session) == {("src/a", "modified"), ("src/c", "modified"), ("src/run", "mode")}


def test_changes_of_other_sessions_are_explained(session, make_app, project):
    other = make_app(project)
    other.call("begin_session", {"role": "WINDSURF"})
    other.call("write_file", {"path": "src/theirs", "content": "1\n", "plan_hash": session[2]})
    (project / "src/b").write_text("X\n")

    assert end(session) == {("src/b", "modified")}


def test_drafts_reports_and_decisions_on_plans_are_explained(session, project):
    app, session_id, _ = session
    content = (project / "plans/PLAN-1.md").read_text().replace("PLAN-1", "PLAN-2").replace("APPROVED", "DRAFT")
    planner = app.call("begin_session", {"role": "ANTIGRAVITY"}).output["session_id"]
    for plan_id in ("PLAN-2", "PLAN-3", "PLAN-4"):
        saved = {"plan_id": plan_id, "content": content.replace("PLAN-2", plan_id), "session_id": planner}
        assert app.call("save_plan", saved).envelope is None
    app.call("write_report", {"title": "All well", "content": "Yes.", "session_id": session_id})
    edit(project, "status: DRAFT", "status: APPROVED", "PLAN-3")
    assert person(project, "plan", "reject", "PLAN-4") == 0
    listed = end(session)

    assert listed == set()


def test_other_edits_of_plans_and_reports_are_listed(session, project):
    app, session_id, _ = session
    report = app.call("write_report", {"title": "All well", "content": "Yes.", "session_id": session_id}).output["path"]
    (project / report).write_text("No.\n")
    edit(project, "# Why", "# Why not")
    (project / "plans/PLAN-7.md").write_text((project / "plans/PLAN-1.md").read_text())

    assert end(session) == {(report, "modified"), ("plans/PLAN-1.md", "modified"), ("plans/PLAN-7.md", "created")}


def test_a_change_killed_between_intent_and_outcome_is_explained(session, make_app, project):
    app, session_id, approved = session
    child = os.fork()
    if child == 0:
        try:
            mortal = make_app(project)
            mortal.call("begin_session", {"role": "WINDSURF"})
            apply = TransactionManager.apply

            def apply_and_die(self, prepared):
                apply(self, prepared)
                os.kill(os.getpid(), signal.SIGKILL)

            TransactionManager.apply = apply_and_die
            mortal.call("write_file", {"path": "src/crashed", "content": "1\n", "plan_hash": approved})
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    workspace = app.services.workspaces[os.path.realpath(project)]
    unrecovered = session_manifest.compare_session(workspace, session_id, records(project)[0]["timestamp"], "", 30)
    left = {path.name for path in (project / "src").iterdir()}
    make_app(project).call("begin_session", {"role": "WINDSURF"})

    assert "crashed" in left
    assert unrecovered.ungoverned == ()
    assert end(session) == set()


@pytest.mark.parametrize("place", ["src", "out"])
def test_a_file_with_the_temporary_name_of_a_settled_call_is_listed(session, project, place):
    call(session, "write_file", path="src/new", content="1\n")
    request_id = records(project)[-1]["request_id"]
    (project / place).mkdir(exist_ok=True)
    (project / place / f".kaiza-{request_id}-0").write_text("hidden\n")

    assert end(session) == {(f"{place}/.kaiza-{request_id}-0", "created")}


def test_a_session_of_a_server_that_is_gone_is_compared_with_its_own_begin(project):
    with several(project) as start:
        first = start()
        session_id = first.begun["session_id"]
        first.close()
        (project / "src/a").write_text("X\n")
        second = start()
        (project / "src/b").write_text("X\n")
        listed = second.call("end_session", session_id=session_id)
        own = second.call("end_session")

    assert {each["path"] for each in own["ungoverned"]} == {"src/b"}
    assert {each["path"] for each in listed["ungoverned"]} == {"src/a", "src/b"}


@pytest.mark.parametrize("umask", [0o022, 0o002, 0o077, 0o000])
@pytest.mark.parametrize("mode", [0o666, 0o664, 0o644, 0o600, 0o444])
def test_another_mode_of_a_created_file_is_listed_under_every_umask(session, project, umask, mode):
    before = os.umask(umask)
    try:
        for name in ("new", "same"):
            call(session, "write_file", path=f"src/{name}", content="x\n")
    finally:
        os.umask(before)
    (project / "src/new").chmod(mode)

    assert end(session) == ({("src/new", "mode")} if mode != 0o666 & ~umask else set())
