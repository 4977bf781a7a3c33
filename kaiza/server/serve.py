"""`serve`: the opening is answered at once, the house is built behind it, and the process leaves with nothing lost."""

import gc
import os
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kaiza.server import descriptors
from kaiza.server.pipeline import Pipeline
from kaiza.server.stdio import Stdio
from kaiza.server.surface import App, Desk
from kaiza.wire.mcp import Mcp, Opening, Wanted

if TYPE_CHECKING:
    from kaiza.domain.call import Outcome
    from kaiza.wire.message import Id


SELDOM = 20_000
"""Allocations between two collections. A call makes hundreds of objects and no cycles; imports make many that stay."""


def serve(make_app: Callable[[], App], opening: Opening, *, summary: bool = False) -> int:
    """Serve one client over standard input and output; the exit status.

    `make_app` is called once, in another thread, when tools are first listed or called. Where it raises a SystemError,
    that is raised here, after whatever was asked has been answered. `summary` puts an output's summary into the text
    block, instead of the whole output once more.
    """
    gc.set_threshold(SELDOM)
    incoming, outgoing = descriptors.claim()
    dialect = Mcp(opening)
    stdio = Stdio(incoming, outgoing, Pipeline((dialect,)), partial(_desk, make_app, dialect, summary=summary))
    clean = stdio.serve()
    if failure := stdio.failure():
        raise failure
    if not clean:
        sys.stderr.flush()
        os._exit(0)
    return 0


def _desk(make_app: Callable[[], App], dialect: Mcp, *, summary: bool) -> Desk:
    from kaiza.wire import mcp_call  # noqa: PLC0415  what calls need is loaded when there may be calls

    forms = {False: mcp_call.Form(summary), True: mcp_call.Form(summary, dialect.modern_meta)}

    def tell(request_id: "Id", wanted: Wanted, outcome: "Outcome") -> bytes:
        return mcp_call.told(request_id, outcome, forms[wanted.modern])

    gc.disable()  # what is built and imported here stays: there is nothing to collect, and looking costs milliseconds
    try:
        app = make_app()
        gc.freeze()
    finally:
        gc.enable()
    return Desk(app, mcp_call.ask, tell)
