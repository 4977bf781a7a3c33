"""Context tools over HTTP: the same bytes as on stdio, with the status of the error."""

import sys

import pytest
from context_caches import MINIMAL, write_cache
from doors import call, request

HELLO = {"cache": "minimal", "query": "hello", "budget": 100}
FRAMES = [
    (call(1, "context_resolve", **HELLO), 200),
    (call(2, "context_resolve", **{**HELLO, "cache": "no"}), 404),
    (call(3, "context_resolve", **{**HELLO, "budget": -1}), 422),
    (request(4, "tools/call", tool="context.resolve", arguments={**HELLO, "query": 5}), 422),
    (request(5, "tools/call", tool="context.resolve", input={**HELLO, "cache": "../x"}), 404),
]


@pytest.mark.rows("S0-32", "S0-33", "S0-34")
def test_a_frame_is_answered_with_the_same_bytes_as_on_stdio_each_time(served, open_door, workspace):
    write_cache(workspace, "minimal", MINIMAL)
    stdio = open_door([sys.executable, "-m", "kaiza", "serve", "--workspace", str(workspace)])
    spoken = []
    for frame, _ in FRAMES:
        stdio.say(frame)
        spoken.append(stdio.hear_line())
    answers = [[served.post("/rpc", frame) for frame, _ in FRAMES] for _ in range(20)]

    assert [[answer.status for answer in each] for each in answers] == [[status for _, status in FRAMES]] * 20
    assert {tuple(answer.body.strip() for answer in each) for each in answers} == {
        tuple(line.strip() for line in spoken)
    }
