"""An agent can neither change nor make a workspace below the workspace, by any tool or spelling."""

import pytest
from agents import HEAD, WIDE, plan, sha
from scenes import make_ready, records

from kaiza.domain.audit.projection import NEW_WORKSPACE

PLAN = HEAD.format(plan_id="PLAN-9", status="APPROVED", scope=WIDE, more="")
WITH_ERROR = PLAN.replace("title: A plan", "titel: A plan")
PROSE = "# A plan\n\nFirst this, then that.\n\nkaiza_plan: 1\n"
REFUSED = ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")
MAKES_ONE = {
    "a log": ("packages/x/audit/audit-log.jsonl", ""),
    "a log in another case": ("packages/x/Audit/AUDIT-LOG.JSONL", ""),
    "a log in full width": ("packages/x/\uff41udit/audit-log.jsonl", ""),
    "a part of .kaiza": ("packages/x/.kaiza/id", "x"),
    ".kaiza": ("packages/x/.Kaiza", "x"),
    "a plan": ("packages/x/plans/PLAN-9.md", PLAN),
    "a plan far below": ("a/b/c/d/plans/PLAN-9.md", PLAN),
    "a draft": ("packages/x/plans/PLAN-9.md", PLAN.replace("APPROVED", "DRAFT")),
    "a plan of another name": ("packages/x/plans/readme.md", PLAN),
    "a plan with an error": ("packages/x/plans/PLAN-9.md", WITH_ERROR),
    "a plan in another case": ("packages/x/PLANS/plan-9.MD", PLAN),
    "a plan with an invisible character": ("packages/x/pl\u200bans/PLAN-9.md", PLAN),
    "a plan with a trailing dot": ("packages/x/plans./PLAN-9.md.", PLAN),
    "a plan with CRLF": ("packages/x/plans/PLAN-9.md", PLAN.replace("\n", "\r\n")),
}
ORDINARY = {
    "a text in a folder of plans": ("docs/plans/x.md", PROSE),
    "a text with a head": ("docs/plans/x.md", "---\ntitle: X\nstatus: APPROVED\n---\n"),
    "a file of an application": ("app/audit/model.py", "x"),
    "settings of nothing": ("docs/kaiza.toml", "x"),
    "a plan elsewhere": ("docs/examples/PLAN-9.md", PLAN),
    "a plan below a folder of plans": ("docs/plans/old/PLAN-9.md", PLAN),
}
CONTROL_PLANE = [
    "packages/x/plans/note.txt", "packages/x/plans/PLAN-8.md", "packages/x/audit/x", "packages/x/kaiza.toml",
    "packages/x/KAIZA.toml", "packages/x/.kaiza/journal/x", "packages/x/\uff50lans/x", "packages/x/audit. /x",
    "packages/X/plans/x", "Packages/x/kaiza.toml", "packages/x/plans/deep/x",
]  # fmt: skip
MARKS = {
    "a log": ("audit/audit-log.jsonl", ""),
    "a log in another case": ("Audit/Audit-Log.jsonl", ""),
    ".kaiza": (".kaiza/id", "x"),
    "a plan": ("plans/PLAN-7.md", PLAN),
    "a plan with an error": ("plans/PLAN-7.md", WITH_ERROR),
}


@pytest.fixture
def approved(begun, workspace):
    """Hash of an approved plan for everything."""
    return plan(workspace, scope=WIDE)


def put(root, path, content=""):
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(content)
    return sha(content.encode())


def refusal_of(outcome):
    envelope = outcome.envelope
    return envelope and (envelope["error_code"], envelope["invariant_id"])


def has_lock(app):
    return bool(next(iter(app.services.workspaces.values())).audit_state.locks)


@pytest.mark.parametrize("what", MAKES_ONE)
def test_a_write_that_would_make_a_workspace_is_refused_and_does_not_lock(begun, workspace, approved, what):
    path, content = MAKES_ONE[what]
    outcome = begun.call("write_file", {"path": path, "content": content, "plan_hash": approved})

    assert refusal_of(outcome) == REFUSED
    assert outcome.envelope["cause"]["rule"] == NEW_WORKSPACE
    assert not (workspace / path.split("/")[0]).exists()
    assert "intent" not in [record["kind"] for record in records(workspace)]
    assert not has_lock(begun)


@pytest.mark.parametrize("what", ORDINARY)
def test_ordinary_files_of_similar_names_can_be_written(begun, workspace, approved, what):
    path, content = ORDINARY[what]
    outcome = begun.call("write_file", {"path": path, "content": content, "plan_hash": approved})

    assert outcome.envelope is None
    assert (workspace / path).read_text() == content


@pytest.mark.parametrize("path", CONTROL_PLANE)
def test_the_control_plane_of_a_workspace_below_is_protected_and_locks(begun, workspace, approved, path):
    put(workspace, "packages/x/audit/audit-log.jsonl")
    outcome = begun.call("write_file", {"path": path, "content": "x", "plan_hash": approved})

    assert refusal_of(outcome) == REFUSED
    assert outcome.envelope["cause"]["workspace"] == "packages/x"
    assert not (workspace / path).exists()
    assert has_lock(begun)


