"""A session with everything in it: changes of each kind, an undo, a lock, and a refusal of each kind."""

from agents import sha
from outside_changes import fill_project
from review_scenes import Scene
from trees import look

MANY = "".join(f"line {number}\n" for number in range(900))
LARGE = "".join(f"{number:07d} {'x' * 90}\n" for number in range(15_000))
BETWEEN = "written between two calls\n"
TAKEN_OVER = {
    "src/f0.py": "number = 0\n",
    "src/f1.py": "number = 1\n",
    "src/f2.py": "number = 2\n",
    "src/deep/y.txt": "y\n",
}
"""Files of the project that the agent writes, too, so that other programs change what Kaiza wrote."""
PLANS = {
    "PLAN-0007-rotate-tokens": {"files": 40, "lines": 4000, "operations": 24, "refusals": 100},
    "PLAN-0008-small": {"operations": 1},
}
_POLICY = "policy: {rust: refuse, stubs: refuse}\n"
_PATCH = """--- a/src/keep/c.py
+++ b/src/keep/c.py
@@ -1 +1 @@
-c = 1
+c = 2
--- /dev/null
+++ b/src/keep/d.py
@@ -0,0 +1 @@
+d = 1
"""


class WholeSession(Scene):
    """The session, and what its calls said: the codes of those that had to be refused."""

    def __init__(self, root, *, takes_over):
        super().__init__(root)
        self.takes_over = takes_over
        self.codes = []

    def play(self):
        """Everything that the agent does."""
        self._prepare()
        self.begin_look = look(self.root)
        self.begin()
        self._refuse_without_plan()
        first, second = PLANS
        self._approve(first)
        self._change_files()
        self._refuse_arguments()
        self._refuse_paths()
        self._refuse_contents()
        self._approve(second)
        self._reach_the_limit()

    def _approve(self, plan_id):
        limits = ", ".join(f"{name}: {allowed}" for name, allowed in PLANS[plan_id].items())
        self.approve(plan_id, more=f"limits: {{{limits}}}\n{_POLICY}")

    def _prepare(self):
        fill_project(self.root)
        for path, content in (
            ("a.py", "a = 1\nb = 2\n"),
            ("c.py", "c = 1\n"),
            ("e.py", "e = 1\ne2 = 2\n"),
            ("g.py", "g = 1\n"),
            ("h.py", "h = 1\n"),
            ("undone.py", "u = 1\n"),
            ("picture", b"\x89PNG\0\0\1"),
            ("many.txt", "short\n"),
            ("large.txt", LARGE),
        ):
            self.write(f"src/keep/{path}", content)
        for path in TAKEN_OVER if self.takes_over else ():
            (self.root / path).write_text(f"before: {path}\n")

    def _refuse(self, error_code, tool, **arguments):
        envelope = self.call(tool, **arguments).envelope
        assert envelope["error_code"] == error_code, envelope
        self.codes.append(error_code)

    def _report(self):
        self.change("write_report", title="What I tried", content="It was refused.")

    def _refuse_without_plan(self):
        self._refuse("PLAN_NOT_FOUND", "write_file", path="src/n.py", content="x", plan_hash="0" * 64)
        text = (self.root / "plans").joinpath("PLAN-0009-draft.md")
        text.write_text(DRAFT)
        self._refuse("PLAN_NOT_APPROVED", "write_file", path="src/n.py", content="x", plan_hash=sha(DRAFT.encode()))

    def _change_files(self):
        keep = "src/keep"
        for path, content in TAKEN_OVER.items() if self.takes_over else ():
            self.overwrite(path, content)
        self._edit(f"{keep}/a.py", "a = 1", "a = 3")
        self.overwrite(f"{keep}/b.py", "new = 1\n")
        self.change("apply_patch", patch=_PATCH)
        self._edit(f"{keep}/e.py", "e = 1", "e = 2")
        known = self._hash(f"{keep}/e.py")
        self.change("move_file", source=f"{keep}/e.py", destination=f"{keep}/moved.py", expected_hash=known)
        self._edit(f"{keep}/moved.py", "e2 = 2", "e2 = 3")
        self.change("delete_file", path=f"{keep}/g.py", expected_hash=self._hash(f"{keep}/g.py"))
        self._edit(f"{keep}/h.py", "h = 1", "h = 2")
        with (self.root / f"{keep}/h.py").open("a") as file:
            file.write(BETWEEN)
        self._edit(f"{keep}/h.py", "h = 2", "h = 3")
        undone = self.overwrite(f"{keep}/undone.py", "u = 2\n")
        self.change("undo_changes", request_ids=[undone["request_id"]])
        self.overwrite(f"{keep}/picture", "no \0 picture\n")
        self.overwrite(f"{keep}/many.txt", MANY)
        self._edit(f"{keep}/large.txt", "0000007 ", "0000007y")
        self.change("write_file", path=f"{keep}/dry.py", content="dry\n", dry_run=True)

    def _edit(self, path, old, new):
        self.change("edit_file", path=path, edits=[{"old_text": old, "new_text": new}], expected_hash=self._hash(path))

    def _hash(self, path):
        return sha((self.root / path).read_bytes())

    def _refuse_arguments(self):
        self._refuse("MISSING_REQUIRED_FIELD", "read_file")
        self._refuse("INVALID_INPUT_TYPE", "read_file", path=1)
        self._refuse("INVALID_INPUT_VALUE", "read_file", path="src/f3.py", max_lines=-1)
        self._refuse("CURSOR_INVALID", "list_directory", path="src", cursor="no cursor")
        self._refuse("HASH_MISMATCH", "write_file", path="src/f3.py", content="x", expected_hash="0" * 64)
        self._refuse("PATCH_INVALID", "apply_patch", patch="no patch")
        self._refuse("PATCH_APPLY_FAILED", "apply_patch", patch=_PATCH.replace("c = 1", "c = 9").split("--- /dev")[0])

    def _refuse_paths(self):
        self._refuse("FILE_NOT_FOUND", "read_file", path="src/nowhere.py")
        self._refuse("PATH_NOT_FOUND", "list_directory", path="nowhere")
        self._refuse("PATH_TRAVERSAL_BLOCKED", "read_file", path="../etc")
        self._refuse("OUTSIDE_WORKSPACE", "read_file", path="/etc/passwd")
        self._refuse("POLICY_VIOLATION", "read_file", path=".env")
        self._refuse("PLAN_SCOPE_VIOLATION", "write_file", path="pyproject.toml", content="x")
        self._refuse("SESSION_LOCKED", "write_file", path="src/n.py", content="x")
        self._report()
        self._refuse("POLICY_VIOLATION", "write_file", path="audit/audit-log.jsonl", content="x")
        self._report()
        self._refuse("PATH_TRAVERSAL_BLOCKED", "write_file", path="../out.py", content="x")
        self._report()
        self._refuse("PLAN_ENFORCEMENT_FAILED", "save_plan", plan_id="PLAN-0010-mine", content="no plan")
        if self.app.call("session_status", {"session_id": self.session_id}).output["state"] == "LOCKED":
            self._report()

    def _refuse_contents(self):
        token = "ghp_" + "a1B2" * 9
        self._refuse("POLICY_VIOLATION", "write_file", path="src/token.py", content=f'TOKEN = "{token}"\n')
        self._refuse("RUST_POLICY_VIOLATION", "write_file", path="src/lib.rs", content="fn f() {\n    todo!()\n}\n")

    def _reach_the_limit(self):
        self.overwrite("src/keep/small.py", "s = 1\n")
        self._refuse("PLAN_SCOPE_VIOLATION", "write_file", path="src/keep/small2.py", content="s = 1\n")


DRAFT = """---
kaiza_plan: 1
plan_id: PLAN-0009-draft
title: A draft
status: DRAFT
author: ANTIGRAVITY
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
scope:
  create: ["src/**"]
---
# Why
"""
