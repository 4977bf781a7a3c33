"""Types that describe a client: its configuration files, and how Kaiza's entry is inserted and removed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from kaiza.store.clients import json_edit

SERVER_NAME = "kaiza"
ConfigLocation = Literal["workspace", "home"]
_URL_MEMBERS = ("url", "httpUrl", "serverUrl")


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """Program, arguments and environment with which a client starts the server."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Members of a server entry, named alike by all clients; an empty environment is left out."""
        entry: dict[str, Any] = {"command": self.command, "args": list(self.args)}
        return entry | ({"env": dict(self.env)} if self.env else {})

    @property
    def workspaces(self) -> tuple[str, ...]:
        """Values of the `--workspace` options."""
        return tuple(value for name, value in zip(self.args, self.args[1:], strict=False) if name == "--workspace")


@dataclass(frozen=True, slots=True)
class HttpServer:
    """Entry of a server over HTTP, with the members' names that one client uses."""

    members: Mapping[str, Any]

    @property
    def url(self) -> str:
        """The server's address, as the file has it."""
        return next((text for name in _URL_MEMBERS if isinstance(text := self.members.get(name), str)), "")

    def as_json(self) -> dict[str, Any]:
        """Members of the server entry."""
        return dict(self.members)


ServerEntry = ServerCommand | HttpServer


def parse_entry(entry: Any) -> ServerEntry | None:
    """Parse a server entry; None if it has neither a command nor a URL."""
    if not isinstance(entry, dict):
        return None
    if not isinstance(entry.get("command"), str):
        return HttpServer(entry) if any(isinstance(entry.get(name), str) for name in _URL_MEMBERS) else None
    args, env = entry.get("args") or [], entry.get("env") or {}
    if not isinstance(args, list) or not isinstance(env, dict):
        return None
    return ServerCommand(entry["command"], tuple(map(str, args)), {str(key): str(value) for key, value in env.items()})


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One configuration file and the text edits that add Kaiza to it and remove it again.

    `remove` also gets the text from before the installation: "" for no file, None if unknown.
    """

    location: ConfigLocation
    path: tuple[str, ...]
    insert: Callable[[str, ServerEntry], str]
    remove: Callable[[str, str | None], str]
    find_entry: Callable[[str], ServerEntry | None] = lambda _: None
    find_remark: Callable[[str], str | None] = lambda _: None
    """Warning about a setting of the user that weakens or hides Kaiza, if the text has one."""

    @property
    def name(self) -> str:
        """Path for messages: relative to the workspace, or beginning with `~`."""
        return "/".join(("~", *self.path) if self.location == "home" else self.path)


@dataclass(frozen=True, slots=True)
class Client:
    """One supported client: its configuration files, and how its presence is detected."""

    name: str
    title: str
    files: tuple[ConfigFile, ...]
    detection_paths: tuple[tuple[ConfigLocation, str], ...]
    program: str
    expands_variables: bool
    """Whether the client expands `$` in values, so that a path with one cannot be written."""
    next_steps: str
    """Advice printed once the files are written."""
    http_members: Callable[[str], Mapping[str, Any]] | None = None
    """Members of the entry for a URL, with the token from an environment variable; None if no file can do that."""


def json_server_file(
    location: ConfigLocation, path: tuple[str, ...], group: str, extra: Mapping[str, str]
) -> ConfigFile:
    """A JSON file that lists servers by name in the object `group`; `extra` members are added to Kaiza's command."""
    key_path = (group, SERVER_NAME)

    def insert(text: str, server: ServerEntry) -> str:
        added = extra if isinstance(server, ServerCommand) else {}
        return json_edit.set_value(text, key_path, {**added, **server.as_json()})

    def remove(text: str, before: str | None) -> str:
        edited = json_edit.remove_member(text, key_path)
        return edited if before is None else json_edit.remove_empty(edited, key_path[:1], before)

    def find_entry(text: str) -> ServerEntry | None:
        return parse_entry(json_edit.value_at(text, key_path))

    return ConfigFile(location, path, insert, remove, find_entry)


def json_list_file(path: tuple[str, ...], key_path: tuple[str, ...], items: Sequence[str]) -> ConfigFile:
    """A JSON file of the workspace with a list of denied tools, to which `items` are added."""
    return ConfigFile("workspace", path, partial(_extend_list, key_path, items), partial(_shrink_list, key_path, items))


def _extend_list(key_path: tuple[str, ...], items: Sequence[str], text: str, _server: ServerEntry) -> str:
    return json_edit.extend_list(text, key_path, items)


def _shrink_list(key_path: tuple[str, ...], items: Sequence[str], text: str, before: str | None) -> str:
    # Without the earlier text it is unknown which denials are the user's: keep all, a denial is safe to leave.
    if before is None:
        return text
    original = json_edit.value_at(before, key_path) or []
    edited = json_edit.shrink_list(text, key_path, [item for item in items if item not in original])
    return json_edit.remove_empty(edited, key_path, before)
