"""Gemini CLI: `.gemini/settings.json` names the server and leaves out the tools that write without Kaiza."""

from dataclasses import replace

from kaiza.store.clients import json_edit
from kaiza.store.clients.client import Client, Server, json_list, json_server

WRITERS = ("replace", "run_shell_command", "write_file")
_PATH = (".gemini", "settings.json")
_SERVER = json_server("workspace", _PATH, "mcpServers", {})
_LIST = json_list(_PATH, ("tools", "exclude"), WRITERS)


def _put(text: str, server: Server) -> str:
    return _LIST.put(_SERVER.put(text, server), server)


def _take(text: str, before: str | None) -> str:
    return _LIST.take(_SERVER.take(text, before), before)


def _remark(text: str) -> str | None:
    core = json_edit.value_at(text, ("tools", "core"))
    return None if core is None else "tools.core is set, and may keep Gemini from using Kaiza's tools"


CLIENT = Client(
    name="gemini",
    title="Gemini CLI",
    files=(replace(_SERVER, put=_put, take=_take, remark=_remark),),
    traces=(("workspace", ".gemini"), ("home", ".gemini")),
    program="gemini",
    variables=True,
    after="Start gemini in the workspace; /mcp lists the server. Its own tools that write are left out.",
)
