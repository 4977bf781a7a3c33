"""Random sequences of changes by agents and people, and what a person's undo of one session or plan has to leave.

A sequence is a list of steps that are plain values, so that a failing one can be shrunk by dropping steps.
"""

import contextlib
import io
import json
import os
import stat
from pathlib import Path

from agents import WIDE, plan, sha
from scenes import make_ready

from kaiza.app import App
from kaiza.cli import dispatch

PATHS = [f"src/{name}" for name in ("a", "b", "c", "run.sh", "twin", "new", "d/e", "d/f", "a/x", "b/x", "new/x/y")]
"""Some are files and directories by turns."""
FIRST = {
    "src/a": (b"a\n", 0o644),
    "src/b": (b"b\n", 0o600),
    "src/c": (b"", 0o644),
    "src/run.sh": (b"#!/bin/sh\n", 0o755),
    "src/twin": (b"a\n", 0o755),
    "src/d/e": (b"e\n", 0o444),
}
PLANS = ("PLAN-1", "PLAN-2")
OWN, OTHER = 0, 1
"""The session that is undone, and another one."""
UNDOING = "a person who undoes calls"
_CALLS = (
    "write",
    "write",
    "edit",
    "patch",
    "move",
    "move",
    "move",
    "delete",
    "swap",
    "rotate",
    "undo",
    "undo",
    "undo all",
)
_OUTSIDE = ("outside write", "outside chmod", "outside delete", "outside move", "person undo")


def make_sequence(random):
    """Steps: session or None, plan, kind, numbers. Half of the sequences have one agent and nobody else."""
    mixed = random.random() < 0.5
    steps = []
    for _ in range(random.randint(3, 30)):
        numbers = tuple(random.randrange(1000) for _ in range(4))
        if mixed and random.random() < 0.2:
            steps.append((None, 0, random.choice(_OUTSIDE), numbers))
        else:
            session = random.choice((OWN, OWN, OTHER)) if mixed else OWN
            steps.append((session, random.randrange(2), random.choice(_CALLS), numbers))
    return steps


