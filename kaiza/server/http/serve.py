"""Serves the application on a socket until a signal, then drains the calls in flight, as on stdio."""

import asyncio
import gc
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from anyio import move_on_after, to_thread
from uvicorn.config import Config
from uvicorn.server import ServerState

from kaiza.server.call_runner import CallRunner
from kaiza.server.http.admission import Admission
from kaiza.server.http.application import Pipelines, make_http_app
from kaiza.server.http.connection import HANDSHAKE_SECONDS, KEEP_ALIVE_SECONDS, BoundedConnection, ListeningSocket
from kaiza.server.serve import GC_THRESHOLD, build_app
from kaiza.server.stdio.transport import DRAIN_SECONDS, END_SECONDS, EXIT_SECONDS

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.server.run_logger import RunLogger

BACKLOG: Final = 128


class Listener(NamedTuple):
    """A bound socket, its TLS context if any, and a callback for when it accepts connections."""

    bound: socket.socket
    tls: ssl.SSLContext | None
    on_listening: Callable[[], None]


def serve_http(
    make_app: "Callable[[], App]",
    pipelines: Pipelines,
    admission: Admission,
    listener: Listener,
    run_logger: "RunLogger | None" = None,
) -> int:
    """Serve until SIGTERM or SIGINT; the exit status. A SystemError of `make_app` is raised here."""
    gc.set_threshold(GC_THRESHOLD)
    asyncio.run(_Server(pipelines, admission, listener, run_logger).serve(make_app))
    return 0


class _Server:
    """The connections of one listener, from the first to the last."""

    def __init__(
        self, pipelines: Pipelines, admission: Admission, listener: Listener, run_logger: "RunLogger | None"
    ) -> None:
        self._pipelines = pipelines
        self._run_logger = run_logger
        self._admission = admission
        self._listener = listener
        self._state = ServerState()
        self._connection_lost = asyncio.Event()

    async def serve(self, make_app: "Callable[[], App]") -> None:
        """Serve until a signal."""
        loop, signalled = asyncio.get_running_loop(), asyncio.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, signalled.set)
        app = await to_thread.run_sync(partial(build_app, make_app))
        calls = CallRunner()
        calls.start(app)
        config = self._configure(make_http_app(calls, self._pipelines, self._admission, self._run_logger))
        server = await self._listen(config)
        self._listener.on_listening()
        await signalled.wait()
        server.close()
        if not await self._shut_down(app, calls):
            # A normal exit would wait for a thread that closes the log, and print the requests that it cancels.
            sys.stderr.flush()
            os._exit(0)

    async def _listen(self, config: Config) -> asyncio.Server:
        """Accept connections."""
        listening = ListeningSocket(self._listener.bound)
        on_made, on_lost = listening.end_handshake, self._connection_lost.set
        return await asyncio.get_running_loop().create_server(
            partial(BoundedConnection, config, self._state, {}, on_made=on_made, on_lost=on_lost),
            sock=listening,
            ssl=self._listener.tls,
            ssl_handshake_timeout=HANDSHAKE_SECONDS if self._listener.tls else None,
            ssl_shutdown_timeout=HANDSHAKE_SECONDS if self._listener.tls else None,
            backlog=BACKLOG,
        )

    async def _shut_down(self, app: "App", calls: CallRunner) -> bool:
        """End the calls and close the log; False if a call or the closing goes on."""
        began = asyncio.get_running_loop().time()
        for connection in list(self._state.connections):
            connection.shutdown()
        if not await self._wait_until_idle(calls, began + DRAIN_SECONDS):
            threading.Thread(target=calls.end_calls, name="kaiza-end", daemon=True).start()
            await self._wait_until_idle(calls, began + END_SECONDS)
        for connection in list(self._state.connections):
            connection.transport.abort()
        with move_on_after(began + EXIT_SECONDS - asyncio.get_running_loop().time()) as scope:
            await to_thread.run_sync(app.close, abandon_on_cancel=True)
        return not scope.cancelled_caught and not calls.list_in_flight()

    async def _wait_until_idle(self, calls: CallRunner, end: float) -> bool:
        """Wait for the last answer to be sent; False if the time is up."""
        loop, drained = asyncio.get_running_loop(), asyncio.Event()

        def note_drained() -> None:
            if not loop.is_closed():  # the process is about to exit
                loop.call_soon_threadsafe(drained.set)

        with move_on_after(end - loop.time()) as scope:
            while self._state.tasks:
                await asyncio.wait(self._state.tasks)
            # Calls of clients that have disconnected, too.
            calls.drain(note_drained)
            await drained.wait()
            while self._state.connections:
                self._connection_lost.clear()
                await self._connection_lost.wait()
        return not scope.cancelled_caught

    def _configure(self, app: object) -> Config:
        config = Config(
            app,  # type: ignore[arg-type]  # Starlette's types of messages are wider than uvicorn's
            interface="asgi3",
            http=BoundedConnection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        config.load()
        return config
