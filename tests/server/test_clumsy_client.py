"""An agent that knows nothing but the list of tools, and is clumsy, gets through by what each refusal tells it."""

import itertools
import json
import re
import subprocess
import sys

import pytest
from doors import Door, call, request
from scenes import records

from kaiza.store.audit.verification.verify import verify_log

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "clumsy", "version": "1"}}
MOST_MORE = 12
PATIENCE = 6
"""So often one call is tried before the agent gives up."""
SOUND = """---
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
GUESSED = """---
plan_id: {plan_id}
title: Rename and note
scope:
  modify: {modify}
---
# Why
"""


class Agent:
    """A client behind a server of its own, which remembers the calls it made and what they came to."""

    def __init__(self, root):
        self.root = root
        self.made = []
        self.sessions = {}
        self.plan_hash = None
        self._number = itertools.count(1)
        self._plan = itertools.count(1)
        words = ["serve", "--workspace", str(root)]
        self.door = Door([sys.executable, "-m", "kaiza", *words], stderr=subprocess.DEVNULL)
        self.door.ask(request(0, "initialize", **HELLO))

    def call(self, tool, /, **arguments):
        """The output, or the envelope."""
        result = self.door.ask(call(next(self._number), tool, **arguments))["result"]
        told = json.loads(result["content"][0]["text"]) if result.get("isError") else result["structuredContent"]
        self.made.append((tool, told.get("error_code", "ok")))
        if tool == "begin_session" and "session_id" in told:
            self.sessions[told["role"]] = told["session_id"]
        return told

    def mine(self, role="WINDSURF"):
        return {"session_id": self.sessions[role]} if role in self.sessions else {}

    def ask_the_person(self, plan_id):
        path = self.root / "plans" / f"{plan_id}.md"
        path.write_text(path.read_text().replace("status: DRAFT", "status: APPROVED"))

    def close(self):
        self.door.process.stdin.close()
        self.door.process.wait(20)
        self.door.process.stdout.close()


class Clumsy(Agent):
    """`error_code` chooses what it does, `cause` has the values, and it does nothing that the message does not say."""

    def insist(self, tool, /, **arguments):
        """The call, mended after each refusal, until it is done."""
        for _ in range(PATIENCE):
            told = self.call(tool, **arguments)
            if "error_code" not in told:
                return told
            arguments = RULES[told["error_code"]](self, arguments, told)
        raise AssertionError(self.made)

    def approved(self, text, **scope):
        """The hash of a plan that a person approved."""
        plan_id = f"PLAN-{next(self._plan)}"
        if "ANTIGRAVITY" not in self.sessions:
            self.insist("begin_session", role="ANTIGRAVITY")
        draft = text.format(plan_id=plan_id, **scope)
        said = self.insist("save_plan", plan_id=plan_id, content=draft, **self.mine("ANTIGRAVITY"))["summary"]
        assert "Ask a person" in said
        assert "list_plans" in said
        self.ask_the_person(plan_id)
        listed = self.insist("list_plans", **self.mine())["items"]
        self.plan_hash = next(one["plan_hash"] for one in listed if one["plan_id"] == plan_id)
        return self.plan_hash


def said(told, *words):
    """What the message must say for the agent to think of it."""
    assert all(word in told["human_message"] for word in words), told["human_message"]


def guess(agent, arguments, told):
    said(told, "required")
    return {**arguments, **{fault["argument"]: "0" * 64 for fault in told["cause"]["faults"]}}


def choose(agent, arguments, told):
    said(told, "must be one of")
    return {**arguments, **{fault["argument"]: fault["enum"][-1] for fault in told["cause"]["faults"]}}


def begin(agent, arguments, told):
    said(told, "begin_session", "session_id")
    agent.insist("begin_session", role="EXECUTOR")
    return {**arguments, **agent.mine()}


def draft(agent, arguments, told):
    said(told, "save_plan", "ANTIGRAVITY")
    return {**arguments, "plan_hash": agent.approved(GUESSED, modify=arguments["path"].split("/project/")[-1])}


def draft_another(agent, arguments, told):
    said(told, "save_plan", "ANTIGRAVITY", "write_report")
    agent.insist("write_report", title="Out of scope", content="I left the plan.", **agent.mine())
    wanted = {"modify": "", "create": "", told["cause"]["operation"]: told["cause"]["path"]}
    return {**arguments, "plan_hash": agent.approved(SOUND, **wanted)}


def mend(agent, arguments, told):
    said(told, "lint_plan")
    lines = arguments["content"].splitlines()
    findings = agent.insist("lint_plan", content=arguments["content"], **agent.mine())["findings"]
    for finding in findings:
        if "in brackets" in finding["fix"]:
            lines[finding["line"]] = re.sub(r": (.*)", r": [\1]", lines[finding["line"]])
    lines[1:1] = [found[1] for finding in findings if (found := re.search(r"a line such as (.*)", finding["fix"]))]
    return {**arguments, "content": "\n".join(lines) + "\n"}


def read_again(agent, arguments, told):
    said(told, "Read it again")
    read = agent.insist("read_file", path=arguments["path"], **agent.mine())
    return {**arguments, "expected_hash": read["hash"]}


RULES = {
    "MISSING_REQUIRED_FIELD": guess,
    "INVALID_INPUT_VALUE": choose,
    "SESSION_NOT_INITIALIZED": begin,
    "PLAN_NOT_FOUND": draft,
    "PLAN_ENFORCEMENT_FAILED": mend,
    "HASH_MISMATCH": read_again,
    "PLAN_SCOPE_VIOLATION": draft_another,
}


@pytest.fixture
def hired(workspace):
    """A client of a kind, on a workspace with one file."""
    begun = []

    def hire(kind):
        (workspace / "src").mkdir(exist_ok=True)
        (workspace / "src/app.py").write_text("name = 'old'\n")
        begun.append(kind(workspace))
        return begun[-1]

    yield hire
    for one in begun:
        one.close()


EDITS = [{"old_text": "old", "new_text": "new"}]


def shortest(agent):
    """The way of one who knows it."""
    agent.call("begin_session", role="ANTIGRAVITY")
    text = SOUND.format(plan_id="PLAN-9", modify="src/app.py", create="docs/note.md")
    agent.call("save_plan", plan_id="PLAN-9", content=text, **agent.mine("ANTIGRAVITY"))
    agent.ask_the_person("PLAN-9")
    plan_hash = agent.call("begin_session", role="WINDSURF")["plans"][0]["plan_hash"]
    read = agent.call("read_file", path="src/app.py", **agent.mine())
    common = {"plan_hash": plan_hash, **agent.mine()}
    agent.call("edit_file", path="src/app.py", expected_hash=read["hash"], edits=EDITS, **common)
    agent.call("write_file", path="docs/note.md", content="new\n", **common)
    agent.call("end_session", **agent.mine())


def test_the_shortest_successful_session_has_seven_calls(hired, workspace):
    agent = hired(Agent)
    shortest(agent)

    assert [code for _, code in agent.made] == ["ok"] * 7
    assert (workspace / "docs/note.md").read_text() == "new\n"


@pytest.mark.rows("S1-85", "S1-89")
def test_a_naive_client_succeeds_by_following_error_messages(hired, workspace):
    agent = hired(Clumsy)
    agent.insist("edit_file", path=f"{workspace.resolve()}/src/app.py", edits=EDITS)
    agent.insist("write_file", path="docs/note.md", content="new\n", plan_hash=agent.plan_hash, **agent.mine())
    agent.insist("end_session", **agent.mine())
    codes = {code for _, code in agent.made}

    assert (workspace / "src/app.py").read_text() == "name = 'new'\n"
    assert (workspace / "docs/note.md").read_text() == "new\n"
    assert codes == {*RULES, "ok"}
    assert len(agent.made) - 7 <= MOST_MORE
    assert verify_log(str(workspace)).verdict == "intact"
    assert len([one for one in records(workspace) if one["kind"] == "call"]) == len(agent.made)
