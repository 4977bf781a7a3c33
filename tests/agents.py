"""Agents with a server process and a session of their own, plans for them, and commands of a person."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from children import can_fork_commands, fork_command
from cli.conftest import Screen
from doors import Door, call, request
from scenes import see_plans

from kaiza.app import App

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "agent", "version": "1"}}
HEAD = """---
kaiza_plan: 1
plan_id: {plan_id}
title: A plan
status: {status}
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
{more}scope: {scope}
---
# Why
"""
WIDE = '{modify: ["**"], create: ["**"], delete: ["**"], move: [{from: "**", to: "**"}]}'


def sha(content):
    return hashlib.sha256(content).hexdigest()


def plan(root, plan_id="PLAN-1", status="APPROVED", scope='{modify: ["src/**"], create: ["src/**"]}', more=""):
    """Write a draft and set its status as a person would, each seen by a server; return the plan's hash."""
    path = Path(root, "plans", f"{plan_id}.md")
    for each in ("DRAFT", status):
        path.write_text(HEAD.format(plan_id=plan_id, status=each, scope=scope, more=more))
        see_plans(root)
    return sha(path.read_bytes())


def hash_of(root, plan_id="PLAN-1"):
    return sha(Path(root, "plans", f"{plan_id}.md").read_bytes())


def edit(root, old, new, plan_id="PLAN-1"):
    """Replace text in a plan as a person would in an editor, and return its new hash."""
    path = Path(root, "plans", f"{plan_id}.md")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return hash_of(root, plan_id)


class Agent:
    """A client with its own server process and one open session."""

    def __init__(self, root, role="WINDSURF", options=()):
        command = [sys.executable, "-m", "kaiza", "serve", "--workspace", str(root), *options]
        self.door = Door(command, stderr=subprocess.DEVNULL)
        self._number = itertools.count(1)
        self.door.ask(request(0, "initialize", **HELLO))
        self.door.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        answer = self.door.ask(call(next(self._number), "begin_session", role=role))
        self.begun_result = answer.get("result")
        self.begun = self._read(answer)

    def call(self, tool, /, **arguments):
        """Output of the call, or its error envelope."""
        return self._read(self.door.ask(call(next(self._number), tool, **arguments)))

    def _read(self, answer):
        if "error" in answer:
            return answer["error"]["data"]
        result = answer["result"]
        return json.loads(result["content"][0]["text"]) if result.get("isError") else result["structuredContent"]

    def code(self, tool, /, **arguments):
        """Error code of the call, or "ok"."""
        return self.call(tool, **arguments).get("error_code", "ok")

    def write(self, path, plan_hash, content="x\n", **more):
        return self.code("write_file", path=path, content=content, plan_hash=plan_hash, **more)

    def ask(self, method):
        return self.door.ask(request(next(self._number), method))["result"]

    def close(self):
        self.door.process.stdin.close()
        self.door.process.wait(20)
        self.door.process.stdout.close()


class LocalAgent(Agent):
    """An agent whose server is an application in this process."""

    def __init__(self, root):
        self._app = App([os.path.realpath(root)])
        self.begun = self.call("begin_session", role="WINDSURF")

    def call(self, tool, /, **arguments):
        outcome = self._app.call(tool, arguments)
        return outcome.output or outcome.envelope

    def close(self):
        self._app.close()


@contextmanager
def several(root, kind=Agent):
    """Yield a function that starts an agent; close all of them at the end."""
    agents = []

    def begin():
        agents.append(kind(root))
        return agents[-1]

    try:
        yield begin
    finally:
        for agent in agents:
            agent.close()


def person(root, *words):
    """Run a command of a person that asks for no confirmation; return its exit status."""
    if not can_fork_commands():
        command = [sys.executable, "-m", "kaiza", *words]
        return subprocess.run(command, cwd=root, capture_output=True, check=False, timeout=60).returncode
    with open(os.devnull, "w") as null:
        child = fork_command(words, root, null.fileno())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def confirm(root, *words):
    """Run a command of a person at a terminal, say yes to its question, and return its exit status."""
    previous = Path.cwd()
    os.chdir(root)
    try:
        screen = Screen(words, 120, dict(os.environ), None, None)
    finally:
        os.chdir(previous)
    screen.answer("y")
    return screen.end()


def checking(app, root):
    """Begin a session; return a function that runs a Python script as the only check of an approved plan."""
    app.call("begin_session", {"role": "WINDSURF"})
    phases = f"phases: [{{phase_id: P1, verify: {json.dumps([[sys.executable, 'check.py']])}}}]\n"
    approved = plan(root, more=phases)

    def run(script):
        Path(root, "check.py").write_text(script)
        return app.call("run_checks", {"plan_hash": approved, "phase_id": "P1"})

    return run
