"""Arguments of a tool from the command line: `name=value` words and a JSON file. The server validates them."""

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from kaiza.cli.console.output import USAGE_ERROR, CommandError
from kaiza.render.terminal import escape


def read_arguments(words: Iterable[str], file: str | None, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the file's object, then the words, which replace members of the same name."""
    arguments = {} if file is None else _read_file(file)
    properties = schema["properties"]
    named: set[str] = set()
    for word in words:
        if not _is_text(word):
            raise _usage_error(f"{escape(word)} is not UTF-8, and JSON can carry nothing else. Give the text in UTF-8.")
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise _usage_error(f"{escape(word)} is not an argument. Write NAME=VALUE.")
        if name in named:
            raise _usage_error(f"{escape(name)} is given twice. Give it once.")
        named.add(name)
        arguments[name] = _parse_value(name, text, properties.get(name, {}).get("type", "string"))
    return arguments


def _is_text(word: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in word)


def _parse_value(name: str, text: str, wanted: str) -> Any:
    """The text itself for a string, JSON for everything else."""
    if wanted == "string":
        return text
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        message = f"{escape(name)} takes JSON, a value of type {wanted}, and {escape(text)} is not JSON."
        raise _usage_error(f"{message} Quote it for the shell.") from None


def _read_file(name: str) -> dict[str, Any]:
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        value = orjson.loads(content)
    except OSError as error:
        raise _usage_error(
            f"{escape(name)}: {error.strerror}. Name a file with a JSON object, or - for standard input."
        ) from None
    except orjson.JSONDecodeError as error:
        raise _usage_error(f"{escape(name)} is not JSON: {error}. Correct it.") from None
    if not isinstance(value, dict):
        raise _usage_error(f"{escape(name)} does not hold a JSON object. Write the tool's arguments as one object.")
    return value


def _usage_error(message: str) -> CommandError:
    return CommandError(message, USAGE_ERROR)
