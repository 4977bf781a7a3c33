import json
import os

from doors import call

from kaiza.server.pipeline import Pipeline
from kaiza.server.stdio import Stdio
from kaiza.wire.mcp import Mcp, Opening


def test_a_line_that_comes_in_after_the_end_was_decided_is_not_carried_out():
    incoming, client = os.pipe()
    stdio = Stdio(incoming, client, Pipeline((Mcp(Opening("1", "", list)),)), lambda: None)
    os.write(client, json.dumps(call(1, "echo")).encode() + b"\n" + json.dumps(call(2, "echo")).encode() + b"\n")
    before = stdio._read()
    stdio._stopping = True
    after = stdio._read()
    os.close(incoming)
    os.close(client)

    assert before is not None
    assert after is None
