"""What Kaiza writes into a client's JSON file: its server, lists of tools, single settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from kaiza.store.clients import json_edit
from kaiza.store.clients.client import (
    SERVER_NAME,
    ConfigFile,
    ConfigLocation,
    ServerCommand,
    ServerEntry,
    TextEdit,
    parse_entry,
)


@dataclass(frozen=True, slots=True)
class ServerGroup:
    """The object of a file that lists servers by name, and how it spells the one of a command."""

    name: str
    encode: Callable[[ServerCommand], Mapping[str, Any]]

    def insert(self, text: str, server: ServerEntry) -> str:
        """The text with Kaiza's entry."""
        entry = self.encode(server) if isinstance(server, ServerCommand) else server.as_json()
        return json_edit.set_value(text, (self.name, SERVER_NAME), dict(entry))

    def remove(self, text: str, before: str | None) -> str:
        """The text without Kaiza's entry."""
        edited = json_edit.remove_member(text, (self.name, SERVER_NAME))
        return edited if before is None else json_edit.remove_empty(edited, (self.name,), before)

    def find_entry(self, text: str) -> ServerEntry | None:
        """Kaiza's entry, if there is one."""
        return parse_entry(json_edit.value_at(text, (self.name, SERVER_NAME)))

    def list_servers(self, text: str) -> list[str]:
        """Names of all servers."""
        servers = json_edit.value_at(text, (self.name,))
        return list(servers) if isinstance(servers, dict) else []


def server_file(
    location: ConfigLocation, path: tuple[str, ...], group: ServerGroup, *others: TextEdit, **more: Any
) -> ConfigFile:
    """A file with Kaiza's server in `group`, and with what `others` add."""
    edits = (TextEdit(group.insert, group.remove), *others)
    return ConfigFile(location, path, edits, group.find_entry, group.list_servers, **more)


def plain_group(name: str, **extra: Any) -> ServerGroup:
    """Servers with command, args and env, and with `extra` members before them."""
    return ServerGroup(name, lambda server: {**extra, **server.as_json()})


def list_edit(key_path: tuple[str, ...], items: Sequence[str]) -> TextEdit:
    """A list to which `items` are added."""
    return TextEdit(
        lambda text, _: json_edit.extend_list(text, key_path, items), partial(_shrink_list, key_path, items)
    )


def denial_edit(key_path: tuple[str, ...], items: Sequence[str]) -> TextEdit:
    """A list that takes the client's own writing tools away."""
    edit = list_edit(key_path, items)
    return TextEdit(edit.insert, edit.remove, lambda text: not set(items) <= _items_at(text, key_path))


def offer_edit(key_path: tuple[str, ...], items: Sequence[str], denials: TextEdit) -> TextEdit:
    """A list to which `items` are added together with `denials`, and not again if a person takes them out."""
    edit = list_edit(key_path, items)
    return TextEdit(
        lambda text, server: edit.insert(text, server) if denials.leaves_writers(text) else text, edit.remove
    )


def setting_edit(key_path: tuple[str, ...], value: str) -> TextEdit:
    """One setting that takes a tool away."""
    return TextEdit(
        lambda text, _: json_edit.set_value(text, key_path, value),
        partial(_restore_setting, key_path),
        lambda text: json_edit.value_at(text, key_path) != value,
    )


def _items_at(text: str, key_path: tuple[str, ...]) -> set[str]:
    value = json_edit.value_at(text, key_path)
    return {item for item in value if isinstance(item, str)} if isinstance(value, list) else set()


def _shrink_list(key_path: tuple[str, ...], items: Sequence[str], text: str, before: str | None) -> str:
    # Without the earlier text it is unknown which items are the user's: keep all, a denial is safe to leave.
    if before is None:
        return text
    original = _items_at(before, key_path)
    edited = json_edit.shrink_list(text, key_path, [item for item in items if item not in original])
    return json_edit.remove_empty(edited, key_path, before)


def _restore_setting(key_path: tuple[str, ...], text: str, before: str | None) -> str:
    if before is None:  # as above
        return text
    original = json_edit.value_at(before, key_path)
    if original is not None:
        return json_edit.set_value(text, key_path, original)
    return json_edit.remove_empty(json_edit.remove_member(text, key_path), key_path[:-1], before)
