"""The revisions of MCP that Kaiza speaks, oldest first."""

from typing import Final

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Revisions with an `initialize` handshake. A client that asks for another one is offered the newest of these."""

MODERN_VERSIONS: Final = ("2026-07-28",)
"""Revisions without a handshake: every request names its revision in `_meta`."""

PROTOCOL_VERSIONS: Final = (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS)
