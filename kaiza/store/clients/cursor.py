"""Cursor: `.cursor/mcp.json` names the server, `.cursor/cli.json` denies writing to the command line agent."""

from kaiza.store.clients.client import Client, json_list_file, json_server_file

WRITERS = ("Shell(**)", "Write(**)")

CLIENT = Client(
    name="cursor",
    title="Cursor",
    files=(
        json_server_file("workspace", (".cursor", "mcp.json"), "mcpServers", {"type": "stdio"}),
        json_list_file((".cursor", "cli.json"), ("permissions", "deny"), WRITERS),
    ),
    detection_paths=(("workspace", ".cursor"), ("home", ".cursor")),
    program="cursor",
    expands_variables=True,
    next_steps=(
        "Switch the server on in Cursor's MCP settings. The command line agent is denied writing; the editor's agent "
        "keeps its own tools, which no file switches off: what changes without Kaiza has no record."
    ),
)
