"""Codex: `.codex/config.toml` of the workspace names the server and sets the sandbox for its own tools to reading."""

from kaiza.store.clients import toml_block
from kaiza.store.clients.client import NAME, Client, File, Server

_TABLE = ("mcp_servers", NAME)
_READ_ONLY = {"sandbox_mode": "read-only"}


def _put(text: str, server: Server) -> str:
    return toml_block.put(text, _READ_ONLY, _TABLE, server.as_json())


def _take(text: str, _before: str | None) -> str:
    return toml_block.without(text, _TABLE)


def _entry(text: str) -> Server | None:
    servers = toml_block.parsed(text).get(_TABLE[0])
    return Server.of(servers.get(NAME)) if isinstance(servers, dict) else None


def _remark(text: str) -> str | None:
    mode = toml_block.parsed(text).get("sandbox_mode")
    if mode == _READ_ONLY["sandbox_mode"]:
        return None
    return "sandbox_mode is yours and lets Codex write without Kaiza; set it to read-only"


CLIENT = Client(
    name="codex",
    title="Codex",
    files=(File("workspace", (".codex", "config.toml"), _put, _take, _entry, _remark),),
    traces=(("workspace", ".codex"), ("home", ".codex")),
    program="codex",
    variables=False,
    after="Codex reads the file only where it trusts the project: start codex there and trust it; /mcp lists it.",
)
