"""The facts of a log as a file outside the workspace: only there to save reading the whole log again.

It may be deleted at any time, and is never believed over the log: it counts only while the record it was
made from still stands where it stood.
"""

import os
from pathlib import Path

import orjson

from kaiza.domain.record import Head
from kaiza.domain.session import Facts

_FORMAT = 2
_NAME = "index.json"
_TAIL = 128


def load(state: Path, log: Path) -> tuple[Facts, Head | None]:
    """The facts up to a verified head, or none at all where the index is missing, strange or overtaken."""
    try:
        told = orjson.loads((state / _NAME).read_bytes())
        head = Head(**told["head"])
        if told["format"] == _FORMAT and _stands(log, head):
            return Facts.from_json(told["facts"]), head
    except (OSError, ValueError, TypeError, KeyError):
        return Facts(), None
    return Facts(), None


def last_known(state: Path) -> Facts:
    """The facts it holds, whatever became of the log: for what may only make stricter, never laxer."""
    try:
        return Facts.from_json(orjson.loads((state / _NAME).read_bytes())["facts"])
    except (OSError, ValueError, TypeError, KeyError):
        return Facts()


def save(state: Path, facts: Facts, head: Head) -> None:
    """Keep the facts for the next process. Whole or not at all; losing it costs time, never truth."""
    told = {
        "format": _FORMAT,
        "head": {"seq": head.seq, "entry_hash": head.entry_hash, "size": head.size},
        "facts": facts.as_json(),
    }
    beside = state / f"{_NAME}.{os.getpid()}"
    beside.write_bytes(orjson.dumps(told))
    beside.replace(state / _NAME)


def _stands(log: Path, head: Head) -> bool:
    """Whether the record the index was made from is still where it was."""
    with log.open("rb") as file:
        file.seek(max(0, head.size - _TAIL))
        tail = file.read(min(_TAIL, head.size))
    return tail.endswith(f'"entry_hash":"{head.entry_hash}"}}\n'.encode())
