"""Attempts of an agent to change what governs it: each is refused and recorded, and changes nothing."""

import base64
import os
import shutil
from pathlib import Path

import pytest
from agents import WIDE, plan, sha
from scenes import bind, records

ROOTS = ["plans/PLAN-1.md", "plans/PLAN-2.md", "plans/deep/x", "audit/audit-log.jsonl", "audit/x", ".kaiza/journal/x"]
ROOTS += ["kaiza.toml", ".kaiza/objects/00/x", ".kaiza", "plans", "audit"]
ANYWHERE = [".git/config", ".git/hooks/pre-commit", "src/.git/config", ".gitmodules", "src/.gitattributes", ".husky/x"]
AGENT_FILES = [
    ".claude/settings.json", ".cursor/rules/x", ".vscode/tasks.json", ".codex/config.toml", ".gemini/settings.json",
    ".kiro/x", ".windsurf/x", ".agents/x", ".idea/x", ".devcontainer/devcontainer.json", ".mcp.json", ".cursorrules",
    "AGENTS.md", "CLAUDE.md", "GEMINI.md", ".github/workflows/x.yml", ".github/hooks/x", ".pre-commit-config.yaml",
    ".envrc", "src/.claude/x", "src/AGENTS.md",
]  # fmt: skip
SECRET = [".env", ".env.local", "src/id_rsa", "x.pem", "src/deep/y.key", ".npmrc", ".netrc", ".pypirc"]
LOOK_ALIKES = [
    "PLANS/PLAN-1.md", "Plans/x", "plans./x", "plans /x", "\uff50lans/x", "pl\u200bans/x", "plan\u017f/x", "AUDIT/x",
    "audit\u2060/x", ".KAIZA/x", ".kaiza./x", "KAIZA.TOML", "kaiza.toml.", "\u212aaiza.toml", ".GIT/config",
    ".git./config", ".git /config", ".GiT/x",
    "GIT~1/config", "git~1/config", "src/.Git/hooks/x", ".g\u200dit/config", ".\ufeffgit/config", ".GITMODULES",
    ".Claude/x", ".CLAUDE/settings.json", "agents.MD", "claude.md", ".claude./x", "\uff0eclaude/x",
    ".Github/Workflows/x", ".ENV", ".Env.local", "X.PEM", "ID_RSA",
]  # fmt: skip
SPELLINGS = [
    "./plans/PLAN-1.md", "plans//PLAN-1.md", "src/../plans/PLAN-1.md", "./.git/config", "src/./../.git/config",
    "../project/plans/PLAN-1.md", "plans/./PLAN-1.md", "plans/PLAN-1.md/", "src/..//audit/x", "/etc/passwd", "../x",
]  # fmt: skip
PROTECTED = [*ROOTS, *ANYWHERE, *AGENT_FILES, *SECRET, *LOOK_ALIKES, *SPELLINGS]
REFUSALS = {
    "POLICY_VIOLATION", "PATH_TRAVERSAL_BLOCKED", "OUTSIDE_WORKSPACE", "INVALID_PATH", "PATCH_INVALID",
}  # fmt: skip
MINE_HASH = sha(b"mine\n")


@pytest.fixture
def scene(workspace):
    """A workspace with every kind of protected file, and a plan with the widest scope."""
    approved = plan(workspace, scope=WIDE)  # before the broken .git, which makes the origin of new plans unknown
    for path in [*ROOTS[1:3], *ANYWHERE, *AGENT_FILES, *SECRET, ".kaiza/objects/00/x"]:
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text("theirs\n")
    (workspace / "kaiza.toml").write_text("")
    (workspace / "src" / "mine").write_text("mine\n")
    bind(workspace)
    return approved


def manifest(root):
    """Every file and directory, without the log, the run log and the locks that any call adds."""
    found = {}
    for here, names, files in os.walk(root):
        if Path(here) == root:
            names.remove("audit")
        names[:] = [name for name in names if not (Path(here) == root / ".kaiza" and name in ("locks", "live", "runs"))]
        for name in files:
            path = Path(here, name)
            found[str(path)] = os.readlink(path) if path.is_symlink() else path.read_bytes()
        found[here] = sorted(names)
    return found


def attempts(path, plan_hash):
    """Every kind of change of a path, also as either end of a move and through a patch."""
    theirs = sha(b"theirs\n")
    new = f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n"
    old = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-theirs\n+ours\n"
    gone = f"--- a/{path}\n+++ /dev/null\n@@ -1 +0,0 @@\n-theirs\n"
    to = f"diff --git a/src/mine b/{path}\nsimilarity index 100%\nrename from src/mine\nrename to {path}\n"
    away = f"diff --git a/{path} b/src/new\nsimilarity index 100%\nrename from {path}\nrename to src/new\n"
    yield "write_file", {"path": path, "content": "ours\n"}
    yield "write_file", {"path": path, "content": "ours\n", "expected_hash": theirs}
    yield "edit_file", {"path": path, "expected_hash": theirs, "edits": [{"old_text": "theirs", "new_text": "ours"}]}
    yield "delete_file", {"path": path, "expected_hash": theirs}
    yield "move_file", {"source": "src/mine", "destination": path, "expected_hash": MINE_HASH}
    yield "move_file", {"source": path, "destination": "src/new", "expected_hash": theirs}
    for patch in (new, old, gone, to, away):
        yield "apply_patch", {"patch": base64.b64encode(patch.encode()).decode(), "encoding": "base64"}


