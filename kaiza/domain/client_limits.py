"""How much of an answer the known clients hand to a model; they cut what is longer.

Measured with the clients themselves. Where a client counts characters, the bytes of UTF-8 are never fewer.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

_MOST_BYTES: Final[Mapping[str, int]] = MappingProxyType(
    {
        "claude-code": 50_000,
        "codex-mcp-client": 47_900,
        "gemini-cli-mcp-client": 39_959,
    }
)
"""By the name that the client reports."""


def limit_for_client(answer_bytes: int, client: str | None) -> int:
    """The size of an answer for a client, given as its name and version. What is known of it only lowers the size."""
    name = (client or "").partition(" ")[0]
    return min(answer_bytes, _MOST_BYTES.get(name, answer_bytes))
