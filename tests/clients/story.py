"""What the scripted model does with Kaiza's tools, as an agent would: a whole session, and answers of many pages."""

import json

from clients.programs import NEEDED
from clients.scripted_model import Call

PLAN_ID = "PLAN-0002-greeting"
PLAN = f"""---
kaiza_plan: 1
plan_id: {PLAN_ID}
title: Correct the greeting
status: DRAFT
author: agent
created: "2026-11-18T09:00:00Z"
approved_by: null
approved_at: null
scope: {{modify: ["greeting.txt"], create: ["notes/*.txt"]}}
---
# Why

To see a change happen.
"""
NO_PLAN = "0" * 64
BIG_FILE, HITS = "big.txt", 2000
BIG_TEXT = "".join(f"line {number:05d} of a file that no client takes whole {'.' * 20}\n" for number in range(5200))
HIT_TEXT = "".join(f"needle {number} in a haystack\n" for number in range(HITS))


class WasCutError(AssertionError):
    """A result that did not reach the model whole."""


class Toolbox:
    """Kaiza's tools as one client offers them; every result is parsed, so that a cut one is noticed."""

    def __init__(self, program):
        self._program = program
        self._offered = frozenset()
        self.direct = 0
        self.found = 0

    def begin(self):
        """Wait for the first request, and search for Kaiza's tools if the client defers them."""
        seen = yield
        self.direct = self._note(seen)
        missing = [tool for tool in NEEDED if self._program.spell(tool) not in self._offered]
        if missing and hasattr(self._program, "search"):
            self._note((yield Call(*self._program.search())))
        self.found = sum(self._program.spell(tool) in self._offered for tool in NEEDED)

    def call(self, tool, **arguments):
        """The output or the envelope of a call."""
        seen = yield Call(self._program.spell(tool), arguments)
        self._note(seen)
        unwrap = getattr(self._program, "unwrap", str)
        return _parse(unwrap(seen.result))

    def own(self, name, arguments):
        """What the client answers to a call of a tool of its own."""
        return (yield Call(name, arguments)).result

    def _note(self, seen):
        self._offered = seen.tools
        prefix = self._program.spell("")
        return sum(name.startswith(prefix) and name != prefix for name in seen.tools)


def _parse(result):
    start = result.find("{")
    try:
        return json.JSONDecoder().raw_decode(result[max(start, 0) :])[0]
    except ValueError as error:
        raise WasCutError(f"{len(result)} characters: {result[:300]} … {result[-200:]}") from error


def play_session(tools, project, facts):
    """Read, be refused, draft, be approved, change, leave the scope, report, undo, end; then try the client's own."""
    yield from tools.begin()
    agent = (yield from tools.call("begin_session", role="WINDSURF"))["session_id"]
    read = yield from tools.call("read_file", session_id=agent, path="greeting.txt")
    change = {"session_id": agent, "path": "greeting.txt", "content": "hello\n", "expected_hash": read["hash"]}
    refused = yield from tools.call("write_file", **change, plan_hash=NO_PLAN)
    planner = (yield from tools.call("begin_session", role="ANTIGRAVITY"))["session_id"]
    yield from tools.call("save_plan", session_id=planner, plan_id=PLAN_ID, content=PLAN)
    draft = yield from tools.call("write_file", **change, plan_hash=(yield from _hash_of_plan(tools, agent)))
    _approve(project)
    plan_hash = yield from _hash_of_plan(tools, agent)
    changed = yield from tools.call("write_file", **change, plan_hash=plan_hash)
    text = (project / "greeting.txt").read_text()
    outside = yield from tools.call(
        "write_file", session_id=agent, path="other.txt", content="x\n", plan_hash=plan_hash
    )
    locked = yield from tools.call("write_file", **change, plan_hash=plan_hash)
    yield from tools.call("write_report", session_id=agent, title="Left the scope", content="other.txt is not in it.")
    undone = yield from tools.call("undo_changes", session_id=agent, all_of_session=True, plan_hash=plan_hash)
    yield from tools.call("end_session", session_id=planner)
    yield from tools.call("end_session", session_id=agent)
    facts["codes"] = [answer.get("error_code") for answer in (refused, draft, changed, outside, locked, undone)]
    facts["texts"] = [text, (project / "greeting.txt").read_text()]


def _hash_of_plan(tools, session):
    plans = (yield from tools.call("list_plans", session_id=session))["items"]
    return next(plan["plan_hash"] for plan in plans if plan["plan_id"] == PLAN_ID)


def _approve(project):
    """Change one word, as a person does in an editor."""
    path = project / "plans" / f"{PLAN_ID}.md"
    path.write_text(path.read_text().replace("status: DRAFT", "status: APPROVED"))


def play_own_writers(tools, program, facts):
    """Try every tool of the client's own that writes."""
    yield from tools.begin()
    facts["own"] = []
    for name, arguments in program.writers:
        facts["own"].append((name, (yield from tools.own(name, arguments))))


def play_large_answers(tools, facts):
    """Read a file of 350 KB and 2,000 hits, page after page, as the answers say."""
    yield from tools.begin()
    session = (yield from tools.call("begin_session", role="WINDSURF"))["session_id"]
    more, text, facts["file_pages"] = {"start_line": 0}, "", 0
    while more:
        page = yield from tools.call("read_file", session_id=session, path=BIG_FILE, **more)
        text, facts["file_pages"] = text + page["content"], facts["file_pages"] + 1
        more = page["truncated"] and page.get("next", {"start_line": page["start_line"] + page["line_count"]})
    more, hits, facts["hit_pages"] = {}, [], 0
    while more is not None:
        page = yield from tools.call("search_text", session_id=session, query="needle", **more)
        hits, facts["hit_pages"] = hits + page["items"], facts["hit_pages"] + 1
        more = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    facts["file_is_whole"] = text == BIG_TEXT
    facts["hits_are_whole"] = [hit["line"] for hit in hits] == HIT_TEXT.splitlines()
