"""`kaiza.toml`: few settings, each with a default; an unknown key or a value out of range stops the start."""

import re
import tomllib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kaiza.domain import errors
from kaiza.domain.globs import Denial

LARGEST_FILE = 64 * 1024


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person set for the workspace."""

    deny_read: tuple[Denial, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    approval_by_command: bool = False
    release_by_person: bool = False
    checks_seconds: int = 300


@lru_cache(maxsize=16)
def parse(text: str) -> Settings:
    """The settings that the text of a `kaiza.toml` gives; BOOTSTRAP_FAILURE names the line it stumbles over."""
    if not text.strip():
        return Settings()
    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise _refused(str(fault), _line_in(str(fault), text)) from fault
    return _checked(told, text)


def _checked(told: dict[str, Any], text: str) -> Settings:
    """Closed and typed by pydantic, which is loaded only where there is a file to check."""
    import pydantic  # noqa: PLC0415  a workspace without kaiza.toml does not pay for it

    from kaiza.store.settings_file import File  # noqa: PLC0415  as above

    try:
        file = File.model_validate(told)
        deny = tuple(Denial.parse(glob) for glob in file.deny_read)
    except pydantic.ValidationError as fault:
        first = fault.errors()[0]
        place = [str(part) for part in first["loc"]]
        raise _refused(f"{'.'.join(place)}: {first['msg']}", _line_of(place, text)) from fault
    except ValueError as fault:
        raise _refused(f"deny_read: {fault}", _line_of(["deny_read"], text)) from fault
    return Settings(
        deny_read=deny,
        allow_read=frozenset(file.allow_read),
        sync_every=file.audit.sync == "every",
        approval_by_command=file.approval.require == "command",
        release_by_person=file.lock.release == "person",
        checks_seconds=file.checks.seconds,
    )


def _line_in(message: str, text: str) -> int:
    """The line that the TOML reader names; where it read to the end for nothing, the last that says anything."""
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else text.rstrip().count("\n") + 1


def _line_of(place: list[str], text: str) -> int:
    """The line a setting stands on, for the person who has to mend it."""
    section = ""
    nearest = 1
    for number, line in enumerate(text.split("\n"), 1):
        heading = re.match(r"\s*\[\s*([\w.\"-]+)\s*\]", line)
        if heading:
            section = heading[1]
            nearest = number if section == place[0] else nearest
        key = re.match(r"\s*([\w.-]+)\s*=", line)
        named = ".".join(filter(None, (section, key[1]))) if key else ""
        if named and ".".join(place).startswith(named):
            return number
    return nearest


def _refused(why: str, line: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE",
        human_message=f"kaiza.toml, line {line}: {why}. Mend that line and start again.",
        cause={"file": "kaiza.toml", "line": line},
    )
