"""What Kaiza knows of a client: which files configure it, how Kaiza is put into them and taken out again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from kaiza.store.clients import json_edit

NAME = "kaiza"
Where = Literal["workspace", "home"]


@dataclass(frozen=True, slots=True)
class Server:
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
    def of(cls, told: Any) -> "Server | None":
        """The server that an entry names, if it names one."""
        if not isinstance(told, dict) or not isinstance(told.get("command"), str):
            return None
        args, env = told.get("args") or [], told.get("env") or {}
        if not isinstance(args, list) or not isinstance(env, dict):
            return None
        return cls(told["command"], tuple(map(str, args)), {str(key): str(value) for key, value in env.items()})


@dataclass(frozen=True, slots=True)
class File:
    """One file: how its text looks with Kaiza in it, and without.

    `take` is given the text from before, as far as it is known ("" where there was no file, None where nobody knows).
    """

    where: Where
    path: tuple[str, ...]
    put: Callable[[str, Server], str]
    take: Callable[[str, str | None], str]
    entry: Callable[[str], Server | None] = lambda _: None
    remark: Callable[[str], str | None] = lambda _: None
    """What a person should know about a text that has Kaiza in it."""

    @property
    def name(self) -> str:
        """The file as a person names it."""
        return "/".join(("~", *self.path) if self.where == "home" else self.path)


@dataclass(frozen=True, slots=True)
class Client:
    """A client: its files, and what shows that somebody uses it here."""

    name: str
    title: str
    files: tuple[File, ...]
    traces: tuple[tuple[Where, str], ...]
    program: str
    variables: bool
    """Whether it takes a $ in a value for a variable."""
    after: str
    """What is left to do, or to know, once the files are written."""


def json_server(where: Where, path: tuple[str, ...], group: str, extra: Mapping[str, str]) -> File:
    """A JSON file in which servers stand by name under one key."""
    place = (group, NAME)

    def put(text: str, server: Server) -> str:
        return json_edit.put(text, place, {**extra, **server.as_json()})

    def take(text: str, before: str | None) -> str:
        done = json_edit.take(text, place)
        return done if before is None else json_edit.prune(done, place[:1], before)

    def entry(text: str) -> Server | None:
        return Server.of(json_edit.value_at(text, place))

    return File(where, path, put, take, entry)


def json_list(path: tuple[str, ...], place: tuple[str, ...], items: Sequence[str]) -> File:
    """A JSON file of the workspace in which a list names what the client's agent may not use."""
    return File("workspace", path, partial(_listed, place, items), partial(_unlisted, place, items))


def _listed(place: tuple[str, ...], items: Sequence[str], text: str, _server: Server) -> str:
    return json_edit.extend(text, place, items)


def _unlisted(place: tuple[str, ...], items: Sequence[str], text: str, before: str | None) -> str:
    """Only what was not there before goes; where nobody knows, all stays: it forbids, and so is safe to leave."""
    if before is None:
        return text
    there = json_edit.value_at(before, place) or []
    done = json_edit.shrink(text, place, [item for item in items if item not in there])
    return json_edit.prune(done, place, before)
