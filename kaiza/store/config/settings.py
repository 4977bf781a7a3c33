"""`kaiza.toml`: few settings, each with a default; an unknown key or a value out of range stops the start."""

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import pydantic

from kaiza.domain import errors
from kaiza.domain.paths.denial import DenyGlob
from kaiza.domain.paths.name_folding import skeleton
from kaiza.store.disk.byte_io import READ_NOFOLLOW


class ClosedModel(pydantic.BaseModel):
    """No unknown keys, no coercion, no changing afterwards."""

    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", strict=True)


class AuditSection(ClosedModel):
    """`batched` syncs reads within a second; `every` syncs each record before its answer."""

    sync: Literal["batched", "every"] = "batched"


class ApprovalSection(ClosedModel):
    """`edit`: the changed word in the plan approves; `command`: only `kaiza plan approve` does."""

    require: Literal["edit", "command"] = "edit"


class LockSection(ClosedModel):
    """`report`: a report unlocks, three times a day; `person`: only a person does."""

    release: Literal["report", "person"] = "report"


class ChecksSection(ClosedModel):
    """How long a plan's checks may take."""

    seconds: int = pydantic.Field(default=300, ge=1, le=3600)


class SettingsFile(ClosedModel):
    """The whole file."""

    deny_read: list[str] = []
    allow_read: list[str] = []
    audit: AuditSection = AuditSection()
    approval: ApprovalSection = ApprovalSection()
    lock: LockSection = LockSection()
    checks: ChecksSection = ChecksSection()


NAME = "kaiza.toml"
MAX_FILE_BYTES = 64 * 1024
_FILE_PROBLEMS = {
    "misnamed": "A file is named almost like kaiza.toml, and settings are read under that very name only. Rename it",
    "link": "kaiza.toml is a link. Put the file itself in its place",
    "no_file": "kaiza.toml is not a regular file. Put a file in its place or remove it",
    "unreadable": "kaiza.toml cannot be read. Make it readable for the account that runs Kaiza",
    "too_large": "kaiza.toml is larger than 64 KiB. Shorten it",
    "not_utf8": "kaiza.toml is not UTF-8 text. Save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a person set for the workspace."""

    deny_read: tuple[DenyGlob, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    approval_by_command: bool = False
    release_by_person: bool = False
    checks_seconds: int = 300


def read(directory: int) -> Settings:
    """Read the settings in an open directory: the defaults where there is no file.

    BOOTSTRAP_FAILURE where there is one and not every byte of it was understood.
    """
    names = [name for name in os.listdir(directory) if skeleton(name) == NAME]
    if not names:
        return Settings()
    if names != [NAME]:
        raise _file_error("misnamed")
    content = _read_content(directory)
    if len(content) > MAX_FILE_BYTES:
        raise _file_error("too_large")
    try:
        return parse(content.decode())
    except UnicodeDecodeError as fault:
        raise _file_error("not_utf8") from fault


@lru_cache(maxsize=16)
def parse(text: str) -> Settings:
    """The settings that the text of a `kaiza.toml` gives; BOOTSTRAP_FAILURE names the line it stumbles over."""
    if not text.strip():
        return Settings()
    import tomllib  # noqa: PLC0415  a workspace without kaiza.toml does not pay for it

    try:
        told = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise _line_error(str(fault), _line_in_message(str(fault), text)) from fault
    return _validate_settings(told, text)


def _read_content(directory: int) -> bytes:
    """The file's bytes, and one more than there may be; a link is not followed, a pipe not waited for."""
    try:
        _require_regular_file(os.stat(NAME, dir_fd=directory, follow_symlinks=False))
        descriptor = os.open(NAME, READ_NOFOLLOW, dir_fd=directory)
        with os.fdopen(descriptor, "rb") as file:
            _require_regular_file(os.fstat(descriptor))
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as fault:
        raise _file_error("unreadable") from fault


def _require_regular_file(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise _file_error("link" if stat.S_ISLNK(found.st_mode) else "no_file")


def _validate_settings(told: dict[str, Any], text: str) -> Settings:
    """Closed and typed by pydantic, which is loaded only where there is a file to check."""
    import pydantic  # noqa: PLC0415  a workspace without kaiza.toml does not pay for it

    try:
        file = SettingsFile.model_validate(told)
        deny = tuple(DenyGlob.parse(glob) for glob in file.deny_read)
    except pydantic.ValidationError as fault:
        first = fault.errors()[0]
        place = [str(part) for part in first["loc"]]
        raise _line_error(f"{'.'.join(place)}: {first['msg']}", _line_of_setting(place, text)) from fault
    except ValueError as fault:
        raise _line_error(f"deny_read: {fault}", _line_of_setting(["deny_read"], text)) from fault
    return Settings(
        deny_read=deny,
        allow_read=frozenset(file.allow_read),
        sync_every=file.audit.sync == "every",
        approval_by_command=file.approval.require == "command",
        release_by_person=file.lock.release == "person",
        checks_seconds=file.checks.seconds,
    )


def _line_in_message(message: str, text: str) -> int:
    """The line that the TOML reader names; where it read to the end for nothing, the last that says anything."""
    found = re.search(r"at line (\d+)", message)
    return int(found[1]) if found else text.rstrip().count("\n") + 1


def _line_of_setting(place: list[str], text: str) -> int:
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


def _line_error(why: str, line: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE",
        human_message=f"kaiza.toml, line {line}: {why}. Mend that line and start again.",
        cause={"file": "kaiza.toml", "line": line},
    )


def _file_error(why: str) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE", human_message=f"{_FILE_PROBLEMS[why]}, and start again.", cause={"file": NAME, "why": why}
    )
