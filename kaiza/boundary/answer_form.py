"""Form of an answer: how large it may become, by settings and client, and the order of its members."""

from collections.abc import Mapping
from typing import Any

from kaiza.boundary.call import Call
from kaiza.domain.caps import Caps
from kaiza.domain.client_limits import limit_for_client

_LAST_MEMBERS = ("truncated", "nextCursor", "next")


def limit_answer(call: Call, caps: Caps) -> Caps:
    """The caps with the size of this call's answer."""
    # A client without a handshake may name itself in each request, or in the first one only.
    client = call.call_request.client or (call.session.client if call.session else None)
    configured = call.workspace.settings.answer_bytes if call.workspace else caps.answer_bytes
    return caps._replace(answer_bytes=limit_for_client(configured, client))


def order_members(output: Mapping[str, Any]) -> dict[str, Any]:
    """The output with its summary first, and last what tells how to go on: a client may show only both ends."""
    first = {name: output[name] for name in ("summary",) if name in output}
    last = {name: output[name] for name in _LAST_MEMBERS if name in output}
    return {**first, **{name: value for name, value in output.items() if name not in last}, **last}
