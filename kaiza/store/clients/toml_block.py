"""Edits a TOML text in marked blocks and preserves all other bytes.

Every edit is parsed again before it is returned, and must differ from the original in Kaiza's values only.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from kaiza.store.clients.client import ConfigError

# Fixed: the blocks that files have are recognized by these lines.
BEGIN = "# kaiza: begin (kaiza init keeps this block; kaiza init --remove takes it out)"
END = "# kaiza: end"
_BLOCK = re.compile(rf"^{re.escape(BEGIN)}\r?\n(?:.*\n)*?{re.escape(END)}(?:\r?\n|\Z)", re.MULTILINE)
_HEADER = re.compile(r"\s*\[")


def parse(text: str) -> dict[str, Any]:
    """Parse a TOML document; ConfigError with the line of a syntax error."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.search(r"at line (\d+)", str(error))
        line = int(match[1]) if match else text.count("\n") + 1
        raise ConfigError("This is not valid TOML", line) from error


def set_table(text: str, settings: Mapping[str, str], table: tuple[str, str], members: Mapping[str, Any]) -> str:
    """The text with those top-level `settings` that it does not have, and with this table at its end."""
    before = parse(text)
    group, name = table
    user_keys = parse(remove_blocks(text))
    added = {key: value for key, value in settings.items() if key not in user_keys}
    servers = before.get(group, {})
    if isinstance(servers, dict) and servers.get(name) == members and before.keys() >= settings.keys():
        return text
    bare = _drop_table(remove_blocks(text), table)
    newline = "\r\n" if "\r\n" in text else "\n"
    edited = _assemble_text(
        bare,
        [f"{key} = {_format_value(value)}" for key, value in added.items()],
        [f"[{group}.{name}]", *(f"{key} = {_format_value(value)}" for key, value in members.items())],
        newline,
    )
    expected = parse(bare) | added
    expected[group] = {**expected.get(group, {}), name: members}
    if _parse_or_empty(edited) != expected:
        raise ConfigError(f"{group} is written in a way that cannot be extended. Add [{group}.{name}] by hand")
    return edited


def remove_blocks(text: str) -> str:
    """The text without the marked blocks and the blank lines around them."""
    while block := _BLOCK.search(text):
        before, after = text[: block.start()], text[block.end() :]
        if not before.strip() or after.strip():
            after = re.sub(r"\A\r?\n", "", after)
        else:
            before = re.sub(r"(\r?\n)\r?\n\Z", r"\1", before)
        text = before + after
    return text


def remove_table(text: str, table: tuple[str, str]) -> str:
    """The text without the marked blocks, and without the table if it was written outside them."""
    return _drop_table(remove_blocks(text), table)


def _drop_table(text: str, table: tuple[str, str]) -> str:
    group, name = table
    before = parse(text)
    if not isinstance(before.get(group, {}), dict):
        raise ConfigError(f"{group} is not a table")
    if name not in before.get(group, {}):
        return text
    edited = _drop_table_lines(text, group, name)
    others = {key: value for key, value in before[group].items() if key != name}
    after = _parse_or_empty(edited)
    if (after | {group: after.get(group, {})}) != {**before, group: others}:
        raise ConfigError(f"{group}.{name} is written in a way that cannot be replaced safely. Remove it by hand")
    return edited


def _drop_table_lines(text: str, group: str, name: str) -> str:
    """Drop the lines of the table and its sub-tables, but not the comments before the next header."""
    header = re.compile(rf"""\s*\[\s*["']?{group}["']?\s*\.\s*["']?{name}["']?\s*[.\]]""")
    kept: list[str] = []
    undecided: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = header.match(line) is not None
            kept += [] if inside else undecided
            undecided = []
        if inside:
            undecided = [*undecided, line] if not line.strip() or line.lstrip().startswith("#") else []
        else:
            kept.append(line)
    return "".join([*kept, *undecided])


def _parse_or_empty(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _assemble_text(bare: str, settings: list[str], table: list[str], newline: str) -> str:
    if not bare.strip():
        return bare + _format_block([*settings, *([""] if settings else []), *table], newline)
    # Editors read the schema comment on the first line only, and top-level keys must come before any table.
    schema = re.match(r"\A#:schema .*\r?\n", bare)
    head = schema[0] if schema else ""
    rest = bare[len(head) :]
    top = _format_block(settings, newline) + newline if settings else ""
    if not rest.endswith("\n"):
        rest += newline
    return head + top + rest + newline + _format_block(table, newline)


def _format_block(lines: list[str], newline: str) -> str:
    return "".join(line + newline for line in (BEGIN, *lines, END))


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format_value(member)}" for key, member in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