@pytest.mark.parametrize("what", MARKS)
def test_a_directory_is_a_workspace_by_any_mark(begun, workspace, approved, what):
    mark, content = MARKS[what]
    put(workspace, f"packages/x/{mark}", content)
    outcome = begun.call("write_file", {"path": "packages/x/kaiza.toml", "content": "x", "plan_hash": approved})

    assert refusal_of(outcome) == REFUSED


def test_other_files_of_a_workspace_below_can_be_written(begun, workspace, approved):
    make_ready(workspace / "packages/x")
    put(workspace, "packages/x/audit/audit-log.jsonl")
    outcome = begun.call("write_file", {"path": "packages/x/src/a", "content": "x", "plan_hash": approved})

    assert outcome.envelope is None


def test_a_plan_or_log_below_is_not_deleted_moved_or_edited(begun, workspace, approved):
    digest = put(workspace, "packages/x/plans/PLAN-9.md", PLAN)
    path = "packages/x/plans/PLAN-9.md"
    edits = [{"old_text": "APPROVED", "new_text": "DRAFT"}]
    refusals = []
    for tool, arguments in (
        ("delete_file", {"path": path}),
        ("move_file", {"source": path, "destination": "y.md"}),
        ("edit_file", {"path": path, "edits": edits}),
    ):
        refusals.append(refusal_of(begun.call(tool, {**arguments, "expected_hash": digest, "plan_hash": approved})))
        next(iter(begun.services.workspaces.values())).audit_state.locks.clear()

    assert refusals == [REFUSED] * 3
    assert (workspace / path).read_text() == PLAN


def test_a_plan_is_not_moved_into_a_folder_of_plans(begun, workspace, approved):
    digest = put(workspace, "draft.md", PLAN)
    arguments = {"source": "draft.md", "destination": "packages/x/plans/PLAN-9.md", "expected_hash": digest}
    outcome = begun.call("move_file", {**arguments, "plan_hash": approved})

    assert refusal_of(outcome) == REFUSED
    assert (workspace / "draft.md").exists()
    assert not has_lock(begun)


def test_an_edit_does_not_turn_a_text_into_a_plan(begun, workspace, approved):
    digest = put(workspace, "docs/plans/x.md", PLAN.replace("kaiza_plan", "plan"))
    edits = [{"old_text": "plan: 1", "new_text": "kaiza_plan: 1"}]
    arguments = {"path": "docs/plans/x.md", "edits": edits, "expected_hash": digest, "plan_hash": approved}
    outcome = begun.call("edit_file", arguments)

    assert refusal_of(outcome) == REFUSED
    assert "kaiza_plan" not in (workspace / "docs/plans/x.md").read_text()


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("path", ["x/plans/PLAN-9.md", "x/.kaiza/id", "x/audit/audit-log.jsonl"])
def test_a_patch_makes_no_workspace(begun, workspace, approved, path, dry_run):
    lines = PLAN.splitlines()
    patch = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1,{len(lines)} @@\n" + "".join(f"+{line}\n" for line in lines)
    patch = f"--- /dev/null\n+++ b/ordinary\n@@ -0,0 +1 @@\n+x\n{patch}"
    outcome = begun.call("apply_patch", {"patch": patch, "plan_hash": approved, "dry_run": dry_run})

    assert refusal_of(outcome) == REFUSED
    assert not (workspace / "x").exists()
    assert not (workspace / "ordinary").exists()


def test_a_patch_does_not_rename_a_plan_into_place(begun, workspace, approved):
    put(workspace, "docs/x.md", PLAN)
    patch = "diff --git a/docs/x.md b/docs/plans/x.md\nsimilarity index 100%\n"
    patch += "rename from docs/x.md\nrename to docs/plans/x.md\n"
    outcome = begun.call("apply_patch", {"patch": patch, "plan_hash": approved})

    assert refusal_of(outcome) == REFUSED
    assert not (workspace / "docs/plans").exists()


@pytest.mark.parametrize(("mark", "expected"), [(None, None), ("docs/audit/audit-log.jsonl", REFUSED)])
def test_an_undo_in_a_folder_of_plans_is_judged_by_what_is_there_now(begun, workspace, approved, mark, expected):
    digest = put(workspace, "docs/plans/x.md", PROSE)
    deleted = begun.call("delete_file", {"path": "docs/plans/x.md", "expected_hash": digest, "plan_hash": approved})
    if mark:
        put(workspace, mark)
    undone = begun.call("undo_changes", {"request_ids": [deleted.output["request_id"]], "plan_hash": approved})

    assert refusal_of(undone) == expected
    assert (workspace / "docs/plans/x.md").exists() == (expected is None)
