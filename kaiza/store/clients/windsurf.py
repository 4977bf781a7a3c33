"""Windsurf: one file in the home directory for all projects, so that its entry serves one workspace at a time."""

from kaiza.store.clients.client import Client, json_server

CLIENT = Client(
    name="windsurf",
    title="Windsurf",
    files=(json_server("home", (".codeium", "windsurf", "mcp_config.json"), "mcpServers", {}),),
    traces=(("workspace", ".windsurf"), ("home", ".codeium/windsurf")),
    program="windsurf",
    variables=True,
    after=(
        "Refresh the MCP servers in Windsurf. Cascade keeps its own tools, which no file switches off: "
        "what changes without Kaiza has no record. One entry serves one workspace; init in another replaces it."
    ),
)
