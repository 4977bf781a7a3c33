"""Runs calls on worker threads, and answers a call whose deadline passes before its worker does."""

import asyncio
import math
import threading
import time
from asyncio import Future, Task
from collections.abc import Callable
from functools import partial
from typing import Any, Final, NamedTuple

from anyio import CapacityLimiter, to_thread

from kaiza.domain.call import CallRequest, Outcome, Principal
from kaiza.server.call_queue import CallQueue, QueuedCall, find_lane
from kaiza.server.pipeline import AppProtocol, Incoming
from kaiza.wire import message
from kaiza.wire.message import InvalidMessage

MAX_CALLS: Final = 64
"""Calls of one lane in flight, running or waiting. Further ones are refused."""

MAX_CALLS_OF_TOKEN: Final = 48
"""Calls of one lane in flight of one token, so that it leaves room for others."""

MIN_CALLS_OF_TOKEN: Final = 4
"""Calls of one lane that a token may have in flight however many others have."""

MAX_CALL_BYTES: Final = 32 << 20
"""Size of the requests of one token's calls in flight; the last of them may go beyond it."""

RECHECK_SECONDS: Final = 0.05
"""While calls wait: pause before it is looked whether those that run are stuck."""


class CallAnswer(NamedTuple):
    """Encoded answer, and the outcome if it is that of a call."""

    line: bytes
    outcome: Outcome | None = None


OnAnswer = Callable[[CallAnswer], None]


class RunningCall(QueuedCall):
    """One call in flight. The worker and the deadline compete for beginning it, and for answering it."""

    def __init__(
        self, incoming: Incoming, request: CallRequest, call: Any, on_answer: OnAnswer | None, size: int
    ) -> None:
        super().__init__(find_lane(incoming.call.tool_name), request.principal)
        self.call: Final = call
        self.size: Final = size
        self.answer: Final[Future[CallAnswer]] = asyncio.get_running_loop().create_future()
        self._incoming: Final = incoming
        self._on_answer: Final = on_answer
        self.work: Task[CallAnswer | None] | None = None
        self._begun = threading.Lock()

    def begin(self) -> bool:
        """Take the right to begin the call, or to end it before it has begun; True for the first caller only."""
        return self._begun.acquire(blocking=False)

    def encode(self, outcome: Outcome | None) -> CallAnswer | None:
        """Encode the outcome, on a thread; None if there is none, because the call is answered elsewhere."""
        if outcome is None:
            return None
        answer = CallAnswer(self._incoming.encode(outcome), outcome)
        self._report(answer)
        return answer

    def answer_bug(self) -> None:
        """Answer a call that failed because of a bug."""
        bug = InvalidMessage(self._incoming.request_id, "INTERNAL_ERROR", message.BUG_REASON)
        answer = CallAnswer(message.rejection(bug))
        self.answer.set_result(answer)
        self._report(answer)

    def _report(self, answer: CallAnswer) -> None:
        if self._on_answer is not None:
            self._on_answer(answer)


class CallRunner:
    """Calls in flight and their workers. Used on the event loop only; calls of the application run on threads."""

    def __init__(self, app: AppProtocol) -> None:
        self._app = app
        self._running: set[RunningCall] = set()
        self._tasks: set[Task[CallAnswer | None]] = set()
        self._queue: CallQueue[RunningCall] = CallQueue()
        self._recheck: asyncio.TimerHandle | None = None
        # The queue bounds the threads of calls. Those that expire calls must not wait for any that are stuck.
        self._threads = CapacityLimiter(math.inf)

    def has_room(self, tool_name: str, principal: Principal | None) -> bool:
        """Whether another call of this tool and principal may begin."""
        lane = find_lane(tool_name)
        if sum(running.size for running in self._running if running.principal == principal) >= MAX_CALL_BYTES:
            return False
        principals = [running.principal for running in self._running if running.lane is lane]
        own_count = principals.count(principal)
        if principal is not None and own_count < MIN_CALLS_OF_TOKEN:
            return True
        return len(principals) < MAX_CALLS and (principal is None or own_count < MAX_CALLS_OF_TOKEN)

    def unanswered(self) -> "set[Future[CallAnswer]]":
        """Answers that are not there yet, including those for clients that have disconnected."""
        return {running.answer for running in self._running}

    def is_idle(self) -> bool:
        """Whether no thread is in a call, even in one that has been answered."""
        return not self._tasks

    async def run(
        self, incoming: Incoming, request: CallRequest, on_answer: OnAnswer | None = None, size: int = 0
    ) -> CallAnswer:
        """Run a call to its end, or until its deadline has been answered. It continues if the client disconnects.

        `on_answer` gets the answer first, usually on a thread; `size` is that of the request, in bytes.
        """
        running = RunningCall(incoming, request, self._app.stamp(request), on_answer, size)
        self._running.add(running)
        self._queue.add(running)
        self._start_waiting()
        seconds = running.call.deadline - time.monotonic()
        deadline = asyncio.get_running_loop().call_later(seconds, self._expire, running, "timeout")
        try:
            return await running.answer
        finally:
            deadline.cancel()
            self._running.discard(running)

    def end_calls(self) -> None:
        """Expire all calls in flight, because the server ends."""
        for running in list(self._running):
            self._expire(running, "shutdown")

    def _start_waiting(self) -> None:
        """Start the calls whose turn it is."""
        while (running := self._queue.take(time.monotonic())) is not None:
            running.work = self._start(running, to_thread.run_sync(self._work, running, limiter=self._threads))
        if self._recheck is not None:
            self._recheck.cancel()
        loop = asyncio.get_running_loop()
        self._recheck = loop.call_later(RECHECK_SECONDS, self._start_waiting) if self._queue.is_waiting() else None

    def _work(self, running: RunningCall) -> CallAnswer | None:
        """Run the call, on a worker thread; None if its deadline was answered first."""
        return running.encode(self._app.answer(running.call)) if running.begin() else None

    def _expire(self, running: RunningCall, cap: str) -> None:
        if running.begin():
            self._queue.remove(running)
        self._start(running, self._answer_overdue(running, cap))

    async def _answer_overdue(self, running: RunningCall, cap: str) -> CallAnswer | None:
        answer = await to_thread.run_sync(self._end, running, cap, limiter=self._threads)
        if answer is not None:
            self._queue.release_stuck(running)
            self._start_waiting()
        return answer

    def _end(self, running: RunningCall, cap: str) -> CallAnswer | None:
        """Expire the call, on a thread of its own; None if it cannot be ended any more."""
        return running.encode(self._app.expire(running.call, cap))

    def _start(self, running: RunningCall, work: Any) -> "Task[CallAnswer | None]":
        task: Task[CallAnswer | None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(partial(self._settle, running))
        return task

    def _settle(self, running: RunningCall, task: "Task[CallAnswer | None]") -> None:
        """Answer with what a task returned or raised, unless the call is answered already."""
        self._tasks.discard(task)
        if task is running.work:
            self._queue.finish(running)
            self._start_waiting()
        if task.cancelled() or running.answer.done():
            return
        error = task.exception()
        if error is not None:
            # Prints it with its traceback.
            task.get_loop().call_exception_handler({"message": "A call failed", "exception": error})
            running.answer_bug()
        elif (answer := task.result()) is not None:
            running.answer.set_result(answer)
