"""VS Code: `.vscode/mcp.json` names the server under `servers`; comments in it stay."""

from kaiza.store.clients.client import Client, json_server_file

CLIENT = Client(
    name="vscode",
    title="VS Code",
    files=(json_server_file("workspace", (".vscode", "mcp.json"), "servers", {"type": "stdio"}),),
    detection_paths=(("workspace", ".vscode"), ("home", ".vscode"), ("home", ".config/Code")),
    program="code",
    expands_variables=True,
    next_steps=(
        "Open .vscode/mcp.json in VS Code and start the server there. In the chat's tools menu leave only Kaiza's "
        "tools on: no file switches the others off, and what changes without Kaiza has no record."
    ),
)
