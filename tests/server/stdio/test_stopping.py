import json
import os

import pytest
from doors import call

from kaiza.domain import errors
from kaiza.server.dialects import load_dialects
from kaiza.server.pipeline import Pipeline
from kaiza.server.stdio.transport import StdioTransport
from kaiza.server.stdio.wakeup_pipe import APP_CLOSED
from kaiza.wire.dialect import ServerDescription


class UnclosableApp:
    """Its `close` fails, as if an expired call still held the lock of the log."""

    def close(self):
        raise errors.SystemError.tool_failure("AUDIT_LOCK_FAILED")


def test_a_failure_while_closing_does_not_delay_the_exit():
    incoming, outgoing = os.pipe()
    stdio = StdioTransport(incoming, outgoing, Pipeline({}), UnclosableApp)
    stdio._app.start()
    with pytest.raises(errors.SystemError):
        stdio._close_app()
    event = stdio._wakeup.wait(0)
    os.close(incoming)
    os.close(outgoing)

    assert event == APP_CLOSED


def test_a_line_read_after_the_shutdown_began_is_not_run():
    incoming, client = os.pipe()
    stdio = StdioTransport(incoming, client, Pipeline(load_dialects(ServerDescription("1", "", list))), lambda: None)
    os.write(client, json.dumps(call(1, "echo")).encode() + b"\n")
    stdio._is_stopping = True
    stdio._read_lines()
    os.close(incoming)
    os.close(client)

    assert stdio._calls.list_in_flight() == []
