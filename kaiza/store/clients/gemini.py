"""Gemini CLI: `.gemini/settings.json` names the server and leaves out the tools that write without Kaiza."""

from dataclasses import replace

from kaiza.store.clients import json_edit
from kaiza.store.clients.client import Client, ServerCommand, json_list_file, json_server_file

WRITERS = ("replace", "run_shell_command", "write_file")
_PATH = (".gemini", "settings.json")
_SERVER = json_server_file("workspace", _PATH, "mcpServers", {})
_LIST = json_list_file(_PATH, ("tools", "exclude"), WRITERS)


def _insert_server(text: str, server: ServerCommand) -> str:
    return _LIST.insert(_SERVER.insert(text, server), server)


def _remove_server(text: str, before: str | None) -> str:
    return _LIST.remove(_SERVER.remove(text, before), before)


def _find_remark(text: str) -> str | None:
    core = json_edit.value_at(text, ("tools", "core"))
    return None if core is None else "tools.core is set, and may keep Gemini from using Kaiza's tools"


CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    files=(replace(_SERVER, insert=_insert_server, remove=_remove_server, find_remark=_find_remark),),
    detection_paths=(("workspace", ".gemini"), ("home", ".gemini")),
    program="gemini",
    expands_variables=True,
    next_steps="Start gemini in the workspace; /mcp lists the server. Its own tools that write are left out.",
)
