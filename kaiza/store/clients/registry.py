"""Table of the supported clients: the files that configure each, as the programs or their documentation have them."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from kaiza.domain.server_url import TOKEN_VARIABLE
from kaiza.store.clients import toml_block
from kaiza.store.clients.client import (
    SERVER_NAME,
    Client,
    ConfigFile,
    ServerCommand,
    ServerEntry,
    TextEdit,
    parse_entry,
)
from kaiza.store.clients.gemini_config import GEMINI_FILE
from kaiza.store.clients.json_file import ServerGroup, denial_edit, offer_edit, plain_group, server_file, setting_edit

_CODEX_TABLE = ("mcp_servers", SERVER_NAME)
_CODEX_SANDBOX = {"sandbox_mode": "read-only"}
# Codex would ask before each change, and `codex exec`, which cannot ask, would refuse it: the plan is the approval.
_CODEX_APPROVAL = {"default_tools_approval_mode": "approve"}


def _insert_codex(text: str, server: ServerEntry) -> str:
    return toml_block.set_table(text, _CODEX_SANDBOX, _CODEX_TABLE, server.as_json() | _CODEX_APPROVAL)


def _remove_codex(text: str, _before: str | None) -> str:
    return toml_block.remove_table(text, _CODEX_TABLE)


def _find_codex_entry(text: str) -> ServerEntry | None:
    servers = toml_block.parse(text).get(_CODEX_TABLE[0])
    return parse_entry(servers.get(SERVER_NAME)) if isinstance(servers, dict) else None


def _codex_writes(text: str) -> bool:
    return bool(toml_block.parse(text).get("sandbox_mode") != _CODEX_SANDBOX["sandbox_mode"])


def _find_codex_remark(text: str) -> str | None:
    if not _codex_writes(text):
        return None
    return 'sandbox_mode was set before Kaiza and lets Codex write without it; set it to "read-only"'


_CODEX_FILE = ConfigFile(
    "workspace",
    (".codex", "config.toml"),
    (TextEdit(_insert_codex, _remove_codex, _codex_writes),),
    _find_codex_entry,
    find_remark=_find_codex_remark,
)

ALIASES: Mapping[str, str] = MappingProxyType({"claude": "claude-code"})
"""Other names of clients."""
# A client's own write tools would bypass the plan and the log: where a setting can deny them, it does.
_CLAUDE_DENIALS = denial_edit(
    ("permissions", "deny"),
    (
        "Bash",
        "CronCreate",
        "CronDelete",
        "Edit",
        "EnterWorktree",
        "ExitWorktree",
        "Monitor",
        "NotebookEdit",
        "Write",
    ),
)
_CURSOR_WRITERS = ("Shell(**)", "Write(**)")


def _with_bearer(url_member: str, variable: str, **others: str) -> Callable[[str], Mapping[str, Any]]:
    """Entries with an Authorization header that expands an environment variable, as the client spells one."""
    headers = {"Authorization": f"Bearer {variable}"}
    return lambda url: {**others, url_member: url, "headers": headers}


def _encode_for_opencode(server: ServerCommand) -> Mapping[str, Any]:
    environment = {"environment": dict(server.env)} if server.env else {}
    return {"type": "local", "command": [server.command, *server.args], **environment}


_ALL_CLIENTS = (
    Client(
        name="claude-code",
        title="Claude Code",
        files=(
            server_file("workspace", (".mcp.json",), plain_group("mcpServers", type="stdio")),
            ConfigFile(
                "workspace",
                (".claude", "settings.json"),
                (offer_edit(("permissions", "allow"), (f"mcp__{SERVER_NAME}",), _CLAUDE_DENIALS), _CLAUDE_DENIALS),
            ),
        ),
        detection_paths=(
            ("workspace", ".claude"),
            ("workspace", ".mcp.json"),
            ("home", ".claude"),
            ("home", ".claude.json"),
        ),
        program="claude",
        variable_signs=("$",),
        next_steps=(
            "Start claude in the workspace and allow the server when asked: Claude Code ignores it until then. It no "
            "longer asks before Kaiza's tools, because the plan decides. Its own write tools are denied; its own read "
            "tools still work and are not recorded. What remains: its Agent tool can make a git worktree and a branch."
        ),
        http_members=_with_bearer("url", f"${{{TOKEN_VARIABLE}}}", type="http"),
        is_tried=True,
    ),
    Client(
        name="cursor",
        title="Cursor",
        files=(
            server_file("workspace", (".cursor", "mcp.json"), plain_group("mcpServers", type="stdio")),
            ConfigFile("workspace", (".cursor", "cli.json"), (denial_edit(("permissions", "deny"), _CURSOR_WRITERS),)),
        ),
        detection_paths=(("workspace", ".cursor"), ("home", ".cursor")),
        program="cursor",
        variable_signs=("$",),
        next_steps=(
            "Enable the server in Cursor's MCP settings. The command line agent is denied writing; the editor's agent "
            "keeps its own tools, which no file can disable: changes it makes with them are not recorded."
        ),
        http_members=_with_bearer("url", f"${{env:{TOKEN_VARIABLE}}}"),
        own_tools="the agent in the editor keeps its own tools",
    ),
    Client(
        name="vscode",
        title="VS Code",
        files=(server_file("workspace", (".vscode", "mcp.json"), plain_group("servers", type="stdio")),),
        detection_paths=(("workspace", ".vscode"), ("home", ".vscode"), ("home", ".config/Code")),
        program="code",
        variable_signs=("$",),
        next_steps=(
            "Open .vscode/mcp.json in VS Code and start the server there. In the chat's tools menu enable only Kaiza's "
            "tools: no file can disable the others, and changes made with them are not recorded."
        ),
        own_tools="the agent keeps its own tools, unless you disable them in the chat's tools menu",
    ),
    Client(
        name="windsurf",
        title="Windsurf",
        # Windsurf has one file for all projects, so its entry serves one workspace at a time.
        files=(server_file("home", (".codeium", "windsurf", "mcp_config.json"), plain_group("mcpServers")),),
        detection_paths=(("workspace", ".windsurf"), ("home", ".codeium/windsurf")),
        program="windsurf",
        variable_signs=("$",),
        next_steps=(
            "Refresh the MCP servers in Windsurf. Cascade keeps its own tools, which no file can disable: "
            "changes made with them are not recorded. One entry serves one workspace; init in another replaces it."
        ),
        own_tools="Cascade keeps its own tools",
    ),
    Client(
        name="codex",
        title="Codex",
        files=(_CODEX_FILE,),
        detection_paths=(("workspace", ".codex"), ("home", ".codex")),
        program="codex",
        variable_signs=(),
        next_steps=(
            "Codex ignores this file until it trusts the project: start codex there and trust it; /mcp lists Kaiza. "
            "Codex's own tools cannot write, and it no longer asks before Kaiza's tools, because the plan decides."
        ),
        http_members=lambda url: {"url": url, "bearer_token_env_var": TOKEN_VARIABLE},
        is_tried=True,
    ),
    Client(
        name="gemini",
        title="Gemini CLI",
        files=(GEMINI_FILE,),
        detection_paths=(("workspace", ".gemini"), ("home", ".gemini")),
        program="gemini",
        variable_signs=("$",),
        next_steps=(
            "Start gemini in the workspace and trust the folder: Gemini ignores the file until then; /mcp lists the "
            "server. In this workspace Gemini uses only the tools that tools.core names: its own reading tools, and "
            "Kaiza's. It does not ask before these, because the plan decides."
        ),
        http_members=_with_bearer("httpUrl", f"${{{TOKEN_VARIABLE}}}"),
        is_tried=True,
    ),
    Client(
        name="opencode",
        title="opencode",
        files=(
            server_file(
                "workspace",
                ("opencode.json",),
                ServerGroup("mcp", _encode_for_opencode),
                setting_edit(("permission", "bash"), "deny"),
                setting_edit(("permission", "edit"), "deny"),
            ),
        ),
        detection_paths=(
            ("workspace", "opencode.json"),
            ("workspace", "opencode.jsonc"),
            ("workspace", ".opencode"),
            ("home", ".config/opencode"),
        ),
        program="opencode",
        variable_signs=("{env:", "{file:"),
        next_steps=(
            "Start opencode in the workspace: it uses the file without asking. Its own write tools are denied; an "
            "agent of yours with permissions of its own can allow them again."
        ),
        http_members=_with_bearer("url", f"{{env:{TOKEN_VARIABLE}}}", type="remote"),
        is_tried=True,
    ),
    Client(
        name="copilot",
        title="Copilot CLI",
        files=(
            server_file(
                "workspace",
                (".github", "mcp.json"),
                ServerGroup("mcpServers", lambda server: {"type": "local", **server.as_json(), "tools": ["*"]}),
            ),
        ),
        detection_paths=(("home", ".copilot"),),
        program="copilot",
        variable_signs=("$",),
        next_steps=(
            "Start `copilot --deny-tool=write --deny-tool=shell --allow-tool=kaiza` in the workspace and trust the "
            "folder: Copilot ignores the file until then. No file can take its own tools away: changes made with them "
            "are not recorded."
        ),
        own_tools="Copilot keeps its own tools, unless it is started with --deny-tool=write --deny-tool=shell",
    ),
)

CLIENTS: Mapping[str, Client] = MappingProxyType({client.name: client for client in _ALL_CLIENTS})
