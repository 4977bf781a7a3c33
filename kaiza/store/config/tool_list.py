"""What `tools/list` shows: the catalog and the schema files, exactly as they are."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from kaiza.domain.tool_card import ToolCard
from kaiza.store.config.schema_registry import SchemaRegistry


def visible_cards(
    registry: SchemaRegistry, bound_role: str | None = None, allowed: Collection[str] = ()
) -> Iterator[ToolCard]:
    """The tools in the catalog's order; of a bound server those its role may call, and what the operator allowed."""
    for row in registry.catalog():
        card = ToolCard.from_row(row)
        if (bound_role is None or bound_role in card.roles) and card.only_with in (None, *allowed):
            yield card


def list_items(
    registry: SchemaRegistry, bound_role: str | None = None, allowed: Collection[str] = ()
) -> list[Mapping[str, Any]]:
    """The items of `tools/list`."""
    return [_tool_item(card, registry) for card in visible_cards(registry, bound_role, allowed)]


def _tool_item(card: ToolCard, registry: SchemaRegistry) -> Mapping[str, Any]:
    return {
        "name": card.name,
        "title": card.title,
        "description": card.description,
        "inputSchema": registry.read_document(f"{card.name}.json"),
        "outputSchema": registry.read_document(f"{card.name}.output.json"),
        "annotations": card.annotations(),
    }
