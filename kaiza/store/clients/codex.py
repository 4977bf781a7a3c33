"""Codex: `.codex/config.toml` of the workspace names the server and sets the sandbox for its own tools to reading."""

from kaiza.store.clients import toml_block
from kaiza.store.clients.client import SERVER_NAME, Client, ConfigFile, ServerCommand

_TABLE = ("mcp_servers", SERVER_NAME)
_READ_ONLY = {"sandbox_mode": "read-only"}


def _insert_server(text: str, server: ServerCommand) -> str:
    return toml_block.set_table(text, _READ_ONLY, _TABLE, server.as_json())


def _remove_server(text: str, _before: str | None) -> str:
    return toml_block.remove_table(text, _TABLE)


def _find_entry(text: str) -> ServerCommand | None:
    servers = toml_block.parse(text).get(_TABLE[0])
    return ServerCommand.from_entry(servers.get(SERVER_NAME)) if isinstance(servers, dict) else None


def _find_remark(text: str) -> str | None:
    mode = toml_block.parse(text).get("sandbox_mode")
    if mode == _READ_ONLY["sandbox_mode"]:
        return None
    return "sandbox_mode is yours and lets Codex write without Kaiza; set it to read-only"


CLIENT = Client(
    name="codex",
    title="Codex",
    files=(
        ConfigFile("workspace", (".codex", "config.toml"), _insert_server, _remove_server, _find_entry, _find_remark),
    ),
    detection_paths=(("workspace", ".codex"), ("home", ".codex")),
    program="codex",
    expands_variables=False,
    next_steps="Codex reads the file only where it trusts the project: start codex there and trust it; /mcp lists it.",
)
