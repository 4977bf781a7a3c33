"""Claude Code: `.mcp.json` names the server, `.claude/settings.json` denies the tools that write without Kaiza."""

from kaiza.store.clients.client import Client, json_list_file, json_server_file

WRITERS = ("Bash", "Edit", "Monitor", "MultiEdit", "NotebookEdit", "Write")

CLIENT = Client(
    name="claude-code",
    title="Claude Code",
    files=(
        json_server_file("workspace", (".mcp.json",), "mcpServers", {"type": "stdio"}),
        json_list_file((".claude", "settings.json"), ("permissions", "deny"), WRITERS),
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
        "Start claude in the workspace and allow the server when it asks. Its own tools that write are denied; "
        "its own tools that read are not, and leave no record."
    ),
)
