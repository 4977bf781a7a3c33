"""The real application: small calls are answered although many searches were sent before them."""

import json
import subprocess
import sys
import threading
from collections import Counter

import pytest
from agents import Agent
from doors import call
from http_doors import HttpDoor

SEARCHES = 40
NOTHING = {"query": r"q[a-z]+z\d{7}", "regex": True}


@pytest.fixture
def big(workspace):
    """A workspace in which one search takes some 10 ms."""
    (workspace / "small.txt").write_text("hello\n")
    for number in range(200):
        (workspace / f"{number}.txt").write_text(("y" * 31 + "\n") * 320)
    return workspace


def test_small_calls_are_answered_before_the_searches_that_were_sent_first(big):
    agent = Agent(big)
    session = {"session_id": agent.begun["session_id"]}
    small = {
        "read": ("read_file", {"path": "small.txt"}),
        "status": ("session_status", {}),
        "plans": ("list_plans", {}),
    }
    try:
        agent.door.say(
            *(call(number, "search_text", **session, **NOTHING) for number in range(SEARCHES)),
            *(call(name, tool, **session, **arguments) for name, (tool, arguments) in small.items()),
        )
        answers = [agent.door.hear() for _ in range(SEARCHES + len(small))]
    finally:
        agent.close()
    order = [answer["id"] for answer in answers]

    assert not any(answer["result"]["isError"] for answer in answers)
    # On a busy machine some searches end while the last small calls are still being read.
    assert max(order.index(name) for name in small) < SEARCHES - 8


class Searches:
    """Connections of one token that search without a pause."""

    def __init__(self, door, token, session):
        self.door, self.token, self.session = door, token, session
        self.is_over = threading.Event()
        self.statuses = Counter()
        self.threads = [threading.Thread(target=self.search, daemon=True) for _ in range(SEARCHES)]
        for thread in self.threads:
            thread.start()

    def search(self):
        while not self.is_over.is_set():
            message = call(1, "search_text", session_id=self.session, **NOTHING)
            self.statuses[self.door.post("/mcp", message, Authorization=f"Bearer {self.token}").status] += 1

    def end(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(20)


def test_searches_of_one_token_keep_neither_small_calls_nor_searches_of_another_waiting(big):
    kaiza = [sys.executable, "-m", "kaiza"]
    tokens = [
        subprocess.run([*kaiza, "token", "new", name, "--workspace", str(big)], capture_output=True, check=True).stdout
        for name in ("ada", "bob")
    ]
    ada, bob = (token.decode().split()[0] for token in tokens)
    door = HttpDoor([*kaiza, "serve", "--workspace", str(big), "--http", "127.0.0.1:0"])

    def ask(token, tool, **arguments):
        answer = door.post("/mcp", call(1, tool, **arguments), Authorization=f"Bearer {token}")
        return json.loads(answer.body)["result"]

    searches = None
    try:
        own = ask(ada, "begin_session", role="WINDSURF")["structuredContent"]["session_id"]
        other = ask(bob, "begin_session", role="WINDSURF")["structuredContent"]["session_id"]
        searches = Searches(door, ada, own)
        before = searches.statuses.total()
        results = [ask(bob, "session_status", session_id=other) for _ in range(5)]
        results.append(ask(bob, "search_text", session_id=other, **NOTHING))
        meanwhile = searches.statuses.total() - before
    finally:
        if searches is not None:
            searches.end()
        door.end()

    assert [result["isError"] for result in results] == [False] * 6
    assert searches.statuses.keys() == {200}
    # First come, first served, each of the six would have waited for all searches that were sent before it.
    assert meanwhile < 3 * SEARCHES
