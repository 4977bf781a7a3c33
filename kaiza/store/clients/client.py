"""What Kaiza knows of a client: which files configure it, how Kaiza is put into them and taken out again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from kaiza.store.clients import json_edit

SERVER_NAME = "kaiza"
ConfigLocation = Literal["workspace", "home"]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """The program that the client starts."""

    command: str
    args: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """As every client names the parts; an empty environment is left out."""
        told: dict[str, Any] = {"command": self.command, "args": list(self.args)}
        return told | ({"env": dict(self.env)} if self.env else {})

    @property
    def workspaces(self) -> tuple[str, ...]:
        """The directories it is told to serve."""
        return tuple(value for name, value in zip(self.args, self.args[1:], strict=False) if name == "--workspace")

    @classmethod
    def from_entry(cls, told: Any) -> "ServerCommand | None":
        """The server that an entry names, if it names one."""
        if not isinstance(told, dict) or not isinstance(told.get("command"), str):
            return None
        args, env = told.get("args") or [], told.get("env") or {}
        if not isinstance(args, list) or not isinstance(env, dict):
            return None
        return cls(told["command"], tuple(map(str, args)), {str(key): str(value) for key, value in env.items()})


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One file: how its text looks with Kaiza in it, and without.

    `take` is given the text from before, as far as it is known ("" where there was no file, None where nobody knows).
    """

    location: ConfigLocation
    path: tuple[str, ...]
    insert: Callable[[str, ServerCommand], str]
    remove: Callable[[str, str | None], str]
    find_entry: Callable[[str], ServerCommand | None] = lambda _: None
    find_remark: Callable[[str], str | None] = lambda _: None
    """What a person should know about a text that has Kaiza in it."""

    @property
    def name(self) -> str:
        """The file as a person names it."""
        return "/".join(("~", *self.path) if self.location == "home" else self.path)


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its files, and what shows that somebody uses it here."""

    name: str
    title: str
    files: tuple[ConfigFile, ...]
    detection_paths: tuple[tuple[ConfigLocation, str], ...]
    program: str
    expands_variables: bool
    """Whether it takes a $ in a value for a variable."""
    next_steps: str
    """What is left to do, or to know, once the files are written."""


def json_server_file(where: ConfigLocation, path: tuple[str, ...], group: str, extra: Mapping[str, str]) -> ConfigFile:
    """A JSON file in which servers stand by name under one key."""
    place = (group, SERVER_NAME)

    def put(text: str, server: ServerCommand) -> str:
        return json_edit.set_value(text, place, {**extra, **server.as_json()})

    def take(text: str, before: str | None) -> str:
        done = json_edit.remove_member(text, place)
        return done if before is None else json_edit.remove_empty(done, place[:1], before)

    def entry(text: str) -> ServerCommand | None:
        return ServerCommand.from_entry(json_edit.value_at(text, place))

    return ConfigFile(where, path, put, take, entry)


def json_list_file(path: tuple[str, ...], place: tuple[str, ...], items: Sequence[str]) -> ConfigFile:
    """A JSON file of the workspace in which a list names what the client's agent may not use."""
    return ConfigFile("workspace", path, partial(_extend_list, place, items), partial(_shrink_list, place, items))


def _extend_list(place: tuple[str, ...], items: Sequence[str], text: str, _server: ServerCommand) -> str:
    return json_edit.extend_list(text, place, items)


def _shrink_list(place: tuple[str, ...], items: Sequence[str], text: str, before: str | None) -> str:
    """Only what was not there before goes; where nobody knows, all stays: it forbids, and so is safe to leave."""
    if before is None:
        return text
    there = json_edit.value_at(before, place) or []
    done = json_edit.shrink_list(text, place, [item for item in items if item not in there])
    return json_edit.remove_empty(done, place, before)
