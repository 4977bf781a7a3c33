"""Tool card: one tool's row in the catalog, with its description, roles and safety level."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

READ_ONLY = "read"
ADD_ONLY = "keep"
CHANGES_FILES = "change"
"""Safety levels: `read` alters nothing, `keep` adds files of Kaiza's own, `change` alters the user's files."""
CORE = "core"
GOVERNED = "governed"
"""Tiers: a `core` server offers the tools that read, a `governed` one all of them."""


_SAFETY_LEVELS = {READ_ONLY: "read-only", ADD_ONLY: "safe-write", CHANGES_FILES: "destructive"}
_LONG_CATEGORIES = frozenset({"files", "search", "plans", "audit"})


class ToolCard(NamedTuple):
    """One row of the catalog."""

    name: str
    title: str
    description: str
    category: str
    safety_level: str
    roles: tuple[str, ...]
    needs_session: bool
    idempotent: bool
    only_with: str | None = None
    """Option of `kaiza serve` without which the tool is not offered."""
    listed: bool = True
    """Whether MCP's `tools/list` shows it. Other dialects list every tool, and each can be called."""
    aliases: tuple[str, ...] = ()
    """Other names by which clients may call it."""

    @property
    def checks_own_arguments(self) -> bool:
        """Whether the tool takes any arguments and refuses them itself: context tools have codes of their own."""
        return self.category == "context"

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "ToolCard":
        """Build the card from a row of `catalog.json`."""
        return cls(
            name=row["id"],
            title=row["title"],
            description=row["description"],
            category=row["category"],
            safety_level=row["safety_level"],
            roles=tuple(row["roles"]),
            needs_session=row["needs_session"],
            idempotent=row["idempotent"],
            only_with=row.get("only_with"),
            listed=row.get("listed", True),
            aliases=tuple(row.get("aliases", ())),
        )

    @property
    def may_answer_at_length(self) -> bool:
        """Whether it reads what can be long, so that a caller may ask for much of it."""
        return self.safety_level == READ_ONLY and self.category in _LONG_CATEGORIES

    @property
    def tier(self) -> str:
        """The lowest tier that offers the tool."""
        return CORE if self.safety_level == READ_ONLY else GOVERNED

    def identity(self) -> dict[str, str]:
        """Members by which lists of tools in every dialect identify the tool."""
        return {
            "id": self.name,
            "name": self.name,
            "description": self.description,
            "category": self.category,
            "safetyLevel": _SAFETY_LEVELS[self.safety_level],
            "tier": self.tier,
        }

    def annotations(self) -> dict[str, bool]:
        """MCP annotations of the tool."""
        # All four are set: where a hint is missing, clients assume destructive, not idempotent and open-world.
        return {
            "readOnlyHint": self.safety_level == READ_ONLY,
            "destructiveHint": self.safety_level == CHANGES_FILES,
            "idempotentHint": self.idempotent,
            "openWorldHint": False,
        }


def for_unknown_tool(name: str) -> ToolCard:
    """Card of a tool that does not exist. No role may call it, but the attempt is recorded."""
    return ToolCard(name, name, "", "", READ_ONLY, (), needs_session=False, idempotent=True)


class ToolOffer(NamedTuple):
    """Which tools one server offers, by the options it was started with."""

    bound_role: str | None = None
    allowed: Collection[str] = ()
    """Options for optional tools, as in `only_with`."""
    tier: str = GOVERNED

    def has_tier(self, card: ToolCard) -> bool:
        """Whether the server's tier offers a tool."""
        return self.tier == GOVERNED or card.tier == CORE

    def has_option(self, card: ToolCard) -> bool:
        """Whether the tool is not optional, or its option was given."""
        return card.only_with in (None, *self.allowed)

    def includes(self, card: ToolCard) -> bool:
        """Whether lists show a tool."""
        has_role = self.bound_role is None or self.bound_role in card.roles
        return has_role and self.has_tier(card) and self.has_option(card)


def map_aliases(cards: Iterable[ToolCard]) -> dict[str, str]:
    """Name of the tool by alias."""
    return {alias: card.name for card in cards for alias in card.aliases}