def try_changes(app, workspace, path, plan_hash):
    """Error code and role lock of every attempt. The lock is removed before the next one."""
    for tool, asked in attempts(path, plan_hash):
        envelope = app.call(tool, {**asked, "plan_hash": plan_hash}).envelope
        state = next(iter(app.services.workspaces.values())).audit_state
        yield tool, envelope and envelope["error_code"], state.locks.pop("WINDSURF", None)
        state.usage.clear()


@pytest.mark.parametrize("path", PROTECTED)
def test_no_spelling_of_a_protected_path_can_be_changed(begun, workspace, scene, path):
    before = manifest(workspace)
    found = list(try_changes(begun, workspace, path, scene))
    written = records(workspace)[-len(found) :]

    assert {code for _, code, _ in found} <= REFUSALS, found
    assert manifest(workspace) == before
    assert [(each["kind"], each["error_code"]) for each in written] == [("call", code) for _, code, _ in found]
    assert any(lock for _, _, lock in found)
    assert "theirs" not in str(written) + str(found)


def add_links(workspace):
    """Add links inside the workspace that lead to protected files."""
    (workspace / "src" / "to-plans").symlink_to("../plans")
    (workspace / "src" / "to-git").symlink_to("../.git")
    (workspace / "src" / "a-plan.md").symlink_to("../plans/PLAN-1.md")
    (workspace / "src" / "deep").mkdir(exist_ok=True)
    (workspace / "src" / "deep" / "up").symlink_to("../..")
    (workspace / "src" / "to-claude").symlink_to("../.claude")
    (workspace / "src" / "dangling").symlink_to("../plans/PLAN-NEW.md")
    (workspace / "src" / "absolute").symlink_to(workspace / "plans")


@pytest.mark.parametrize(
    "path",
    [
        "src/to-plans/PLAN-1.md", "src/to-plans/PLAN-NEW.md", "src/to-git/config", "src/to-git/hooks/pre-commit",
        "src/a-plan.md", "src/deep/up/plans/PLAN-1.md", "src/deep/up/.git/config", "src/deep/up/kaiza.toml",
        "src/to-claude/settings.json", "src/dangling", "src/absolute/PLAN-1.md", "src/deep/up/src/to-plans/PLAN-1.md",
    ],
)  # fmt: skip
def test_no_protected_path_can_be_changed_through_a_link(begun, workspace, scene, path):
    add_links(workspace)
    # The first change under a plan keeps the plan's text.
    begun.call("write_file", {"path": "src/first", "content": "x\n", "plan_hash": scene, "dry_run": True})
    before = manifest(workspace)
    found = list(try_changes(begun, workspace, path, scene))

    assert all(code not in (None, "ok") for _, code, _ in found), found
    assert manifest(workspace) == before
    assert len([each for each in records(workspace) if each["outcome"] == "error"]) == len(found)


def test_a_plan_can_unlock_agent_instructions_by_name_but_no_governing_file(begun, workspace, scene):
    shutil.rmtree(workspace / ".git")
    unlocks = ', unlock: ["AGENTS.md", ".claude/settings.json"]}'
    wide = plan(workspace, "PLAN-2", scope=WIDE.replace("}]}", "}]" + unlocks))
    asked = {"content": "ours\n", "expected_hash": sha(b"theirs\n"), "plan_hash": wide}
    unlocked = [
        begun.call("write_file", {**asked, "path": path}).envelope for path in ("AGENTS.md", ".claude/settings.json")
    ]
    unnamed = begun.call("write_file", {**asked, "path": "src/AGENTS.md"}).envelope
    plan_unlocking_git = plan(workspace, "PLAN-3", scope=WIDE.replace("}]}", '}], unlock: [".git/config"]}'))
    report_state = begun.call("write_report", {"title": "t", "content": "c"}).output["state"]
    refused = begun.call("write_file", {**asked, "path": "src/new", "plan_hash": plan_unlocking_git}).envelope

    assert unlocked == [None, None]
    assert (unnamed["error_code"], unnamed["invariant_id"]) == ("POLICY_VIOLATION", "CONTROL_PLANE_PROTECTED")
    assert report_state == "active"
    assert refused["error_code"] == "PLAN_ENFORCEMENT_FAILED"


def test_an_undo_does_not_write_through_a_link_to_a_plan(begun, workspace, scene):
    made = begun.call("write_file", {"path": "src/new", "content": "x", "plan_hash": scene}).output["request_id"]
    (workspace / "src" / "new").unlink()
    (workspace / "src" / "new").symlink_to("../plans/PLAN-1.md")
    before = manifest(workspace)
    output = begun.call("undo_changes", {"request_ids": [made], "plan_hash": scene}).output

    assert (output["changes"], [each["path"] for each in output["kept"]]) == ([], ["src/new"])
    assert manifest(workspace) == before
