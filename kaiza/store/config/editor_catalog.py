"""Catalog for the editor dialect: the items of `tools/list`, a tool's description, and facts about the server.

An item's `id` and `name` are the name by which the tool is called.
"""

import platform
from collections.abc import Mapping
from typing import Any, NamedTuple

import kaiza
from kaiza.domain.run_event import SCHEMA_VERSION
from kaiza.domain.tool_card import ToolCard, ToolOffer
from kaiza.store.config.schema_registry import SchemaRegistry, offered_cards

JSONRPC_VERSION = "2.0"
_SHOWN_KEYS = ("description", "minimum", "maximum", "enum")


class EditorCatalog(NamedTuple):
    """The tools of one server, as the editor dialect shows them."""

    registry: SchemaRegistry
    offer: ToolOffer
    deterministic: bool = False

    def list_tools(self, category: str | None = None, tier: str | None = None) -> list[dict[str, Any]]:
        """Items of `tools/list`, sorted by id: every offered tool of this category and tier. None matches all."""
        cards = (
            card
            for card in offered_cards(self.registry, self.offer)
            if category in (None, card.category) and tier in (None, card.tier)
        )
        return [
            {
                **card.identity(),
                "title": card.title,
                "inputSchema": self.registry.load_tool_schemas(card.name).input,
                "outputSchema": self.registry.load_tool_schemas(card.name).output,
            }
            for card in sorted(cards)
        ]

    def describe_tool(self, tool: str) -> dict[str, Any] | None:
        """The `tool` member of `tools/describe`, by name or alias; None if there is no such tool.

        Tools of another role or tier are described: a call of one is refused, but not as unknown.
        """
        cards = map(ToolCard.from_row, self.registry.catalog())
        card = next((card for card in cards if tool in (card.name, *card.aliases)), None)
        if card is None or not self.offer.has_option(card):
            return None
        schemas = self.registry.load_tool_schemas(card.name)
        return {
            **card.identity(),
            "inputs": _describe_members(schemas.input),
            "outputs": _describe_members(schemas.output),
            "notes": _build_notes(card),
        }

    def describe_server(self) -> dict[str, Any]:
        """The result of `server/info`. `unityVersion` is required by the format; there is no Unity here."""
        return {
            "serverVersion": kaiza.__version__,
            "unityVersion": "none",
            "platform": platform.system().lower(),
            "pythonVersion": platform.python_version(),
            "enabledToolCategories": sorted({card.category for card in offered_cards(self.registry, self.offer)}),
            "tier": self.offer.tier,
            "schemaVersion": SCHEMA_VERSION,
            "jsonrpcVersion": JSONRPC_VERSION,
            "deterministic": self.deterministic,
        }


def _describe_members(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    described = {}
    for name, referring in schema["properties"].items():
        member = _inline_references(referring, schema.get("$defs", {}))
        kinds = member["type"]
        described[name] = {
            "type": kinds if isinstance(kinds, str) else " | ".join(kinds),
            "required": name in schema["required"],
            **{key: member[key] for key in (*_SHOWN_KEYS, "items") if key in member},
        }
    return described


def _inline_references(value: Any, definitions: Mapping[str, Any]) -> Any:
    """The schema with each `$ref` replaced by its definition, because the answer has no `$defs`."""
    if isinstance(value, list):
        return [_inline_references(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _inline_references(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {key: _inline_references(item, definitions) for key, item in value.items()}


def _build_notes(card: ToolCard) -> str:
    notes = [f"Also called {' and '.join(card.aliases)}."] if card.aliases else []
    if card.needs_session:
        notes.append("Needs a session: call begin_session first.")
    if card.only_with is not None:
        notes.append(f"Offered only with --{card.only_with.replace('_', '-')}.")
    return " ".join(notes)
