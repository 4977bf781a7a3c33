"""Format of a journal on disk: one JSON object a line, each line followed by an authentication code.

A code is HMAC-SHA256 with the state directory's key over the journal's name, the code of the line before and the line.
The workspace may be a clone: without the code, a journal that came with it could move and delete the user's files.
"""

import json
import os
import stat
from collections.abc import Mapping
from typing import Any

import orjson

from kaiza.store.disk import small_files
from kaiza.store.disk.byte_io import read_all
from kaiza.store.disk.state_key import StateKey

COMMITTED = b'{"committed": true}'
# As long as COMMITTED, which it overwrites in place: rolling back must not need space on a full disk.
ROLLED_BACK = b'{"taken_back":true}'
_CODE_PURPOSE = "journal line"
_CODE_LENGTH = 64
# No journal of Kaiza comes near this size; a larger, planted one would be read into memory whole.
_MAX_BYTES = 16 << 20

JournalLine = Mapping[str, Any]


def encode_line(line: JournalLine) -> bytes:
    """A line as JSON, without its code."""
    try:
        return orjson.dumps(line)
    except orjson.JSONEncodeError:  # a file name that is not UTF-8; the standard library escapes it
        return json.dumps(line).encode()


def sign_line(state_key: StateKey, txn: str, previous_code: bytes, encoded: bytes) -> bytes:
    """A line with its authentication code, as it is written."""
    code = state_key.compute_code(_CODE_PURPOSE, txn.encode(), previous_code, encoded)
    return encoded + b" " + code.encode() + b"\n"


def code_of(line: bytes) -> bytes:
    """The code at the end of a signed line."""
    return line.removesuffix(b"\n")[-_CODE_LENGTH:]


def authentic_lines(state_key: StateKey, txn: str, content: bytes) -> list[JournalLine]:
    """The lines up to the first that is torn or has a wrong code; none where the journal was written with another key.

    The power may tear the last line: then the lines before it are valid.
    """
    found: list[JournalLine] = []
    previous_code = b""
    for line in content.split(b"\n")[:-1]:
        encoded, code = line[: -_CODE_LENGTH - 1], code_of(line)
        if not state_key.is_valid_code(
            code.decode("ascii", "replace"), _CODE_PURPOSE, txn.encode(), previous_code, encoded
        ):
            break
        parsed = parse_object(encoded)
        if parsed is None:
            break
        found.append(parsed)
        previous_code = code
    return found


def foreign_head(state_key: StateKey, content: bytes) -> JournalLine | None:
    """The first line where it names another state directory, else None. Its code cannot be checked here."""
    head = parse_object(content.split(b"\n", 1)[0][: -_CODE_LENGTH - 1])
    is_foreign = head is not None and isinstance(head.get("state"), str) and head["state"] != state_key.find_state_id()
    return head if is_foreign else None


def read_file(name: str, dir_fd: int) -> bytes | None:
    """Content of a file that may have come with the workspace; None where it cannot be opened or read whole."""
    try:
        return small_files.read(name, _MAX_BYTES, dir_fd)
    except OSError:
        return None


def read_content(fd: int) -> bytes | None:
    """Content of an open journal; None where it is not a regular file or is larger than any journal."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
        return None
    return b"".join(read_all(fd))


def parse_object(encoded: bytes) -> dict[str, Any] | None:
    """A JSON object; None for any other bytes."""
    value = parse_json(encoded)
    return value if isinstance(value, dict) else None


def parse_json(encoded: bytes) -> object:
    """A JSON value; None for bytes that are not JSON or are nested too deep."""
    try:
        return json.loads(encoded)
    except (ValueError, RecursionError):
        return None
