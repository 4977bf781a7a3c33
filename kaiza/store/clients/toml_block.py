"""Keeps marked blocks in a TOML text and leaves every other byte; what comes out is parsed again first."""

import json
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from kaiza.store.clients.errors import ConfigError

BEGIN = "# kaiza: begin (kaiza init keeps this block; kaiza init --remove takes it out)"
END = "# kaiza: end"
_BLOCK = re.compile(rf"^{re.escape(BEGIN)}\r?\n(?:.*\n)*?{re.escape(END)}(?:\r?\n|\Z)", re.MULTILINE)
_HEADER = re.compile(r"\s*\[")


def parse(text: str) -> dict[str, Any]:
    """The document; ConfigFault names the line it stumbles over."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"at line (\d+)", str(error))
        line = int(found[1]) if found else text.count("\n") + 1
        raise ConfigError("This is no TOML", line) from error


def set_table(text: str, first: Mapping[str, str], table: tuple[str, str], members: Mapping[str, Any]) -> str:
    """The text with these words at its top, where they are not there already, and this table at its end."""
    before = parse(text)
    group, name = table
    wanted = {key: value for key, value in first.items() if key not in parse(remove_blocks(text))}
    there = before.get(group, {})
    if isinstance(there, dict) and there.get(name) == members and before.keys() >= first.keys():
        return text
    bare = _drop_table(remove_blocks(text), table)
    newline = "\r\n" if "\r\n" in text else "\n"
    done = _assemble_text(bare, _format_settings(wanted), _format_table(table, members), newline)
    expected = parse(bare) | wanted
    expected[group] = {**expected.get(group, {}), name: members}
    if _parse_or_empty(done) != expected:
        raise ConfigError(f"{group} stands in a way that nothing can be added to. Write [{group}.{name}] by hand")
    return done


def remove_blocks(text: str) -> str:
    """The text without the marked blocks and the blank lines that set them off."""
    while found := _BLOCK.search(text):
        before, after = text[: found.start()], text[found.end() :]
        if not before.strip() or after.strip():
            after = re.sub(r"\A\r?\n", "", after)
        else:
            before = re.sub(r"(\r?\n)\r?\n\Z", r"\1", before)
        text = before + after
    return text


def remove_table(text: str, table: tuple[str, str]) -> str:
    """The text without the marked blocks, and without the table where somebody else wrote it."""
    return _drop_table(remove_blocks(text), table)


def _drop_table(text: str, table: tuple[str, str]) -> str:
    group, name = table
    before = parse(text)
    if not isinstance(before.get(group, {}), dict):
        raise ConfigError(f"{group} is no table")
    if name not in before.get(group, {}):
        return text
    own = re.compile(rf"""\s*\[\s*["']?{group}["']?\s*\.\s*["']?{name}["']?\s*[.\]]""")
    kept: list[str] = []
    waiting: list[str] = []
    inside = False
    for line in text.splitlines(keepends=True):
        if _HEADER.match(line):
            inside = own.match(line) is not None
            kept += [] if inside else waiting
            waiting = []
        if inside:
            waiting = [*waiting, line] if not line.strip() or line.lstrip().startswith("#") else []
        else:
            kept.append(line)
    done = "".join([*kept, *waiting])
    others = {key: value for key, value in before[group].items() if key != name}
    expected = {**before, group: others}
    if (_parse_or_empty(done) | {group: (_parse_or_empty(done) or {}).get(group, {})}) != expected:
        raise ConfigError(f"{group}.{name} is written in a way that cannot be replaced safely. Take it out by hand")
    return done


def _parse_or_empty(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return {}


def _assemble_text(bare: str, words: list[str], table: list[str], newline: str) -> str:
    if not bare.strip():
        return bare + _format_block([*words, *([""] if words else []), *table], newline)
    schema = re.match(r"\A#:schema .*\r?\n", bare)
    head = schema[0] if schema else ""
    rest = bare[len(head) :]
    top = _format_block(words, newline) + newline if words else ""
    if not rest.endswith("\n"):
        rest += newline
    return head + top + rest + newline + _format_block(table, newline)


def _format_block(lines: list[str], newline: str) -> str:
    return "".join(line + newline for line in (BEGIN, *lines, END))


def _format_settings(values: Mapping[str, str]) -> list[str]:
    return [f"{key} = {_format_value(value)}" for key, value in values.items()]


def _format_table(table: tuple[str, str], members: Mapping[str, Any]) -> list[str]:
    return [f"[{'.'.join(table)}]", *(f"{key} = {_format_value(value)}" for key, value in members.items())]


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_format_value, value)) + "]"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_format_value(member)}" for key, member in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
