"""Only input typed after a question answers it; earlier input is discarded."""

import ast
from pathlib import Path

import pytest
import scenes

import kaiza
from kaiza.app import App

PLAN = """---
kaiza_plan: 1
plan_id: PLAN-1
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["src/*.py"], create: ["src/*.py"]}}
---
# Why
"""
NO = {"outcome": "error", "error_code": "PLAN_SCOPE_VIOLATION", "human_message": "No."}


def put_plan(workspace, status="DRAFT", text=""):
    scenes.put_plan(workspace / "plans" / "PLAN-1.md", PLAN.format(status=status) + text)


def asks_to_approve(workspace, **_):
    put_plan(workspace)
    return ["plan", "approve", "PLAN-1"]


def asks_to_thaw(kaiza, **_):
    kaiza("freeze", "stop")
    return ["thaw"]


def asks_to_unlock(write_log, body, **_):
    write_log(body("begin_session"), body("write_file", **NO))
    return ["session", "unlock"]


def asks_to_accept(log, **_):
    log.write_bytes(b"{}\n")
    return ["audit", "accept", "--reason", "looked at"]


def asks_to_undo(workspace, **_):
    put_plan(workspace, "APPROVED")
    app = App([str(workspace)])
    app.call("begin_session", {"role": "WINDSURF"})
    plan_hash = app.call("list_plans", {}).output["items"][0]["plan_hash"]
    app.call("write_file", {"path": "src/new.py", "content": "n\n", "plan_hash": plan_hash})
    app.close()
    return ["undo", "--plan", "PLAN-1"]


def asks_to_make_ready(workspace, **_):
    (workspace / "plans").rmdir()
    return ["init", "--client", "cursor"]


QUESTIONS = [
    asks_to_approve,
    asks_to_thaw,
    asks_to_unlock,
    asks_to_accept,
    asks_to_undo,
    asks_to_make_ready,
]


def files(root):
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file() and ".kaiza" not in path.parts}


@pytest.fixture
def question(request, workspace, write_log, body, log, kaiza):
    """A command that asks."""
    return request.param(workspace=workspace, write_log=write_log, body=body, log=log, kaiza=kaiza)


@pytest.mark.parametrize("question", QUESTIONS, indirect=True)
@pytest.mark.parametrize("end", ["\n", ""])
def test_input_typed_before_the_question_never_answers_it(question, workspace, screen, end):
    before = files(workspace)
    prompt = screen(*question, ahead=f"y{end}")
    prompt.answer("")

    assert prompt.end() == 1
    assert files(workspace) == before


@pytest.mark.parametrize("question", QUESTIONS, indirect=True)
def test_input_typed_after_the_question_answers_it(question, screen):
    prompt = screen(*question, ahead="no\nno")
    prompt.answer("y")

    assert prompt.end() == 0


def test_input_typed_while_the_facts_are_printed_does_not_answer(workspace, screen, log):
    put_plan(workspace, text=f"a line {'x' * 600}\n" * 395)
    prompt = screen("plan", "approve", "PLAN-1")
    prompt.until("a line")  # the rest exceeds the terminal's buffer, so the command is still writing
    prompt.type("y\n")
    prompt.answer("")

    assert prompt.end() == 1
    assert not log.exists()


def test_only_one_module_reads_the_terminal():
    def reads(node):
        if isinstance(node, ast.Call):
            return isinstance(node.func, ast.Name) and node.func.id == "input"
        named = node.attr if isinstance(node, ast.Attribute) else getattr(node, "value", None)
        return named in ("getpass", "stdin", "/dev/tty")

    package = Path(kaiza.__file__).parent
    trees = [(path, ast.parse(path.read_text())) for path in package.rglob("*.py")]
    readers = sorted(
        f"{path.relative_to(package)}: {ast.unparse(node)}"
        for path, tree in trees
        for node in ast.walk(tree)
        if reads(node)
    )

    # Two read a document that was asked for with `-`; init only asks whether it is a terminal; the pager's is written.
    assert readers == [
        "cli/call.py: sys.stdin",
        "cli/console/confirm.py: '/dev/tty'",
        "cli/console/pager.py: pager.stdin",
        "cli/reference/envelope.py: sys.stdin",
        "cli/setup/init.py: sys.stdin",
    ]