class Play:
    """A workspace in which a sequence is played, and who touched which path."""

    def __init__(self, root):
        self.root = make_ready(root)
        for path, (content, mode) in FIRST.items():
            self._file(path).parent.mkdir(parents=True, exist_ok=True)
            self._file(path).write_bytes(content)
            self._file(path).chmod(mode)
        self.plans = [plan(root, plan_id, scope=WIDE) for plan_id in PLANS]
        self.app = App([os.path.realpath(root)])
        self.sessions = [self.app.call("begin_session", {"role": "WINDSURF"}).output["session_id"] for _ in range(2)]
        self.app.call("begin_session", {"role": "ANTIGRAVITY"})
        self.first = self.files()
        self.calls = []
        self.touched = {}
        """Of each path who touched it, in order: (session, plan), or None for a person outside of Kaiza."""
        self.left = {}
        """Of each path how the last call left it. What a person changes and changes back cannot be seen."""
        self.count = 0

    def _file(self, path):
        return Path(self.root, path)

    def is_own(self, who, by_plan):
        """Whether a change is one of those that are undone in the end, or a person's undo."""
        return who == UNDOING or (who is not None and who[by_plan] == 0)

    def _state(self, path):
        file = self._file(path)
        return (file.read_bytes(), stat.S_IMODE(file.stat().st_mode)) if file.is_file() else None

    def files(self):
        """Content and mode of each file."""
        found = {}
        for directory, _, names in os.walk(Path(self.root, "src")):
            for name in names:
                file = Path(directory, name)
                found[str(file.relative_to(self.root))] = (file.read_bytes(), stat.S_IMODE(file.stat().st_mode))
        return found

    def run(self, steps):
        """Play the steps; a call that is refused is none."""
        for session, plan_number, kind, numbers in steps:
            self.count += 1
            method = getattr(self, "_" + kind.replace(" ", "_"))
            if session is None:
                method(*numbers)
            else:
                method((session, plan_number), *numbers)

    def _call(self, who, tool, **arguments):
        session, plan_number = who
        members = {"session_id": self.sessions[session], "plan_hash": self.plans[plan_number]}
        outcome = self.app.call(tool, {**arguments, **members})
        if outcome.envelope is not None:
            return
        changes = outcome.output["changes"] if tool in ("apply_patch", "undo_changes") else [outcome.output]
        made = [change for change in changes if not change["unchanged"]]
        for change in made:
            for path in filter(None, (change.get("source"), change["path"])):
                self.touched.setdefault(path, []).append((who, tool))
                self.left[path] = self._state(path)
        if made:
            self.calls.append((plan_number, outcome.output["request_id"]))

    def _hash(self, path):
        return sha(self._file(path).read_bytes())

    def _existing(self, number):
        existing = [path for path in PATHS if self._file(path).is_file()]
        return existing[number % len(existing)] if existing else None

    def _content(self, number):
        # Now and then a content that was there before: states that come back are the hard ones.
        return ("a\n", "b\n", "")[number % 3] if number % 5 == 0 else f"{self.count}\n"

    def _write(self, who, where, what, *_):
        path = PATHS[where % len(PATHS)]
        known = {"expected_hash": self._hash(path)} if self._file(path).is_file() else {}
        self._call(who, "write_file", path=path, content=self._content(what), **known)

    def _edit(self, who, where, what, *_):
        path = self._existing(where)
        if path:
            nowhere = {"line": 0, "character": 0}
            edits = [{"range": {"start": nowhere, "end": nowhere}, "new_text": f"{what}\n"}]
            self._call(who, "edit_file", path=path, expected_hash=self._hash(path), edits=edits)

    def _patch(self, who, one, other, how, what):
        paths = dict.fromkeys(filter(None, (self._existing(one), self._existing(other))))
        parts = [self._patch_file(path, how + number, what) for number, path in enumerate(paths)]
        if parts:
            self._call(who, "apply_patch", patch="".join(parts))

    def _patch_file(self, path, how, what):
        content, mode = self.files()[path]
        lines = content.decode().splitlines()
        old = "".join(f"-{line}\n" for line in lines)
        new = [f"{self.count} {what}", *lines[:2]]
        old_span, new_span = "0,0" if not lines else f"1,{len(lines)}", f"1,{len(new)}"
        hunk = f"@@ -{old_span} +{new_span} @@\n{old}" + "".join(f"+{line}\n" for line in new)
        if how % 3 == 0:
            return f"--- a/{path}\n+++ b/{path}\n{hunk}"
        changed = 0o100644 if mode & 0o100 else 0o100755
        modes = f"old mode {0o100000 | mode:o}\nnew mode {changed:o}\n"
        if how % 3 == 1:
            return f"diff --git a/{path} b/{path}\n{modes}"
        return f"diff --git a/{path} b/{path}\n{modes}--- a/{path}\n+++ b/{path}\n{hunk}"

    def _move(self, who, where, to, *_):
        source = self._existing(where)
        if source:
            self._move_file(who, source, PATHS[to % len(PATHS)])

    def _move_file(self, who, source, destination):
        if self._file(source).is_file():
            self._call(who, "move_file", source=source, destination=destination, expected_hash=self._hash(source))

    def _delete(self, who, where, *_):
        path = self._existing(where)
        if path:
            self._call(who, "delete_file", path=path, expected_hash=self._hash(path))

    def _swap(self, who, one, other, *_):
        self._rotate(who, one, other)

    def _rotate(self, who, *numbers):
        """Exchange the names of two files, or of more in a cycle, through a name of its own."""
        paths = list(dict.fromkeys(filter(None, map(self._existing, numbers))))
        for source, destination in zip(paths, ["src/aside", *paths], strict=False):
            self._move_file(who, source, destination)
        self._move_file(who, "src/aside", paths[-1] if paths else "src/aside2")

    def _undo(self, who, *numbers):
        own = [call for plan_number, call in self.calls if plan_number == who[1]]
        chosen = list(
            dict.fromkeys(own[-1 - number % min(len(own), 6)] for number in numbers[: 1 + numbers[0] % 4] if own)
        )
        if chosen:
            self._call(who, "undo_changes", request_ids=chosen)

    def _undo_all(self, who, *_):
        self._call(who, "undo_changes", all_of_session=True)

    def _touch_outside(self, *paths):
        for path in paths:
            self.touched.setdefault(path, []).append((None, "outside"))

    def _outside_write(self, where, what, *_):
        path = PATHS[where % len(PATHS)]
        with contextlib.suppress(FileExistsError, NotADirectoryError, IsADirectoryError):
            self._file(path).parent.mkdir(parents=True, exist_ok=True)
            self._file(path).write_text(self._content(what))
            self._touch_outside(path)

    def _outside_chmod(self, where, *_):
        path = self._existing(where)
        if path:
            self._file(path).chmod(0o640)
            self.touched.setdefault(path, []).append((None, "chmod"))

    def _outside_delete(self, where, *_):
        path = self._existing(where)
        if path:
            self._file(path).unlink()
            self._touch_outside(path)

    def _outside_move(self, where, to, *_):
        path, target = self._existing(where), PATHS[to % len(PATHS)]
        if path and not self._file(target).exists():
            with contextlib.suppress(FileExistsError, NotADirectoryError):
                self._file(target).parent.mkdir(parents=True, exist_ok=True)
                self._file(path).rename(self._file(target))
                self._touch_outside(path, target)

    def _person_undo(self, *numbers):
        calls = [self.calls[-1 - number % len(self.calls)][1] for number in numbers[:2] if self.calls]
        if calls:
            _, undone = self.undo("--request", *dict.fromkeys(calls))
            for change in undone["changes"]:
                for path in filter(None, (change["source"], change["path"])):
                    self.touched.setdefault(path, []).append((UNDOING, "undo"))

    def undo(self, *words):
        """A person's undo; its exit status and what it printed as JSON."""
        printed = io.TextIOWrapper(io.BytesIO())
        with contextlib.redirect_stdout(printed):
            status = dispatch.main(["undo", *words, "--yes", "--json", "--workspace", str(self.root)])
        printed.flush()
        return status, json.loads(printed.buffer.getvalue())

    def close(self):
        self.app.close()


