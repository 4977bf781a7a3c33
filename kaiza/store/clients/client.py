"""Types that describe a client: its configuration files, and how Kaiza's entry is inserted and removed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


class ConfigError(Exception):
    """The file was left untouched: the reason without a final period, and the line (from 1) if one is at fault."""

    def __init__(self, sentence: str, line: int | None = None) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.line = line


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
        """Members of a server entry, as most clients name them; an empty environment is left out."""
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
    command, args, env = entry.get("command"), entry.get("args") or [], entry.get("env") or {}
    if isinstance(command, list) and command:  # opencode: program and arguments in one list
        command, args, env = command[0], command[1:], entry.get("environment") or {}
    if not isinstance(command, str):
        return HttpServer(entry) if any(isinstance(entry.get(name), str) for name in _URL_MEMBERS) else None
    if not isinstance(args, list) or not isinstance(env, dict):
        return None
    return ServerCommand(command, tuple(map(str, args)), {str(key): str(value) for key, value in env.items()})


@dataclass(frozen=True, slots=True)
class TextEdit:
    """One part of what Kaiza writes into a file.

    `remove` also gets the text from before the installation: "" for no file, None if unknown.
    """

    insert: Callable[[str, ServerEntry], str]
    remove: Callable[[str, str | None], str]
    leaves_writers: Callable[[str], bool] = lambda _: False
    """Whether the text leaves the client tools of its own that write, which this edit would take away."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """One configuration file and the edits that add Kaiza to it and remove it again."""

    location: ConfigLocation
    path: tuple[str, ...]
    edits: tuple[TextEdit, ...]
    find_entry: Callable[[str], ServerEntry | None] = lambda _: None
    list_servers: Callable[[str], Sequence[str]] = lambda _: ()
    """Names of all servers in the text."""
    find_remark: Callable[[str], str | None] = lambda _: None
    """Warning about a setting of the user that weakens or hides Kaiza, if the text has one."""

    @property
    def name(self) -> str:
        """Path for messages: relative to the workspace, or beginning with `~`."""
        return "/".join(("~", *self.path) if self.location == "home" else self.path)

    def insert(self, text: str, server: ServerEntry) -> str:
        """The text with everything that Kaiza needs in it."""
        for edit in self.edits:
            text = edit.insert(text, server)
        return text

    def remove(self, text: str, before: str | None) -> str:
        """The text without what Kaiza inserted."""
        for edit in self.edits:
            text = edit.remove(text, before)
        return text

    def leaves_writers(self, text: str) -> bool:
        """Whether the client keeps tools that this file could take away."""
        return any(edit.leaves_writers(text) for edit in self.edits)


@dataclass(frozen=True, slots=True)
class Client:
    """One supported client: its configuration files, and how its presence is detected."""

    name: str
    title: str
    files: tuple[ConfigFile, ...]
    detection_paths: tuple[tuple[ConfigLocation, str], ...]
    program: str
    variable_signs: tuple[str, ...]
    """What the client would expand in a value: a path with one of them cannot be written."""
    next_steps: str
    """Advice printed once the files are written."""
    http_members: Callable[[str], Mapping[str, Any]] | None = None
    """Members of the entry for a URL, with the token from an environment variable; None if no file can do that."""
    own_tools: str | None = None
    """Which tools of its own the client keeps that write files and that no file can take away, if any."""
    is_tried: bool = False
    """Whether the tests run the real program with this configuration; else it is written from the documentation."""
