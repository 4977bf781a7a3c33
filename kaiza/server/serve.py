"""`serve`: the opening is answered at once, the house is built behind it, and the process leaves with nothing lost."""

import gc
import os
import sys
from collections.abc import Callable
from functools import partial

from kaiza.server.pipeline import AppProtocol, Pipeline
from kaiza.server.stdio import framing
from kaiza.server.stdio.transport import StdioTransport
from kaiza.wire.dialects.mcp import McpDialect, ServerDescription

GC_THRESHOLD = 20_000
"""Allocations between two collections. A call makes hundreds of objects and no cycles; imports make many that stay."""


def serve(make_app: Callable[[], AppProtocol], opening: ServerDescription, *, summary: bool = False) -> int:
    """Serve one client over standard input and output; the exit status.

    `make_app` is called once, in another thread, when tools are first listed or called. Where it raises a SystemError,
    that is raised here, after whatever was asked has been answered. `summary` puts an output's summary into the text
    block, instead of the whole output once more.
    """
    gc.set_threshold(GC_THRESHOLD)
    incoming, outgoing = framing.take_stdio()
    pipeline = Pipeline((McpDialect(opening, summary=summary),))
    stdio = StdioTransport(incoming, outgoing, pipeline, partial(_build, make_app))
    clean = stdio.serve()
    if failure := stdio.failure():
        raise failure
    if not clean:
        sys.stderr.flush()
        os._exit(0)
    return 0


def _build(make_app: Callable[[], AppProtocol]) -> AppProtocol:
    # Loaded here, in a thread of its own: were it loaded by the first answer, that call would outlast the reader's
    # patience and lose its turn.
    from kaiza.wire.dialects import mcp_result as mcp_call  # noqa: F401, PLC0415

    gc.disable()  # what is built and imported here stays: there is nothing to collect, and looking costs milliseconds
    try:
        app = make_app()
        gc.freeze()
    finally:
        gc.enable()
    return app
