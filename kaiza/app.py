"""The application: every tool wrapped in the boundary, over the workspaces that the operator named."""

import platform
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import kaiza
from kaiza import boundary
from kaiza.boundary import Call, DeterministicClock, Handler, Services, SystemClock
from kaiza.clock import current_timestamp
from kaiza.domain import error_codes, errors
from kaiza.domain.call import CallRequest, Outcome
from kaiza.domain.caps import Caps
from kaiza.domain.tool_card import ToolCard, ToolOffer, map_aliases
from kaiza.store.audit.determinism import lock_roots, require_mode
from kaiza.store.config.schema_registry import SchemaRegistry
from kaiza.store.human_decisions import record_withdrawals
from kaiza.store.workspace import Workspace
from kaiza.tools.registry import AGENT_TOOLS, Tool
from kaiza.wire.protocol_versions import PROTOCOL_VERSIONS

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
"""Caps that `server_info` returns; `kaiza caps` prints all of them."""
MAX_CHECKS = 20
"""Commands of one plan phase; the deadline of `run_checks` allows for all of them."""


class App:
    """Answers calls: stamps them, runs them through the boundary, refuses those that are late or name no tool."""

    def __init__(
        self,
        roots: Sequence[str],
        *,
        offer: ToolOffer | None = None,
        caps: Caps | None = None,
        tools: Mapping[str, Tool] = AGENT_TOOLS,
        registry: SchemaRegistry | None = None,
        deterministic: bool = False,
    ) -> None:
        self.caps = caps or Caps()
        self._is_closed = False
        self._tools = tools
        registry = registry or SchemaRegistry()
        offer = offer or ToolOffer()
        cards = list(map(ToolCard.from_row, registry.catalog()))
        self._tool_names = map_aliases(cards)
        for root in roots:
            require_mode(root, deterministic=deterministic)
        self._locks = lock_roots(roots) if deterministic else []
        workspaces = {root: Workspace(root, self.caps, deterministic=deterministic) for root in roots}
        self.services = Services(
            workspaces=MappingProxyType(workspaces),
            caps=self.caps,
            offer=offer,
            server_info=_describe_server(workspaces, cards, offer, self.caps),
            clock=DeterministicClock(workspaces.values()) if deterministic else SystemClock(),
            own_sessions=set(),
        )
        self._handlers: Mapping[str, Handler] = {
            card.name: boundary.wrap_handler(tools[card.name], card, registry.load_tool_io(card.name), self.services)
            for card in cards
            if offer.has_option(card)
        }

    @property
    def wrapped_tools(self) -> frozenset[str]:
        """Names of the tools whose calls go through the boundary, as `kaiza tools` shows them."""
        return frozenset(
            name for name, handler in self._handlers.items() if boundary.is_wrapped(handler, self._tools[name])
        )

    def stamp(self, call_request: CallRequest) -> Call:
        """Give a request its id, time and deadline, and replace an alias by the tool's own name."""
        name = self._tool_names.get(call_request.tool_name, call_request.tool_name)
        request = call_request._replace(tool_name=name)
        return boundary.stamp_call(request, self._timeout_seconds(name), self.services.clock)

    def answer(self, call: Call) -> Outcome | None:
        """Run the whole call and return its recorded outcome; None if `expire` has claimed it."""
        if call.call_request.fault is not None:
            return self._refuse(call, *call.call_request.fault)
        return self._handlers.get(call.call_request.tool_name, self._refuse_unknown_tool)(call)

    def expire(self, call: Call, cap: str = "timeout") -> Outcome | None:
        """Record a timeout as the outcome of a call; None if the call has been claimed already."""
        return boundary.refuse_call(
            call,
            self.services,
            errors.SystemError.tool_failure(
                "CAP_EXCEEDED",
                human_message="The call exceeded its time limit. Ask for less at a time.",
                cause={"cap": cap, "timeout_ms": self.caps.tool_timeout_ms},
            ),
        )

    def call(self, tool_name: str, arguments: object) -> Outcome | None:
        """Make a call from inside this process, without a transport."""
        return self.answer(self.stamp(CallRequest(tool_name, arguments)))

    def close(self) -> None:
        """Sync and close every workspace. Idempotent."""
        closed, self._is_closed = self._is_closed, True
        for workspace in () if closed else self.services.workspaces.values():
            _close_workspace(workspace)
        for lock in self._locks:
            lock.close()

    def _timeout_seconds(self, tool_name: str) -> float:
        """The time limit of a call; `run_checks` has one for each command."""
        if tool_name != "run_checks":
            return self.caps.tool_timeout_ms / 1000
        return MAX_CHECKS * max(workspace.settings.checks_seconds for workspace in self.services.workspaces.values())

    def _refuse_unknown_tool(self, call: Call) -> Outcome | None:
        """The handler of every other name: calls of unknown tools are recorded too."""
        return self._refuse(call, "TOOL_NOT_FOUND", "There is no such tool. Ask for tools/list and use a name from it.")

    def _refuse(
        self, call: Call, error_code: str, sentence: str, cause: Mapping[str, object] | None = None
    ) -> Outcome | None:
        error = errors.SystemError.tool_failure(error_code, human_message=sentence, cause=cause)
        return boundary.refuse_call(call, self.services, error)


def _describe_server(
    workspaces: Mapping[str, Workspace], cards: Sequence[ToolCard], offer: ToolOffer, caps: Caps
) -> Mapping[str, object]:
    """The answer of `server_info`; it does not change while the process lives."""
    first = next(iter(workspaces.values()), None)
    return MappingProxyType(
        {
            "server_version": kaiza.__version__,
            "contract_version": error_codes.CONTRACT_VERSION,
            "protocol_versions": list(reversed(PROTOCOL_VERSIONS)),
            "platform": platform.system().lower(),
            "tier": offer.tier,
            "categories": sorted({card.category for card in cards if offer.includes(card)}),
            "limits": {name: limit for name, limit in caps.as_json().items() if name in PUBLISHED_LIMITS},
            "resolver": first and first.files.resolver_name,
            "workspace_roots": list(workspaces),
        }
    )


def _close_workspace(workspace: Workspace) -> None:
    """Close a workspace; what was seen since the last call is recorded, if anything was."""
    try:
        if workspace.log.has_been_opened:
            record_withdrawals(workspace)
    except errors.SystemError as refused:
        # The log cannot be written, so no change was possible either. What was seen is in the state directory.
        workspace.notice = refused.human_message
    workspace.close(current_timestamp())
