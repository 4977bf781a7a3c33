"""What the catalog says of a tool: who may call it, and what kind of thing it does."""

from collections.abc import Mapping
from typing import Any, NamedTuple

READ_ONLY = "read"
ADD_ONLY = "keep"
CHANGES_FILES = "change"
"""Safety levels: `read` alters nothing, `keep` adds something of Kaiza's own, `change` alters the user's files."""


class ToolCard(NamedTuple):
    """One row of the catalog."""

    name: str
    title: str
    description: str
    category: str
    tier: str
    safety_level: str
    roles: tuple[str, ...]
    needs_session: bool
    idempotent: bool
    only_with: str | None = None
    """What the operator must have allowed for the tool to be offered."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "ToolCard":
        """The card a row of `catalog.json` describes."""
        return cls(
            name=row["id"],
            title=row["title"],
            description=row["description"],
            category=row["category"],
            tier=row["tier"],
            safety_level=row["safety_level"],
            roles=tuple(row["roles"]),
            needs_session=row["needs_session"],
            idempotent=row["idempotent"],
            only_with=row.get("only_with"),
        )

    def annotations(self) -> dict[str, bool]:
        """All four hints of MCP, set explicitly, because their defaults assume the worst or the opposite."""
        return {
            "readOnlyHint": self.safety_level == READ_ONLY,
            "destructiveHint": self.safety_level == CHANGES_FILES,
            "idempotentHint": self.idempotent,
            "openWorldHint": False,
        }


def for_unknown_tool(name: str) -> ToolCard:
    """The card of a tool that is not there: nobody may call it, but asking is still recorded."""
    return ToolCard(name, name, "", "", "", READ_ONLY, (), needs_session=False, idempotent=True)
