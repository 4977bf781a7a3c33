"""Output and help fit the terminal: no line is wider, and what a person copies or types is whole."""

import argparse
import fcntl
import json
import os
import re
import struct
import termios
from importlib import import_module
from pathlib import Path

import pytest
from children import fork_command
from scenes import put_plan

from kaiza.cli import dispatch
from kaiza.domain.audit import record
from kaiza.render.terminal import display_width

COLUMNS = 80
LONG_PLAN = "PLAN-0007-" + "rotate-session-tokens-" * 2 + "everywhere"
LONG_PATH = "packages/server/src/handlers/authentication/session_token_rotation.py"
SESSIONS = [f"{number:08x}-0000-4000-8000-00000000000{number}" for number in range(1, 9)]
PLAN = """---
kaiza_plan: 1
plan_id: {plan_id}
title: Rotate the session tokens of every service that still keeps them for longer than a day
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: ["packages/server/src/handlers/**/*.py", "docs/**"], create: ["{path}"]}}
limits: {{files: 10, lines: 400, operations: 50, refusals: 8}}
---
# Why

{prose}
"""


def parsers(name):
    """A command's parser and those of its subcommands, by what is typed."""
    parser = argparse.ArgumentParser()
    import_module(dispatch.COMMANDS[name][0]).add(parser)
    nested = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return [name, *(f"{name} {word}" for action in nested for word in action.choices)]


HELPS = ["", *(words for name in dispatch.COMMANDS for words in parsers(name))]


