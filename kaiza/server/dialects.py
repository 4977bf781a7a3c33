"""Table of the dialects that every transport serves. Only MCP is loaded at once: most clients use no other."""

from functools import cache

from kaiza.server.pipeline import DialectTable
from kaiza.wire.dialect import Dialect, ServerDescription
from kaiza.wire.dialects.mcp import McpDialect


def load_dialects(description: ServerDescription, *, summary: bool = False, is_http: bool = False) -> DialectTable:
    """Return the dialects of one server. Over HTTP, clients ask for the list of tools each time they need it."""
    mcp = (
        McpDialect(description, summary=summary, list_ttl_ms=0) if is_http else McpDialect(description, summary=summary)
    )

    @cache
    def load_editor() -> Dialect:
        from kaiza.wire.dialects.editor import EditorDialect  # noqa: PLC0415  see the top

        return EditorDialect(description)

    @cache
    def load_canonical() -> Dialect:
        from kaiza.wire.dialects.canonical import CanonicalDialect  # noqa: PLC0415  see the top

        return CanonicalDialect()

    return {"mcp": lambda: mcp, "editor": load_editor, "canonical": load_canonical}
