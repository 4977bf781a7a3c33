"""Tool card: one tool's row in the catalog, with its description, roles and safety level."""

from collections.abc import Mapping
from typing import Any, NamedTuple

READ_ONLY = "read"
ADD_ONLY = "keep"
CHANGES_FILES = "change"
"""Safety levels: `read` alters nothing, `keep` adds files of Kaiza's own, `change` alters the user's files."""


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
    """Option of `kaiza serve` without which the tool is not offered."""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> "ToolCard":
        """Build the card from a row of `catalog.json`."""
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
    return ToolCard(name, name, "", "", "", READ_ONLY, (), needs_session=False, idempotent=True)
