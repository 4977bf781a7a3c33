"""Gemini CLI's file: Kaiza's server, and a list of the tools that Gemini may use.

A list of what is allowed, because Gemini hides a server's tool with the bare name of any tool that is denied, and
Kaiza has a `write_file` of its own (ADR 1001).
"""

from typing import Any

from kaiza.store.clients import json_edit
from kaiza.store.clients.client import SERVER_NAME, TextEdit
from kaiza.store.clients.json_file import list_edit, plain_group, server_file

_CORE = ("tools", "core")
_KAIZA_TOOLS = f"mcp_{SERVER_NAME}_*"
# The own tools that Gemini uses without asking, and that change no file of the workspace.
_READERS = (
    "complete_task",
    "glob",
    "google_web_search",
    "grep_search",
    "invoke_agent",
    "list_directory",
    "list_mcp_resources",
    "read_file",
    "read_mcp_resource",
    "update_topic",
    "write_todos",
)
_WRITERS = frozenset({"edit", "EditTool", "replace", "run_shell_command", "ShellTool", "write_file", "WriteFileTool"})


def _core_of(text: str) -> list[str] | None:
    value = json_edit.value_at(text, _CORE)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else None


def _find_writers(text: str) -> list[str]:
    return [item for item in _core_of(text) or () if item.partition("(")[0] in _WRITERS]


def _leaves_writers(text: str) -> bool:
    return _core_of(text) is None or bool(_find_writers(text))


def _find_remark(text: str) -> str | None:
    writers = _find_writers(text)
    if writers:
        return f"tools.core lets Gemini write without Kaiza: {', '.join(writers)}. Take that out"
    core = _core_of(text) or ()
    if core and _KAIZA_TOOLS not in core:
        return f'tools.core hides Kaiza\'s tools from Gemini; add "{_KAIZA_TOOLS}"'
    hidden = _hidden_servers(json_edit.value_at(text, ("mcpServers",)), core)
    if core and hidden:
        names = ", ".join(f'"mcp_{name}_*"' for name in hidden)
        return f"tools.core hides the tools of other servers; to use them, add {names}"
    return None


def _hidden_servers(servers: Any, core: list[str] | tuple[()]) -> list[str]:
    if not isinstance(servers, dict) or "mcp_*" in core:
        return []
    return [name for name in servers if not any(item.startswith(f"mcp_{name}_") for item in core)]


_core_list = list_edit(_CORE, (*_READERS, _KAIZA_TOOLS))
GEMINI_FILE = server_file(
    "workspace",
    (".gemini", "settings.json"),
    plain_group("mcpServers"),
    TextEdit(_core_list.insert, _core_list.remove, _leaves_writers),
    find_remark=_find_remark,
)
