"""Calls that meet a bug."""

import asyncio
import json
import time
from types import SimpleNamespace

from kaiza.domain.call import CallRequest
from kaiza.server.http.call_runner import CallRunner
from kaiza.server.pipeline import Incoming
from kaiza.wire.dialect import ToolCall


class BrokenApp:
    def stamp(self, _request):
        return SimpleNamespace(deadline=time.monotonic() + 60)

    def answer(self, _call):
        raise RuntimeError("a bug")


def test_the_answer_of_a_call_that_fails_by_a_bug_is_reported_like_any_other():
    incoming = Incoming("a", ToolCall("echo", {}, None, conversational=False), None)
    reported, printed = [], []

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda _, context: printed.append(context["exception"]))
        return await CallRunner(BrokenApp()).run(incoming, CallRequest("echo", {}), reported.append)

    answer = asyncio.run(run())

    assert json.loads(answer.line)["error"]["data"]["error_code"] == "INTERNAL_ERROR"
    assert reported == [answer]
    assert [str(error) for error in printed] == ["a bug"]
