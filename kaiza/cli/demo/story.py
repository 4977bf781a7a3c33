"""The steps of the demo: what an agent may not do, what it may do under an approved plan, and how that is undone."""

import hashlib
import shutil
from pathlib import Path

from kaiza.cli.console import output
from kaiza.cli.demo.command import DemoError, DemoStage
from kaiza.domain.paths.protected_names import LOG_DIRECTORY, LOG_PATH
from kaiza.queries.audit_log import verify
from kaiza.server.mcp_client import McpClient, connect

GREETING_BEFORE = "def greet(name):\n    return 'Hello ' + name\n"
GREETING_AGAIN = "def greet(name: str) -> str:\n    return f'Good morning, {name}.'\n"
GREETING_AFTER = "def greet(name: str) -> str:\n    return f'Hello, {name}!'\n"
PATCH = """\
diff --git a/src/farewell.py b/src/farewell.py
new file mode 100644
--- /dev/null
+++ b/src/farewell.py
@@ -0,0 +1,2 @@
+def farewell(name: str) -> str:
+    return f'Goodbye, {name}!'
diff --git a/docs/usage.md b/docs/usage.md
--- a/docs/usage.md
+++ b/docs/usage.md
@@ -1 +1,3 @@
 # Usage
+
+Call `greet`, then `farewell`.
"""
PLAN_ID = "PLAN-0001-politeness"
PLAN = """\
---
kaiza_plan: 1
plan_id: PLAN-0001-politeness
title: Greet politely, and say goodbye
status: DRAFT
author: ANTIGRAVITY
created: "2026-01-01T00:00:00Z"
approved_by: null
approved_at: null
scope:
  modify: ["src/greet.py", "docs/usage.md"]
  create: ["src/farewell.py"]
limits: {files: 5, lines: 60}
---
# Why

The greeting lacks a comma, and there is no farewell.
"""


def play(stage: DemoStage, *, open_page: bool) -> None:
    """Play every step; a DemoError at the first that has another result than the story says."""
    before = _create_project(stage)
    with connect(str(stage.root)) as agent:
        failed = _play_session(stage, agent, before)
    if failed:
        raise failed
    _review_session(stage, open_page=open_page)
    _print_next_steps(stage)


def _play_session(stage: DemoStage, agent: McpClient, before: dict[str, str]) -> DemoError | None:
    """The steps with a connected agent. A failure is returned: the client wraps exceptions in a group."""
    try:
        _refuse_without_plan(stage, agent)
        plan_hash = _approve_plan(stage, agent)
        _change_files(stage, agent, plan_hash)
        _leave_scope(stage, agent, plan_hash)
        _tamper_with_log(stage)
        _undo_session(stage, agent, plan_hash, before)
        _end_session(stage, agent, plan_hash)
    except DemoError as failed:
        return failed
    return None


def _create_project(stage: DemoStage) -> dict[str, str]:
    stage.start_step("A project with three files. It becomes a workspace: plans/, audit/, docs/reports/.")
    for name, text in (
        ("src/greet.py", GREETING_BEFORE),
        ("docs/usage.md", "# Usage\n"),
        ("settings.ini", "debug = false\n"),
    ):
        path = stage.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in ("plans", "audit", "docs/reports"):
        (stage.root / name).mkdir(parents=True, exist_ok=True)
    stage.print_remark(*sorted(_hash_files(stage.root)))
    return _hash_files(stage.root)


def _refuse_without_plan(stage: DemoStage, agent: McpClient) -> None:
    stage.start_step("An agent connects. It must begin a session before it may do anything.")
    stage.expect_call(agent, "read_file", {"path": "src/greet.py"}, refused="SESSION_NOT_INITIALIZED")
    session = stage.expect_call(agent, "begin_session", {"role": "WINDSURF"}).body["session_id"]
    stage.session = session
    stage.start_step("It may read, but not every file, and nothing outside the workspace.")
    stage.expect_call(agent, "read_file", {"path": "src/greet.py", "session_id": session})
    stage.expect_call(
        agent, "read_file", {"path": "../../etc/passwd", "session_id": session}, refused="PATH_TRAVERSAL_BLOCKED"
    )
    stage.start_step("It tries to change a file. No plan has been approved.")
    request = {
        "path": "src/greet.py",
        "content": GREETING_AFTER,
        "expected_hash": _hash_text(GREETING_BEFORE),
        "session_id": session,
    }
    stage.expect_call(agent, "write_file", {**request, "plan_hash": "0" * 64}, refused="PLAN_NOT_FOUND")
    stage.require(
        that=(stage.root / "src/greet.py").read_text() == GREETING_BEFORE, otherwise="a refused write changed a file"
    )


