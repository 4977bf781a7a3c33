"""Sessions that a review is about: workspaces in which an agent changed files and other programs did, too."""

from types import SimpleNamespace

from agents import sha
from scenes import bind, make_ready, put_plan

from kaiza.app import App
from kaiza.clock import current_timestamp
from kaiza.domain.caps import Caps
from kaiza.domain.review.report import ReviewSelection
from kaiza.queries.review_report import review
from kaiza.store import human_decisions
from kaiza.store.workspace import Workspace

PLAN = """---
kaiza_plan: 1
plan_id: {plan_id}
title: {title}
status: APPROVED
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: Ada Byron
approved_at: null
scope:
  modify: ["src/**", "docs/*.md"]
  create: ["src/**"]
  delete: ["src/**"]
  move: [{{from: "src/**", to: "src/**"}}]
  deny: ["src/keys/**"]
{more}---
# Why
"""
TOKENS = b"import secrets\n\nTOKEN_BYTES = 24\nLIFETIME = 60 * 60 * 24 * 30\n\n\ndef issue():\n    pass\n"
AUTH = b"# Sessions\n\nA session token lives for 30 days.\n\n## Signing out\n\nThe token is deleted.\n"


class Scene:
    """A workspace, and the calls of one agent in it."""

    def __init__(self, root):
        self.root = bind(make_ready(root).resolve())
        self.app = App([str(self.root)])
        self.session_id = None
        self.plan_hash = None

    def begin(self, role="WINDSURF"):
        self.session_id = self.app.call("begin_session", {"role": role}).output["session_id"]
        # The manifest is written and hashed a moment after the answer.
        self.app.services.workspaces[str(self.root)].manifest.wait(self.session_id, 60)
        return self.session_id

    def approve(self, plan_id="PLAN-0007-rotate-tokens", title="Rotate session tokens every day", more=""):
        text = PLAN.format(plan_id=plan_id, title=title, more=more)
        put_plan(self.root / "plans" / f"{plan_id}.md", text)
        self.plan_hash = sha(text.encode())
        return self.plan_hash

    def write(self, path, content):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def call(self, tool, **arguments):
        """The outcome of a call; changes are made under the plan."""
        if tool in CHANGING and self.plan_hash:
            arguments.setdefault("plan_hash", self.plan_hash)
        return self.app.call(tool, {"session_id": self.session_id, **arguments})

    def change(self, tool, **arguments):
        """The output of a call that must succeed."""
        outcome = self.call(tool, **arguments)
        assert outcome.envelope is None, outcome.envelope
        return outcome.output

    def overwrite(self, path, content):
        """Let the agent write a file whatever is in it."""
        file = self.root / path
        known = {"expected_hash": sha(file.read_bytes())} if file.exists() else {}
        return self.change("write_file", path=path, content=content, **known)

    def close(self):
        self.app.close()

    def review(self, kind="session", chosen=None, **span):
        """The report on the session, or on what is named."""
        selection = ReviewSelection(kind, chosen if chosen or kind == "time" else self.session_id, **span)
        workspace = Workspace(str(self.root), Caps())
        try:
            human_decisions.catch_up(workspace)
            return review(workspace, selection)
        finally:
            workspace.close(current_timestamp())


CHANGING = {"write_file", "edit_file", "apply_patch", "move_file", "delete_file", "undo_changes"}


def play_story(root):
    """A whole story: a plan, changes, refusals, an undo, and changes by something else."""
    scene = Scene(root)
    scene.write("src/auth/tokens.py", TOKENS)
    scene.write("src/auth/store.py", "class Store:\n    pass\n")
    scene.write("docs/auth.md", AUTH)
    scene.write("pyproject.toml", "[project]\n")
    scene.begin()
    scene.approve(more="limits: {files: 8, lines: 120, operations: 12, refusals: 4}\n")
    outcomes = SimpleNamespace(
        tokens=scene.change(
            "edit_file",
            path="src/auth/tokens.py",
            edits=[{"old_text": "TOKEN_BYTES = 24", "new_text": "TOKEN_BYTES = 32"}],
            expected_hash=sha(TOKENS),
        ),
        rotation=scene.overwrite("src/auth/rotation.py", "GRACE = 600\n\n\ndef due(token):\n    return token\n"),
        outside=scene.call("write_file", path="pyproject.toml", content="x", expected_hash="0" * 64),
        locked=scene.call("edit_file", path="docs/auth.md", edits=[], expected_hash=sha(AUTH)),
        report=scene.change("write_report", title="Version bump outside the plan", content="I tried. Sorry."),
        stale=scene.call(
            "edit_file", path="docs/auth.md", edits=[{"old_text": "30", "new_text": "1"}], expected_hash="0" * 64
        ),
        docs=scene.change(
            "edit_file",
            path="docs/auth.md",
            edits=[{"old_text": "30 days", "new_text": "a day"}],
            expected_hash=sha(AUTH),
        ),
        store=scene.overwrite("src/auth/store.py", "class Store:\n    size = 1\n"),
    )
    outcomes.undo = scene.change("undo_changes", request_ids=[outcomes.store["request_id"]])
    outcomes.escape = scene.call("read_file", path="../shop-secrets/prod.env")
    scene.change("end_session")
    with (scene.root / "docs/auth.md").open("ab") as file:
        file.write(b"\n<!-- </script><script>alert(1)</script> -->\n")
    scene.outcomes = outcomes
    return scene
