"""Configuration files of MCP clients: adding Kaiza to them, and removing it again."""

from kaiza.store.clients.registry import CLIENTS

__all__ = ["CLIENTS"]
