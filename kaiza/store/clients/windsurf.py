"""Windsurf: one file in the home directory for all projects, so that its entry serves one workspace at a time."""

from kaiza.store.clients.client import Client, json_server_file

CLIENT = Client(
    name="windsurf",
    title="Windsurf",
    files=(json_server_file("home", (".codeium", "windsurf", "mcp_config.json"), "mcpServers", {}),),
    detection_paths=(("workspace", ".windsurf"), ("home", ".codeium/windsurf")),
    program="windsurf",
    expands_variables=True,
    next_steps=(
        "Refresh the MCP servers in Windsurf. Cascade keeps its own tools, which no file switches off: "
        "what changes without Kaiza has no record. One entry serves one workspace; init in another replaces it."
    ),
)
