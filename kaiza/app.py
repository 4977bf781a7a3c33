"""Puts the parts together; the only place that knows them all."""

import platform
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

import kaiza
from kaiza import boundary
from kaiza.boundary import Call, Handler, Services
from kaiza.domain import errors
from kaiza.domain.call import CallRequest, Outcome
from kaiza.domain.caps import Caps
from kaiza.domain.tool_card import ToolCard
from kaiza.store.config import schema_registry
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.store.workspace import Workspace
from kaiza.tools.registry import AGENT_TOOLS, Tool

PUBLISHED_LIMITS = frozenset(
    {
        "request_bytes",
        "response_bytes",
        "page_items",
        "total_hits",
        "query_characters",
        "patch_bytes",
        "tool_timeout_ms",
        "session_idle_hours",
    }
)
"""What `server_info` tells of the caps; `kaiza caps` tells them all."""
MAX_CHECKS = 20
PROTOCOL_VERSIONS = ("2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")


class App:
    """Every tool in its boundary, over the workspaces the operator named."""

    def __init__(
        self,
        roots: Sequence[str],
        *,
        bound_role: str | None = None,
        allowed: Collection[str] = (),
        caps: Caps | None = None,
        tools: Mapping[str, Tool] = AGENT_TOOLS,
        registry: SchemaRegistry | None = None,
    ) -> None:
        self.caps = caps or Caps()
        self._is_closed = False
        self._tools = tools
        registry = registry or SchemaRegistry()
        cards = list(schema_registry.visible_cards(registry, allowed=allowed))
        grounds = {root: Workspace(root, self.caps) for root in roots}
        self.services = Services(
            workspaces=MappingProxyType(grounds),
            caps=self.caps,
            bound_role=bound_role,
            server_info=_describe_server(grounds, cards, self.caps),
            own_sessions=set(),
        )
        self._handlers: Mapping[str, Handler] = {
            card.name: boundary.wrap_handler(tools[card.name], card, registry.load_tool_io(card.name), self.services)
            for card in cards
        }

    @property
    def wrapped_tools(self) -> frozenset[str]:
        """The tools whose calls go through the boundary."""
        tools = self._tools
        return frozenset(name for name, one in self._handlers.items() if boundary.is_wrapped(one, tools[name]))

    def stamp(self, ask: CallRequest) -> Call:
        """Give a call its id, its time and its deadline."""
        return boundary.stamp_call(ask, self._timeout_seconds(ask.tool_name))

    def answer(self, call: Call) -> Outcome | None:
        """The whole call, from its arguments to its record; None if the clock took it meanwhile."""
        return self._handlers.get(call.call_request.tool_name, self._refuse_unknown_tool)(call)

    def expire(self, call: Call, cap: str = "timeout") -> Outcome | None:
        """Take a call whose time is up, record it and answer in its place; None where it cannot be taken any more."""
        return boundary.refuse_call(
            call,
            self.services,
            errors.SystemError.tool_failure(
                "CAP_EXCEEDED",
                human_message="The call took longer than it may. Ask for less at a time.",
                cause={"cap": cap, "timeout_ms": self.caps.tool_timeout_ms},
            ),
        )

    def call(self, tool_name: str, arguments: object) -> Outcome | None:
        """Make a call from inside this process."""
        return self.answer(self.stamp(CallRequest(tool_name, arguments)))

    def close(self) -> None:
        """Leave everything written and synced; once is enough."""
        closed, self._is_closed = self._is_closed, True
        for ground in () if closed else self.services.workspaces.values():
            ground.close(boundary.current_timestamp())

    def _timeout_seconds(self, tool_name: str) -> float:
        """How many seconds a call may take; checks have a limit of their own for each command."""
        if tool_name != "run_checks":
            return self.caps.tool_timeout_ms / 1000
        return MAX_CHECKS * max(ground.settings.checks_seconds for ground in self.services.workspaces.values())

    def _refuse_unknown_tool(self, call: Call) -> Outcome | None:
        """The stand-in that always refuses, so that asking is recorded too."""
        return boundary.refuse_call(
            call,
            self.services,
            errors.SystemError.tool_failure(
                "TOOL_NOT_FOUND",
                human_message="There is no such tool. Ask for tools/list and use a name from it.",
            ),
        )


def _describe_server(grounds: Mapping[str, Workspace], cards: Sequence[ToolCard], caps: Caps) -> Mapping[str, object]:
    """What `server_info` tells; the same for as long as the process lives."""
    first = next(iter(grounds.values()), None)
    return MappingProxyType(
        {
            "server_version": kaiza.__version__,
            "protocol_versions": list(PROTOCOL_VERSIONS),
            "platform": platform.system().lower(),
            "tier": "core",
            "categories": sorted({card.category for card in cards}),
            "limits": {name: limit for name, limit in caps.as_json().items() if name in PUBLISHED_LIMITS},
            "resolver": first and first.files.resolver_name,
            "workspace_roots": list(grounds),
        }
    )
