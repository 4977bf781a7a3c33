"""Serves one client over stdio: answers the opening at once, and builds the application in the background."""

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kaiza.server.dialects import load_dialects
from kaiza.server.pipeline import Pipeline
from kaiza.server.stdio import framing
from kaiza.server.stdio.transport import StdioTransport
from kaiza.wire.dialect import ServerDescription

if TYPE_CHECKING:
    from kaiza.app import App
    from kaiza.server.run_logger import RunLogger

GC_THRESHOLD = 20_000
"""Allocations between two collections; raised, because a call creates hundreds of objects and no cycles."""


def serve(
    make_app: "Callable[[], App]",
    opening: ServerDescription,
    *,
    summary: bool = False,
    make_run_logger: "Callable[[], RunLogger] | None" = None,
) -> int:
    """Serve one client over standard input and output; the exit status.

    `make_app` is called once, in another thread, when tools are first listed or called. A SystemError from it is raised
    here, once all pending requests are answered. With `summary`, the text block of a result has only the output's
    summary instead of the whole output as JSON. `make_run_logger` is called once, after the first answer.
    """
    gc.set_threshold(GC_THRESHOLD)
    incoming, outgoing = framing.take_stdio()
    pipeline = Pipeline(load_dialects(opening, summary=summary))
    stdio = StdioTransport(incoming, outgoing, pipeline, partial(build_app, make_app), make_run_logger)
    is_clean = stdio.serve()
    if failure := stdio.failure():
        raise failure
    if not is_clean:
        # A thread is stuck in a call or in closing the log: a normal exit would wait for it.
        sys.stderr.flush()
        os._exit(0)
    return 0


def build_app(make_app: "Callable[[], App]") -> "App":
    """Build the application, and exempt it from garbage collection."""
    # Imported here, in the background: within the first call it would take longer than LEADER_SECONDS, and that call
    # would lose the lead.
    from kaiza.wire.dialects import mcp_result  # noqa: F401, PLC0415

    gc.disable()  # what is built and imported here is never freed: collecting it costs milliseconds for nothing
    try:
        app = make_app()
        gc.freeze()
    finally:
        gc.enable()
    return app
