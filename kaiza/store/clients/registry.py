"""Table of the supported clients: the files that configure each, as its own documentation describes them."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kaiza.store.clients import json_edit, toml_block
from kaiza.store.clients.client import (
    SERVER_NAME,
    Client,
    ConfigFile,
    ServerEntry,
    json_list_file,
    json_server_file,
    parse_entry,
)

TOKEN_VARIABLE = "KAIZA_TOKEN"  # noqa: S105  the variable's name
"""Environment variable from which clients take the token for HTTP."""
# A client's own write tools would bypass the plan and the log: where a setting can deny them, it does.
_CLAUDE_CODE_WRITERS = ("Bash", "Edit", "Monitor", "MultiEdit", "NotebookEdit", "Write")
_CURSOR_WRITERS = ("Shell(**)", "Write(**)")
_GEMINI_WRITERS = ("replace", "run_shell_command", "write_file")

_CODEX_TABLE = ("mcp_servers", SERVER_NAME)
_CODEX_SANDBOX = {"sandbox_mode": "read-only"}

_GEMINI_PATH = (".gemini", "settings.json")
_GEMINI_SERVER = json_server_file("workspace", _GEMINI_PATH, "mcpServers", {})
_GEMINI_EXCLUDE = json_list_file(_GEMINI_PATH, ("tools", "exclude"), _GEMINI_WRITERS)


def _insert_codex(text: str, server: ServerEntry) -> str:
    return toml_block.set_table(text, _CODEX_SANDBOX, _CODEX_TABLE, server.as_json())


def _remove_codex(text: str, _before: str | None) -> str:
    return toml_block.remove_table(text, _CODEX_TABLE)


def _find_codex_entry(text: str) -> ServerEntry | None:
    servers = toml_block.parse(text).get(_CODEX_TABLE[0])
    return parse_entry(servers.get(SERVER_NAME)) if isinstance(servers, dict) else None


def _find_codex_remark(text: str) -> str | None:
    if toml_block.parse(text).get("sandbox_mode") == _CODEX_SANDBOX["sandbox_mode"]:
        return None
    return 'sandbox_mode was set before Kaiza and lets Codex write without it; set it to "read-only"'


def _insert_gemini(text: str, server: ServerEntry) -> str:
    return _GEMINI_EXCLUDE.insert(_GEMINI_SERVER.insert(text, server), server)


def _remove_gemini(text: str, before: str | None) -> str:
    return _GEMINI_EXCLUDE.remove(_GEMINI_SERVER.remove(text, before), before)


def _find_gemini_remark(text: str) -> str | None:
    core = json_edit.value_at(text, ("tools", "core"))
    return None if core is None else "tools.core is set and may hide Kaiza's tools from Gemini"


def _with_bearer(url_member: str, variable: str, **others: str) -> Callable[[str], Mapping[str, Any]]:
    """Entries with an Authorization header that expands an environment variable, as the client spells one."""
    headers = {"Authorization": f"Bearer {variable}"}
    return lambda url: {**others, url_member: url, "headers": headers}


_ALL_CLIENTS = (
    Client(
        name="claude-code",
        title="Claude Code",
        files=(
            json_server_file("workspace", (".mcp.json",), "mcpServers", {"type": "stdio"}),
            json_list_file((".claude", "settings.json"), ("permissions", "deny"), _CLAUDE_CODE_WRITERS),
        ),
        detection_paths=(
            ("workspace", ".claude"),
            ("workspace", ".mcp.json"),
            ("home", ".claude"),
            ("home", ".claude.json"),
        ),
        program="claude",
        expands_variables=True,
        next_steps=(
            "Start claude in the workspace and allow the server when asked. Its own write tools are denied; "
            "its own read tools still work and are not recorded."
        ),
        http_members=_with_bearer("url", f"${{{TOKEN_VARIABLE}}}", type="http"),
    ),
    Client(
        name="cursor",
        title="Cursor",
        files=(
            json_server_file("workspace", (".cursor", "mcp.json"), "mcpServers", {"type": "stdio"}),
            json_list_file((".cursor", "cli.json"), ("permissions", "deny"), _CURSOR_WRITERS),
        ),
        detection_paths=(("workspace", ".cursor"), ("home", ".cursor")),
        program="cursor",
        expands_variables=True,
        next_steps=(
            "Enable the server in Cursor's MCP settings. The command line agent is denied writing; the editor's agent "
            "keeps its own tools, which no file can disable: changes it makes with them are not recorded."
        ),
        http_members=_with_bearer("url", f"${{env:{TOKEN_VARIABLE}}}"),
    ),
    Client(
        name="vscode",
        title="VS Code",
        files=(json_server_file("workspace", (".vscode", "mcp.json"), "servers", {"type": "stdio"}),),
        detection_paths=(("workspace", ".vscode"), ("home", ".vscode"), ("home", ".config/Code")),
        program="code",
        expands_variables=True,
        next_steps=(
            "Open .vscode/mcp.json in VS Code and start the server there. In the chat's tools menu enable only Kaiza's "
            "tools: no file can disable the others, and changes made with them are not recorded."
        ),
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        # Windsurf has one file for all projects, so its entry serves one workspace at a time.
        files=(json_server_file("home", (".codeium", "windsurf", "mcp_config.json"), "mcpServers", {}),),
        detection_paths=(("workspace", ".windsurf"), ("home", ".codeium/windsurf")),
        program="windsurf",
        expands_variables=True,
        next_steps=(
            "Refresh the MCP servers in Windsurf. Cascade keeps its own tools, which no file can disable: "
            "changes made with them are not recorded. One entry serves one workspace; init in another replaces it."
        ),
    ),
    Client(
        name="codex",
        title="Codex",
        files=(
            ConfigFile(
                "workspace",
                (".codex", "config.toml"),
                _insert_codex,
                _remove_codex,
                _find_codex_entry,
                _find_codex_remark,
            ),
        ),
        detection_paths=(("workspace", ".codex"), ("home", ".codex")),
        program="codex",
        expands_variables=False,
        next_steps=(
            "Codex reads this file only in a project that it trusts: start codex there and trust it; /mcp lists Kaiza."
        ),
        http_members=lambda url: {"url": url, "bearer_token_env_var": TOKEN_VARIABLE},
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        # The server and the excluded tools are in one file: two edits, one ConfigFile.
        files=(replace(_GEMINI_SERVER, insert=_insert_gemini, remove=_remove_gemini, find_remark=_find_gemini_remark),),
        detection_paths=(("workspace", ".gemini"), ("home", ".gemini")),
        program="gemini",
        expands_variables=True,
        next_steps="Start gemini in the workspace; /mcp lists the server. Its own write tools are excluded.",
        http_members=_with_bearer("httpUrl", f"${{{TOKEN_VARIABLE}}}"),
    ),
)

CLIENTS: Mapping[str, Client] = MappingProxyType({client.name: client for client in _ALL_CLIENTS})
