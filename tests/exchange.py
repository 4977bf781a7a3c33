"""Exchanges frames with an application in this process, through the pipeline of the transports."""

import json

from kaiza.domain.tool_card import ToolOffer
from kaiza.server.dialects import load_dialects
from kaiza.server.pipeline import Pipeline, to_call_request
from kaiza.server.stdio.framing import BoundedBytes
from kaiza.store.config.editor_catalog import EditorCatalog
from kaiza.store.config.schema_registry import SchemaRegistry, list_items
from kaiza.wire import framing
from kaiza.wire.dialect import ServerDescription


class Exchange:
    """One connection to an application. `ask` takes a frame, bytes or JSON, and returns the answer."""

    def __init__(self, app, *, offer=None, registry=None, mcp_only=False):
        registry, offer = registry or SchemaRegistry(), offer or ToolOffer()
        description = ServerDescription(
            "1", "", lambda: list_items(registry, offer), lambda: EditorCatalog(registry, offer)
        )
        self._app = app
        self._pipeline = Pipeline(load_dialects(description), mcp_only=mcp_only)
        self.line = b""

    def ask(self, frame):
        received = BoundedBytes(framing.MAX_LINE)
        received.add(frame if isinstance(frame, bytes) else json.dumps(frame).encode())
        action = self._pipeline.next_action(self._pipeline.parse_line(received.take()))
        self.line = action.answer
        if action.call is not None:
            outcome = self._app.answer(self._app.stamp(to_call_request(action.call.call)))
            self.line = action.call.encode(outcome)
        return None if self.line is None else json.loads(self.line)

    def editor(self, tool, /, **arguments):
        return self.ask(request("tools/call", tool=tool, arguments=arguments))

    def canonical(self, tool, /, **arguments):
        return self.ask(request("tools/call", tool=tool, input=arguments))

    def mcp(self, tool, /, **arguments):
        return self.ask(request("tools/call", name=tool, arguments=arguments))


def request(method, /, **params):
    return {"jsonrpc": "2.0", "id": "r", "method": method, "params": params}
