"""A client that knows only the list of tools, and makes mistakes, succeeds by following the error messages."""

import itertools
import json
import re
import subprocess
import sys

import pytest
from doors import Door, call, request
from scenes import records

from kaiza.domain.roles import parse_role
from kaiza.store.audit.verification.verify import verify_log

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clumsy", "version": "1"}}
MAX_EXTRA_CALLS = 12
MAX_ATTEMPTS = 6
"""Attempts at one call before the client gives up."""
VALID_PLAN = """---
kaiza_plan: 1
plan_id: {plan_id}
title: Rename and note
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
scope: {{modify: [{modify}], create: [{create}]}}
---
# Why
"""
GUESSED_PLAN = """---
plan_id: {plan_id}
title: Rename and note
scope:
  modify: {modify}
---
# Why
"""


class Agent:
    """A client with a server of its own; keeps a list of its calls and their codes."""

    def __init__(self, root):
        self.root = root
        self.calls = []
        self.sessions = {}
        self.plan_hash = None
        self._number = itertools.count(1)
        self._plan_number = itertools.count(1)
        command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root)]
        self.door = Door(command, stderr=subprocess.DEVNULL)
        self.door.ask(request(0, "initialize", **HELLO))

    def call(self, tool, /, **arguments):
        """The output, or the envelope."""
        result = self.door.ask(call(next(self._number), tool, **arguments))["result"]
        output = json.loads(result["content"][0]["text"]) if result.get("isError") else result["structuredContent"]
        self.calls.append((tool, output.get("error_code", "ok")))
        if tool == "begin_session" and "session_id" in output:
            self.sessions[parse_role(output["role"])] = output["session_id"]
        return output

    def session_argument(self, role="WINDSURF"):
        return {"session_id": self.sessions[role]} if role in self.sessions else {}

    def approve_as_person(self, plan_id):
        path = self.root / "plans" / f"{plan_id}.md"
        path.write_text(path.read_text().replace("status: DRAFT", "status: APPROVED"))

    def close(self):
        self.door.process.stdin.close()
        self.door.process.wait(20)
        self.door.process.stdout.close()


class NaiveAgent(Agent):
    """Corrects its calls: `error_code` selects the rule, `cause` has the values, the message names the remedy."""

    def call_until_ok(self, tool, /, **arguments):
        """Repeat the call, corrected after each failure, until it succeeds."""
        for _ in range(MAX_ATTEMPTS):
            output = self.call(tool, **arguments)
            if "error_code" not in output:
                return output
            arguments = RULES[output["error_code"]](self, arguments, output)
        raise AssertionError(self.calls)

    def get_approved_plan(self, text, **scope):
        """Save a plan and have it approved; its hash."""
        plan_id = f"PLAN-{next(self._plan_number)}"
        if "ANTIGRAVITY" not in self.sessions:
            self.call_until_ok("begin_session", role="ANTIGRAVITY")
        draft = text.format(plan_id=plan_id, **scope)
        summary = self.call_until_ok(
            "save_plan", plan_id=plan_id, content=draft, **self.session_argument("ANTIGRAVITY")
        )["summary"]
        assert "Ask a person" in summary
        assert "list_plans" in summary
        self.approve_as_person(plan_id)
        listed = self.call_until_ok("list_plans", **self.session_argument())["items"]
        self.plan_hash = next(plan["plan_hash"] for plan in listed if plan["plan_id"] == plan_id)
        return self.plan_hash


def require_words(envelope, *words):
    """The message must name the remedy, or the client could not know it."""
    assert all(word in envelope["human_message"] for word in words), envelope["human_message"]


def add_missing_arguments(agent, arguments, envelope):
    require_words(envelope, "required")
    return {**arguments, **{fault["argument"]: "0" * 64 for fault in envelope["cause"]["faults"]}}


def choose_allowed_value(agent, arguments, envelope):
    require_words(envelope, "must be one of")
    return {**arguments, **{fault["argument"]: fault["enum"][-1] for fault in envelope["cause"]["faults"]}}


def begin_session(agent, arguments, envelope):
    require_words(envelope, "begin_session", "session_id")
    agent.call_until_ok("begin_session", role="EXECUTOR")
    return {**arguments, **agent.session_argument()}


def save_plan(agent, arguments, envelope):
    require_words(envelope, "save_plan")
    return {
        **arguments,
        "plan_hash": agent.get_approved_plan(GUESSED_PLAN, modify=arguments["path"].split("/project/")[-1]),
    }


