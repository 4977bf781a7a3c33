"""Agents as a workspace meets them: each behind a server process of its own, with a session; and plans for them."""

import hashlib
import itertools
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

from cli.conftest import Screen
from doors import Door, call, request

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
    """Write a plan as a person would, and give its hash."""
    path = Path(root, "plans", f"{plan_id}.md")
    path.write_text(HEAD.format(plan_id=plan_id, status=status, scope=scope, more=more))
    return sha(path.read_bytes())


def hash_of(root, plan_id="PLAN-1"):
    return sha(Path(root, "plans", f"{plan_id}.md").read_bytes())


def edit(root, old, new, plan_id="PLAN-1"):
    """Change a plan's words as a person would in an editor, and give its new hash."""
    path = Path(root, "plans", f"{plan_id}.md")
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    return hash_of(root, plan_id)


class Agent:
    """A client with a server of its own and one open session."""

    def __init__(self, root, role="WINDSURF"):
        words = ["serve", "--workspace", str(root)]
        self.door = Door([sys.executable, "-m", "kaiza", *words], stderr=subprocess.DEVNULL)
        self._number = itertools.count(1)
        self.door.ask(request(0, "initialize", **HELLO))
        self.door.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.begun = self.call("begin_session", role=role)

    def call(self, tool, /, **arguments):
        """The answer's output, or the envelope of its failure."""
        told = self.door.ask(call(next(self._number), tool, **arguments))
        if "error" in told:
            return told["error"]["data"]
        result = told["result"]
        return json.loads(result["content"][0]["text"]) if result.get("isError") else result["structuredContent"]

    def code(self, tool, /, **arguments):
        return self.call(tool, **arguments).get("error_code", "ok")

    def write(self, path, plan_hash, content="x\n", **more):
        return self.code("write_file", path=path, content=content, plan_hash=plan_hash, **more)

    def ask(self, method):
        return self.door.ask(request(next(self._number), method))["result"]

    def close(self):
        self.door.process.stdin.close()
        self.door.process.wait(20)
        self.door.process.stdout.close()


@contextmanager
def several(root):
    """Begins agents as they are asked for, and ends them all."""
    begun = []

    def begin():
        begun.append(Agent(root))
        return begun[-1]

    try:
        yield begin
    finally:
        for one in begun:
            one.close()


def person(root, *words):
    """A person's command that asks nobody."""
    return subprocess.run(
        [sys.executable, "-m", "kaiza", *words], cwd=root, capture_output=True, check=False, timeout=60
    ).returncode


def word(root, typed, *words):
    """A person's command at a terminal, and what they type there."""
    here = Path.cwd()
    os.chdir(root)
    try:
        asked = Screen(words, 120, dict(os.environ), None, None)
    finally:
        os.chdir(here)
    asked.until(f"Type {typed}")
    asked.type(f"{typed}\n")
    return asked.end()
