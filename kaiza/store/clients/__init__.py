"""Configuration files of MCP clients: adding Kaiza to them, and removing it again."""

__all__ = ["changes", "client", "install_manifest", "registry", "server_command"]
