"""The clients that `kaiza init` configures, one file each: formats as the clients document them."""

from collections.abc import Mapping
from types import MappingProxyType

from kaiza.store.clients import claude_code, codex, cursor, gemini, vscode, windsurf
from kaiza.store.clients.client import Client

CLIENTS: Mapping[str, Client] = MappingProxyType(
    {module.CLIENT.name: module.CLIENT for module in (claude_code, cursor, vscode, windsurf, codex, gemini)}
)