def find_fault(play, steps, by_plan):
    """Play the steps, undo the session or the plan as a person, and compare the trees; what is wrong, or None."""
    play.run(steps)
    before = play.files()
    status, undone = play.undo(*(("--plan", PLANS[0]) if by_plan else ("--session", play.sessions[OWN])))
    after, kept = play.files(), {each["path"] for each in undone["kept"]}
    if status != bool(kept):
        return f"exit status {status} with {sorted(kept)} kept"
    for path in {*before, *after, *play.first, *play.touched}:
        touched = play.touched.get(path, [])
        is_own = [play.is_own(who, by_plan) for who, _ in touched]
        if all(is_own) and after.get(path) != play.first.get(path) and path not in kept:
            return f"{path} is {after.get(path)}, was {play.first.get(path)}, and is not named"
        is_others = touched and not is_own[-1] and touched[-1][1] not in {"undo_changes", "chmod"}
        is_seen = touched and (touched[-1][1] != "outside" or before.get(path) != play.left.get(path))
        if is_others and is_seen and after.get(path) != before.get(path):
            return f"{path} is another's {before.get(path)}, became {after.get(path)}"
    nobody_else = all(play.is_own(who, by_plan) for each in play.touched.values() for who, _ in each)
    if nobody_else and kept:
        return f"nobody else touched anything, and these were kept: {undone['kept']}"
    return None


def shrink(steps, fails):
    """The steps without those that the failure does not need."""
    size = len(steps) // 2
    while size:
        start = 0
        while start < len(steps):
            fewer = steps[:start] + steps[start + size :]
            if fails(fewer):
                steps = fewer
            else:
                start += size
        size //= 2
    return steps
