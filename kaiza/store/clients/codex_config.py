"""Codex's file, in TOML: Kaiza's server, and a sandbox in which Codex itself cannot write."""

from kaiza.store.clients import toml_block
from kaiza.store.clients.client import SERVER_NAME, ConfigFile, ServerEntry, TextEdit, parse_entry

_TABLE = ("mcp_servers", SERVER_NAME)
_SANDBOX = {"sandbox_mode": "read-only"}
# Codex would ask before each change, and `codex exec`, which cannot ask, would refuse it: the plan is the approval.
_APPROVAL = {"default_tools_approval_mode": "approve"}


def _insert(text: str, server: ServerEntry) -> str:
    return toml_block.set_table(text, _SANDBOX, _TABLE, server.as_json() | _APPROVAL)


def _remove(text: str, _before: str | None) -> str:
    return toml_block.remove_table(text, _TABLE)


def _find_entry(text: str) -> ServerEntry | None:
    servers = toml_block.parse(text).get(_TABLE[0])
    return parse_entry(servers.get(SERVER_NAME)) if isinstance(servers, dict) else None


def _has_writers(text: str) -> bool:
    return bool(toml_block.parse(text).get("sandbox_mode") != _SANDBOX["sandbox_mode"])


def _find_remark(text: str) -> str | None:
    if not _has_writers(text):
        return None
    return 'sandbox_mode was set before Kaiza and lets Codex write without it; set it to "read-only"'


CODEX_FILE = ConfigFile(
    "workspace",
    (".codex", "config.toml"),
    (TextEdit(_insert, _remove, _has_writers),),
    _find_entry,
    find_remark=_find_remark,
)
