"""VS Code: `.vscode/mcp.json` names the server under `servers`; comments in it stay."""

from kaiza.store.clients.client import Client, json_server

CLIENT = Client(
    name="vscode",
    title="VS Code",
    files=(json_server("workspace", (".vscode", "mcp.json"), "servers", {"type": "stdio"}),),
    traces=(("workspace", ".vscode"), ("home", ".vscode"), ("home", ".config/Code")),
    program="code",
    variables=True,
    after=(
        "Open .vscode/mcp.json in VS Code and start the server there. In the chat's tools menu leave only Kaiza's "
        "tools on: no file switches the others off, and what changes without Kaiza has no record."
    ),
)
