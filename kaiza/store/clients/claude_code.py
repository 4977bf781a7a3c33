"""Claude Code: `.mcp.json` names the server, `.claude/settings.json` denies the tools that write without Kaiza."""

from kaiza.store.clients.client import Client, json_list, json_server

WRITERS = ("Bash", "Edit", "Monitor", "MultiEdit", "NotebookEdit", "Write")

CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    files=(
        json_server("workspace", (".mcp.json",), "mcpServers", {"type": "stdio"}),
        json_list((".claude", "settings.json"), ("permissions", "deny"), WRITERS),
    ),
    traces=(("workspace", ".claude"), ("workspace", ".mcp.json"), ("home", ".claude"), ("home", ".claude.json")),
    program="claude",
    variables=True,
    after=(
        "Start claude in the workspace and allow the server when it asks. Its own tools that write are denied; "
        "its own tools that read are not, and leave no record."
    ),
)
