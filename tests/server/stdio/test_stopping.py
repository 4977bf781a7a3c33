import json
import os

import pytest
from doors import call

from kaiza.domain import errors
from kaiza.server.pipeline import Pipeline
from kaiza.server.stdio.transport import StdioTransport
from kaiza.server.stdio.wakeup_pipe import APP_CLOSED
from kaiza.wire.dialects.mcp import McpDialect, ServerDescription


class Unclosable:
    """A house whose record is held by a call that was given up."""

    def close(self):
        raise errors.SystemError.tool_failure("AUDIT_LOCK_FAILED")


def test_a_house_that_cannot_be_closed_is_not_waited_for():
    incoming, outgoing = os.pipe()
    stdio = StdioTransport(incoming, outgoing, Pipeline(()), Unclosable)
    stdio._app.get()
    with pytest.raises(errors.SystemError):
        stdio._close_app()
    news = stdio._wakeup.wait(0)
    os.close(incoming)
    os.close(outgoing)

    assert news == APP_CLOSED


def test_a_line_that_comes_in_after_the_end_was_decided_is_not_carried_out():
    incoming, client = os.pipe()
    stdio = StdioTransport(incoming, client, Pipeline((McpDialect(ServerDescription("1", "", list)),)), lambda: None)
    os.write(client, json.dumps(call(1, "echo")).encode() + b"\n" + json.dumps(call(2, "echo")).encode() + b"\n")
    before = stdio._read_job()
    stdio._is_stopping = True
    after = stdio._read_job()
    os.close(incoming)
    os.close(client)

    assert before is not None
    assert after is None