def _approve_plan(stage: DemoStage, agent: McpClient) -> str:
    stage.start_step("As the planner it drafts a plan: which files, which operations, how much.")
    planner = stage.expect_call(agent, "begin_session", {"role": "ANTIGRAVITY"}).body["session_id"]
    draft = {"plan_id": PLAN_ID, "content": PLAN, "session_id": planner}
    cheat = {**draft, "content": PLAN.replace("DRAFT", "APPROVED")}
    stage.expect_call(agent, "save_plan", cheat, refused="PLAN_ENFORCEMENT_FAILED")
    drafted = stage.expect_call(agent, "save_plan", draft).body["plan_hash"]
    stage.expect_call(agent, "end_session", {"session_id": planner})
    stage.start_step("A draft allows nothing.")
    request = {
        "path": "src/greet.py",
        "content": GREETING_AFTER,
        "expected_hash": _hash_text(GREETING_BEFORE),
        "session_id": stage.session,
    }
    stage.expect_call(agent, "write_file", {**request, "plan_hash": drafted}, refused="PLAN_NOT_APPROVED")
    stage.start_step(f"A person opens plans/{PLAN_ID}.md, reads it, and changes one word: status: APPROVED.")
    path = stage.root / "plans" / f"{PLAN_ID}.md"
    path.write_text(path.read_text().replace("status: DRAFT", "status: APPROVED"))
    stage.print_remark("No command, no restart: the next call reads the file.")
    listed = stage.expect_call(agent, "list_plans", {"session_id": stage.session}).body["items"]
    return str(listed[0]["plan_hash"])


def _change_files(stage: DemoStage, agent: McpClient, plan_hash: str) -> None:
    common = {"plan_hash": plan_hash, "session_id": stage.session}
    stage.start_step(
        "Now the agent edits a file. The intent is on disk before the file changes, the outcome before the answer."
    )
    edits = [{"old_text": GREETING_BEFORE, "new_text": GREETING_AFTER}]
    request = {"path": "src/greet.py", "expected_hash": _hash_text(GREETING_BEFORE), "edits": edits}
    stage.expect_call(agent, "edit_file", {**request, **common})
    stage.start_step("It patches several files at once: all of them, or none.")
    stage.expect_call(agent, "apply_patch", {"patch": PATCH, **common})
    stage.require(that=(stage.root / "src/farewell.py").exists(), otherwise="the patch created no file")


def _leave_scope(stage: DemoStage, agent: McpClient, plan_hash: str) -> None:
    common = {"plan_hash": plan_hash, "session_id": stage.session}
    stage.start_step("It leaves the plan's scope. That is refused, and locks every change until it has reported why.")
    stage.expect_call(
        agent, "write_file", {"path": "setup.py", "content": "x\n", **common}, refused="PLAN_SCOPE_VIOLATION"
    )
    request = {
        "path": "src/greet.py",
        "content": GREETING_BEFORE,
        "expected_hash": _hash_text(GREETING_AFTER),
        "dry_run": False,
    }
    stage.expect_call(agent, "write_file", {**request, **common}, refused="SESSION_LOCKED")
    stage.start_step("It reports, and may continue. The fourth time in a day only a person can unlock it.")
    report = {"title": "I left the plan", "content": "setup.py is not in it.", "session_id": stage.session}
    stage.expect_call(agent, "write_report", report)
    shorter = GREETING_AFTER.replace("Hello, ", "Hi, ")
    stage.expect_call(agent, "write_file", {**request, "content": shorter, **common})