@pytest.fixture
def terminal(monkeypatch, workspace):
    """Runs a command with a terminal of its own as standard output and standard error; the status and the lines."""

    def run(*words, columns=COLUMNS):
        master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        environment = {name: text for name, text in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        child = fork_command(words, ".", slave, environment | {"TERM": "xterm", "NO_COLOR": "1"})
        os.close(slave)
        shown = b""
        try:
            while more := os.read(master, 65536):
                shown += more
        except OSError:  # every end of the other side is closed
            pass
        os.close(master)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return status, shown.decode().replace("\r\n", "\n").splitlines()

    return run


@pytest.fixture
def crowded(workspace, write_log, body):
    """A workspace with long plan ids, long paths, many sessions, refusals, a lock and a change left open."""
    for number, status in enumerate(["DRAFT", "APPROVED", "REJECTED"]):
        plan_id = LONG_PLAN if number == 0 else f"PLAN-{number}"
        text = PLAN.format(plan_id=plan_id, status=status, path=LONG_PATH, prose="word " * 60)
        put_plan(workspace / "plans" / f"{plan_id}.md", text)
    (workspace / "plans" / "PLAN-BAD.md").write_text("---\nnothing: 1\n---\n")
    Path(workspace, LONG_PATH).parent.mkdir(parents=True)
    Path(workspace, LONG_PATH).write_text("x\n")
    fresh = {"timestamp": "2999-01-01T00:00:00.000Z", "client": "a-client-with-a-long-name 2.1.197"}
    change = {
        "path": LONG_PATH, "source": None, "operation": "modify", "before_hash": "0" * 64, "after_hash": "1" * 64,
        "size": 10, "lines_added": 30, "lines_removed": 11, "mode": 0o644,
    }  # fmt: skip
    refused = {"outcome": "error", "error_code": "SESSION_NOT_INITIALIZED", "human_message": "No. " * 40}
    bodies = [body("begin_session", session=session, **fresh) for session in SESSIONS]
    bodies.append(
        body("write_file", session=SESSIONS[0], changes=[change], plan_id=LONG_PLAN, request_id="r-1", **fresh)
    )
    bodies.append(body("write_file", session=SESSIONS[0], arguments={"path": LONG_PATH}, **refused, **fresh))
    locked = {**refused, "error_code": "PLAN_SCOPE_VIOLATION"}
    bodies.append(body("apply_patch", session=SESSIONS[1], role="ANTIGRAVITY", **locked, **fresh))
    bodies.append(
        record.new_body("intent", timestamp=fresh["timestamp"], request_id="open", changes=[change], detail={})
    )
    return write_log(*bodies)


COMMANDS = {
    "plan list": [LONG_PLAN, "PLAN-BAD"],
    "plan show PLAN-1": [LONG_PATH],
    f"plan show {LONG_PLAN}": [LONG_PATH],
    "plan show PLAN-BAD": [],
    "plan lint": [],
    "plan lint PLAN-BAD": [],
    "plan new PLAN-0009-" + "n" * 40: ["  kaiza plan approve PLAN-0009-" + "n" * 40],
    "plan reject PLAN-1": [],
    "plan approve PLAN-2": [],
    "audit verify": ["  kaiza audit verify --head \\"],
    "audit head": [],
    "audit show": [LONG_PATH, "SESSION_NOT_INITIALIZED"],
    "audit show 10": [LONG_PATH, "SESSION_NOT_INITIALIZED"],
    "audit tail -n 3": [LONG_PATH, "SESSION_NOT_INITIALIZED"],
    "audit show --path nowhere": [],
    "audit accept --reason x": [],
    "session list": SESSIONS,
    f"session show {SESSIONS[0]}": [
        LONG_PATH,
        f"  kaiza audit show --session {SESSIONS[0]}",
        "SESSION_NOT_INITIALIZED",
    ],
    "session show ff": ["`kaiza session list`"],
    "session unlock": [],
    "undo --request r-1 --dry-run": [LONG_PATH],
    "undo --request nothing-of-that-name --yes": ["`kaiza undo`"],
    "undo": ["kaiza undo --request r-1"],
    "gc --dry-run": [],
    "attest --session 0000": [SESSIONS[0]],
    "status": [*SESSIONS, LONG_PLAN, "kaiza session unlock"],
    "doctor": [],
    "init": [],
    "init --client claude-code": [],
    "errors": ["SESSION_NOT_INITIALIZED"],
    "errors map HASH_MISMATCH": [],
    "errors map NO_SUCH_CODE": ["`kaiza errors`"],
    "tools": ["verify_audit_log"],
    "caps": [],
    "call list_directory path=packages": [],
    f"call read_file path={LONG_PATH}": [LONG_PATH],
    f"call file_info path={LONG_PATH}/none": [],
    "call read_fil": ["`kaiza tools`"],
    "schema lint": [],
    "schema fingerprint": ["verify_audit_log"],
    "schema fingerprint read_file": [],
    "freeze " + "reason" * 20: ["`kaiza thaw`"],
    "thaw": [],
    "no-such-command": [],
    "plan show not-a-plan": ["PLAN-0007-rotate-tokens"],
    "audit verify --head x": ["`kaiza audit head`"],
}


@pytest.mark.parametrize("words", COMMANDS)
def test_no_line_is_wider_than_the_terminal_and_no_id_path_or_command_is_cut(crowded, terminal, words):
    _, lines = terminal(*words.split())
    shown = "\n".join(lines)

    assert lines
    assert [line for line in lines if display_width(line) > COLUMNS] == []
    assert [text for text in COMMANDS[words] if text not in shown] == []
    assert "…" not in shown.replace("… and ", "")


@pytest.mark.parametrize(
    "words",
    [["plan", "approve", LONG_PLAN], ["session", "unlock"], ["init", "--client", "gemini"]],
    ids=["approve", "unlock", "init"],
)
def test_a_question_fits_the_terminal(crowded, screen, words):
    command = screen(*words, columns=COLUMNS, NO_COLOR="1")
    lines = command.answer("y").split("\n")

    assert command.end() == 0
    assert [line for line in lines if display_width(line) > COLUMNS] == []


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("words", HELPS)
def test_help_is_wrapped_to_the_terminal(terminal, words, columns):
    status, lines = terminal(*words.split(), "--help", columns=columns)

    assert status == 0
    assert [line for line in lines if display_width(line) > columns] == []
    assert [line for line in lines if line.count("`") % 2] == []
    if columns == 120 and words:
        text = "\n".join(lines)
        assert re.search(r"(?m)^example:\n  kaiza ", text)


@pytest.mark.parametrize("columns", [60, 80])
def test_a_path_longer_than_the_terminal_is_marked_where_it_is_folded(write_log, body, terminal, columns):
    write_log(body(arguments={"path": "d/" * 60 + "end.py"}))
    _, lines = terminal("audit", "show", columns=columns)

    assert [line for line in lines if display_width(line) > columns] == []
    assert "".join(line.removeprefix("│ ") for line in lines[3:]).replace(" ", "").endswith("d/" * 60 + "end.py")
    assert all(line.startswith("│ ") for line in lines[5:])


def test_the_checkpoint_of_verify_is_a_command_that_a_shell_understands(crowded, terminal, kaiza):
    _, lines = terminal("audit", "verify")
    command = " ".join(line.strip(" \\") for line in lines[-2:])

    assert kaiza(*command.split()[1:]).status == 0


def test_json_is_not_wrapped(crowded, terminal, kaiza):
    _, lines = terminal("plan", "show", LONG_PLAN, "--json")

    assert json.loads("\n".join(lines)) == json.loads(kaiza("plan", "show", LONG_PLAN, "--json").out)