def save_wider_plan(agent, arguments, envelope):
    require_words(envelope, "save_plan", "write_report")
    agent.call_until_ok("write_report", title="Out of scope", content="I left the plan.", **agent.session_argument())
    scope = {"modify": "", "create": "", envelope["cause"]["operation"]: envelope["cause"]["path"]}
    return {**arguments, "plan_hash": agent.get_approved_plan(VALID_PLAN, **scope)}


def correct_plan(agent, arguments, envelope):
    require_words(envelope, "lint_plan")
    lines = arguments["content"].splitlines()
    findings = agent.call_until_ok("lint_plan", content=arguments["content"], **agent.session_argument())["findings"]
    for finding in findings:
        if "in brackets" in finding["fix"]:
            lines[finding["line"]] = re.sub(r": (.*)", r": [\1]", lines[finding["line"]])
    lines[1:1] = [match[1] for finding in findings if (match := re.search(r"a line such as (.*)", finding["fix"]))]
    return {**arguments, "content": "\n".join(lines) + "\n"}


def read_again(agent, arguments, envelope):
    require_words(envelope, "Read it again")
    read = agent.call_until_ok("read_file", path=arguments["path"], **agent.session_argument())
    return {**arguments, "expected_hash": read["hash"]}


RULES = {
    "MISSING_REQUIRED_FIELD": add_missing_arguments,
    "INVALID_INPUT_VALUE": choose_allowed_value,
    "SESSION_NOT_INITIALIZED": begin_session,
    "PLAN_NOT_FOUND": save_plan,
    "PLAN_ENFORCEMENT_FAILED": correct_plan,
    "HASH_MISMATCH": read_again,
    "PLAN_SCOPE_VIOLATION": save_wider_plan,
}


@pytest.fixture
def start_agent(workspace):
    """Start a client of a class, on a workspace with one file."""
    agents = []

    def start(agent_class):
        (workspace / "src").mkdir(exist_ok=True)
        (workspace / "src/app.py").write_text("name = 'old'\n")
        agents.append(agent_class(workspace))
        return agents[-1]

    yield start
    for agent in agents:
        agent.close()


EDITS = [{"old_text": "old", "new_text": "new"}]


def run_shortest_session(agent):
    """The calls of a client that makes no mistakes."""
    agent.call("begin_session", role="ANTIGRAVITY")
    text = VALID_PLAN.format(plan_id="PLAN-9", modify="src/app.py", create="docs/note.md")
    agent.call("save_plan", plan_id="PLAN-9", content=text, **agent.session_argument("ANTIGRAVITY"))
    agent.approve_as_person("PLAN-9")
    plan_hash = agent.call("begin_session", role="WINDSURF")["plans"][0]["plan_hash"]
    read = agent.call("read_file", path="src/app.py", **agent.session_argument())
    common = {"plan_hash": plan_hash, **agent.session_argument()}
    agent.call("edit_file", path="src/app.py", expected_hash=read["hash"], edits=EDITS, **common)
    agent.call("write_file", path="docs/note.md", content="new\n", **common)
    agent.call("end_session", **agent.session_argument())


def test_the_shortest_successful_session_has_seven_calls(start_agent, workspace):
    agent = start_agent(Agent)
    run_shortest_session(agent)

    assert [code for _, code in agent.calls] == ["ok"] * 7
    assert (workspace / "docs/note.md").read_text() == "new\n"


@pytest.mark.rows("S1-85", "S1-89")
def test_a_naive_client_succeeds_by_following_error_messages(start_agent, workspace):
    agent = start_agent(NaiveAgent)
    agent.call_until_ok("edit_file", path=f"{workspace.resolve()}/src/app.py", edits=EDITS)
    agent.call_until_ok(
        "write_file", path="docs/note.md", content="new\n", plan_hash=agent.plan_hash, **agent.session_argument()
    )
    agent.call_until_ok("end_session", **agent.session_argument())
    codes = {code for _, code in agent.calls}

    assert (workspace / "src/app.py").read_text() == "name = 'new'\n"
    assert (workspace / "docs/note.md").read_text() == "new\n"
    assert codes == {*RULES, "ok"}
    assert len(agent.calls) - 7 <= MAX_EXTRA_CALLS
    assert verify_log(str(workspace)).verdict == "intact"
    assert len([record for record in records(workspace) if record["kind"] == "call"]) == len(agent.calls)