def _tamper_with_log(stage: DemoStage) -> None:
    stage.start_step("A copy of the log is tampered with: one refusal is edited into a success.")
    copy = stage.root.parent / "tampered"
    shutil.copytree(stage.root / LOG_DIRECTORY, copy / LOG_DIRECTORY)
    log = copy / LOG_PATH
    log.write_bytes(log.read_bytes().replace(b'"error_code":"PLAN_SCOPE_VIOLATION"', b'"error_code":null', 1))
    verdict = verify(str(copy))
    fault = verdict.get("first_fault")
    where = f"record {fault['seq']}: {fault['why']}" if fault else "nowhere"
    stage.print_remark(f"$ kaiza audit verify  ->  {verdict['verdict']}, {where}")
    stage.require(that=verdict["verdict"] == "broken", otherwise="an edited record was not detected")
    sound = verify(str(stage.root))
    stage.print_remark(f"The real log  ->  {sound['verdict']}, {sound['records']} records.")
    stage.require(that=sound["verdict"] == "intact", otherwise="the log is not intact")


def _undo_session(stage: DemoStage, agent: McpClient, plan_hash: str, before: dict[str, str]) -> None:
    stage.start_step("A person edits a file. Undo restores what the session changed, and leaves that file alone.")
    usage = stage.root / "docs/usage.md"
    usage.write_text(usage.read_text() + "A line by a person.\n")
    common = {"plan_hash": plan_hash, "session_id": stage.session}
    undone = stage.expect_call(agent, "undo_changes", {"all_of_session": True, **common}).body
    stage.print_remark(f"left alone: {', '.join(file['path'] for file in undone['kept'])} (modified since)")
    after = {name: text for name, text in _hash_files(stage.root).items() if not name.startswith(("plans/", "docs/"))}
    stage.require(
        that=after == {name: text for name, text in before.items() if not name.startswith("docs/")},
        otherwise="undo did not restore everything",
    )
    stage.require(that="by a person" in usage.read_text(), otherwise="undo lost a person's line")


def _end_session(stage: DemoStage, agent: McpClient, plan_hash: str) -> None:
    stage.start_step("The agent greets once more, as the plan allows.")
    request = {"path": "src/greet.py", "content": GREETING_AGAIN, "expected_hash": _hash_text(GREETING_BEFORE)}
    stage.expect_call(agent, "write_file", {**request, "plan_hash": plan_hash, "session_id": stage.session})
    stage.start_step(
        "Meanwhile another program changes a file, without Kaiza. The session ends, and the answer says so."
    )
    (stage.root / "settings.ini").write_text("debug = true\n")
    ended = stage.expect_call(agent, "end_session", {"session_id": stage.session}).body
    stage.require(
        that={each["path"] for each in ended["ungoverned"]} == {"docs/usage.md", "settings.ini"},
        otherwise="the changes without Kaiza were not found",
    )


def _review_session(stage: DemoStage, *, open_page: bool) -> None:
    from kaiza.cli import dispatch  # noqa: PLC0415  it imports the commands, and so this one

    stage.start_step("A person reviews the session: one page, which needs no network.")
    words = ["review", "--session", stage.session, "--workspace", str(stage.root)]
    stage.print_remark("$ kaiza review")
    stage.require(that=dispatch.main([*words, "--open"] if open_page else words) == 0, otherwise="the review failed")


def _print_next_steps(stage: DemoStage) -> None:
    stage.start_step("Everything above is in the audit log:")
    output.print_lines(
        [
            f"    cd {stage.root}",
            f"    export XDG_STATE_HOME={stage.root.parent / 'state'}",
            "    kaiza review --open",
            "    kaiza diff",
            "    kaiza audit show",
            "    kaiza audit verify",
            f"    kaiza plan show {PLAN_ID}",
            "To use Kaiza in your own project:",
            "    kaiza init DIR --client claude-code",
        ]
    )


def _hash_files(root: Path) -> dict[str, str]:
    """The hashes of the user's files, without Kaiza's own."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    named = {str(path.relative_to(root)): path for path in files}
    return {
        name: _hash_text(path.read_text()) for name, path in named.items() if not name.startswith((".kaiza", "audit/"))
    }


def _hash_text(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
