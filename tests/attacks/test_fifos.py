"""FIFOs in place of any file that Kaiza reads or writes: each call answers, none waits for another end."""

import os
import signal

import pytest
from agents import WIDE, plan
from repositories import run_git

from kaiza.app import App

CALLS = [
    ("begin_session", {"role": "WINDSURF"}),
    *((tool, {}) for tool in ("list_plans", "project_references_missing", "project_assets_summary", "session_status")),
    ("read_plan", {"plan_id": "PLAN-1"}),
    ("search_text", {"query": "x", "include_ignored": True}),
    ("find_files", {"pattern": "**"}),
    ("context_list_caches", {}),
    ("read_audit_log", {}),
    ("write_file", {"path": "new/file", "content": "x\n"}),
    ("write_report", {"title": "t", "content": "c"}),
    ("end_session", {}),
]
GROUPS = {
    "state": lambda path: path.startswith(".kaiza/"),
    "made": lambda path: path == ".kaiza/made/list",
    "log": lambda path: path.startswith("audit/"),
    "plans": lambda path: path.startswith("plans/"),
    "rules": lambda path: path.endswith((".gitignore", "exclude")),
    "repository": lambda path: path.startswith((".git/logs", ".git/objects", ".hg", ".git/index")),
    "sources": lambda path: path.endswith((".py", ".md", ".json")),
}


def fill(root):
    (root / "src").mkdir(exist_ok=True)
    (root / "src/a.py").write_text("x = 1\n")
    run_git(root, "init", "-q")
    run_git(root, "add", "src")
    run_git(root, "commit", "-q", "-m", "x")
    (root / "package.json").write_text('{"main": "x.js"}\n')
    (root / ".gitignore").write_text("*.log\n")
    app = App([str(root)])
    approved = plan(root, scope=WIDE)
    app.call("begin_session", {"role": "WINDSURF"})
    made = app.call("write_file", {"path": "one/two/file", "content": "x\n", "plan_hash": approved})
    assert made.envelope is None
    app.close()
    (root / ".hg/store").mkdir(parents=True)  # not before the approval, which an edit gives in no Mercurial repository
    (root / ".hg/store/data").write_text("x = 1\n")
    return approved


def answers_all(root, approved):
    """Whether each call is answered, by a process that is ended where it waits."""
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(60)
            app = App([str(root)])
            answers = [app.call(tool, {"plan_hash": approved, **arguments} if tool == "write_file" else arguments)
                       for tool, arguments in CALLS]  # fmt: skip
            app.close()
            os._exit(0 if all(answer.output or answer.envelope for answer in answers) else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("is_chosen", GROUPS.values(), ids=GROUPS.keys())
def test_no_call_waits_for_the_other_end_of_a_fifo(workspace, is_chosen):
    approved = fill(workspace)
    chosen = [path for path in workspace.rglob("*") if path.is_file() and is_chosen(str(path.relative_to(workspace)))]
    for path in chosen:
        path.unlink()
        os.mkfifo(path)

    assert chosen
    assert answers_all(workspace, approved)
