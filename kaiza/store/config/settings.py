"""Settings of a workspace, read from `kaiza.toml`.

Fails closed: an unreadable file, an unknown key or an invalid value stops the start, because falling back to the
defaults would drop a `deny_read` that a person has written.
"""

import os
import re
import stat
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kaiza.domain import errors
from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.disk.byte_io import READ_NOFOLLOW

NAME = "kaiza.toml"
MAX_FILE_BYTES = 64 * 1024
_FILE_PROBLEMS = {
    "misnamed": "A file name differs from kaiza.toml only in case or spelling. Rename it to kaiza.toml or remove it",
    "link": "kaiza.toml is a link. Replace it with the file itself",
    "no_file": "kaiza.toml is not a regular file. Replace it with a file or remove it",
    "unreadable": "kaiza.toml cannot be read. Make it readable for the account that runs Kaiza",
    "too_large": "kaiza.toml is larger than 64 KiB. Shorten it",
    "not_utf8": "kaiza.toml is not UTF-8 text. Save it as UTF-8",
}


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings of a workspace."""

    deny_read: tuple[DenyGlob, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    required_approval: str = "edit"
    release_by_person: bool = False
    checks_seconds: int = 300


def read(directory: int) -> Settings:
    """Read the settings in an open directory; the defaults if there is no file, BOOTSTRAP_FAILURE if it is invalid."""
    # Compared by skeleton: on a case-insensitive file system, or to a person, KAIZA.TOML is the same file.
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
    except UnicodeDecodeError as error:
        raise _file_error("not_utf8") from error


@lru_cache(maxsize=16)
def parse(text: str) -> Settings:
    """Parse the text of a `kaiza.toml`; BOOTSTRAP_FAILURE with the line of the first error."""
    if not text.strip():
        return Settings()
    import tomllib  # noqa: PLC0415  a workspace without kaiza.toml does not pay for it

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _line_error(str(error), _line_in_message(str(error), text)) from error
    return _validate_settings(document, text)


def _read_content(directory: int) -> bytes:
    """Read the file, at most one byte more than MAX_FILE_BYTES."""
    try:
        # Checked before opening, for the right message, and again on the descriptor, because it may be swapped between.
        _require_regular_file(os.stat(NAME, dir_fd=directory, follow_symlinks=False))
        descriptor = os.open(NAME, READ_NOFOLLOW, dir_fd=directory)
        with os.fdopen(descriptor, "rb") as file:
            _require_regular_file(os.fstat(descriptor))
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _file_error("unreadable") from error


def _require_regular_file(status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _file_error("link" if stat.S_ISLNK(status.st_mode) else "no_file")


def _validate_settings(document: dict[str, Any], text: str) -> Settings:
    import pydantic  # noqa: PLC0415  60 ms, which a workspace without kaiza.toml does not pay

    from kaiza.store.config.settings_schema import SettingsFile  # noqa: PLC0415  as above

    try:
        file = SettingsFile.model_validate(document)
        deny = tuple(DenyGlob.parse(glob) for glob in file.deny_read)
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = [str(part) for part in first["loc"]]
        raise _line_error(f"{'.'.join(path)}: {first['msg']}", _line_of_setting(path, text)) from error
    except ValueError as error:
        raise _line_error(f"deny_read: {error}", _line_of_setting(["deny_read"], text)) from error
    return Settings(
        deny_read=deny,
        allow_read=frozenset(file.allow_read),
        sync_every=file.audit.sync == "every",
        required_approval=file.approval.require,
        release_by_person=file.lock.release == "person",
        checks_seconds=file.checks.seconds,
    )


def _line_in_message(message: str, text: str) -> int:
    """The line that tomllib names; for an error at the end of the document, the last line with text."""
    match = re.search(r"at line (\d+)", message)
    return int(match[1]) if match else text.rstrip().count("\n") + 1


def _line_of_setting(path: list[str], text: str) -> int:
    """The line of a setting, or of its section if the setting is missing; tomllib does not keep positions."""
    section = ""
    nearest = 1
    for number, line in enumerate(text.split("\n"), 1):
        heading = re.match(r"\s*\[\s*([\w.\"-]+)\s*\]", line)
        if heading:
            section = heading[1]
            nearest = number if section == path[0] else nearest
        key = re.match(r"\s*([\w.-]+)\s*=", line)
        name = ".".join(filter(None, (section, key[1]))) if key else ""
        if name and ".".join(path).startswith(name):
            return number
    return nearest


def _line_error(problem: str, line: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE",
        human_message=f"kaiza.toml, line {line}: {problem}. Correct that line and start again.",
        cause={"file": "kaiza.toml", "line": line},
    )


def _file_error(why: str) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE", human_message=f"{_FILE_PROBLEMS[why]}, and start again.", cause={"file": NAME, "why": why}
    )
