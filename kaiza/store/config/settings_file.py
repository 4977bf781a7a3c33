"""Reads one TOML file with settings: `kaiza.toml` of a workspace, or a `config.toml` outside of all workspaces.

Fails closed: an unreadable file, an unknown key or an invalid value is a BOOTSTRAP_FAILURE, because falling back to the
defaults would drop a `deny_read` that a person has written.
"""

import errno
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from kaiza.domain import errors
from kaiza.domain.paths.confusables import skeleton
from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.disk import small_files

if TYPE_CHECKING:
    from kaiza.store.config.settings_schema import SettingsFile

MAX_FILE_BYTES = 64 * 1024
_WRITABLE_BY_ALL = 0o002
_FILE_PROBLEMS = {
    "misnamed": "A file name differs from {file} only in case or spelling. Rename it to {name} or remove it",
    "link": "{file} is a link. Replace it with the file itself",
    "no_file": "{file} is not a regular file. Replace it with a file or remove it",
    "not_yours": "{file} belongs to another user, or every user can write it. Correct its owner and mode",
    "unreadable": "{file} cannot be read. Make it readable for the account that runs Kaiza",
    "too_large": "{file} is larger than 64 KiB. Shorten it",
    "not_utf8": "{file} is not UTF-8 text. Save it as UTF-8",
}
_MISPLACED_KEYS = {
    "trust": "a workspace cannot give trust to itself. Move it to ~/.config/kaiza/config.toml",
    "everything_below": "it is valid only in /etc/kaiza/config.toml",
}


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where a file of settings is: the schema that it follows, its name, and what messages call it."""

    schema: Literal["workspace", "user", "machine"]
    name: str
    title: str


def read_text(directory: int, place: FilePlace) -> str | None:
    """Text of the file in an open directory; None if there is none."""
    # Compared by skeleton: on a case-insensitive file system, or to a person, KAIZA.TOML is the same file.
    names = [name for name in os.listdir(directory) if skeleton(name) == place.name]
    if not names:
        return None
    if names != [place.name]:
        raise file_error(place, "misnamed")
    try:
        # Checked before it is opened, for the right message, and again when it is open: it may be swapped between.
        _require_own_file(place, os.stat(place.name, dir_fd=directory, follow_symlinks=False))
        content = small_files.read(place.name, MAX_FILE_BYTES, directory, check=partial(_require_own_file, place))
        return content.decode()
    except OSError as error:
        raise file_error(place, "too_large" if error.errno == errno.EFBIG else "unreadable") from error
    except UnicodeDecodeError as error:
        raise file_error(place, "not_utf8") from error


def parse_file(text: str, place: FilePlace) -> "SettingsFile":
    """Parse and validate the text of a file; BOOTSTRAP_FAILURE with the line of the first error."""
    # Imported here, because a workspace without settings does not pay 60 ms for pydantic.
    import tomllib  # noqa: PLC0415  as above

    import pydantic  # noqa: PLC0415  as above

    from kaiza.store.config.settings_schema import SCHEMAS  # noqa: PLC0415  as above

    try:
        file = SCHEMAS[place.schema].model_validate(tomllib.loads(text))
        for glob in file.deny_read:
            DenyGlob.parse(glob)
    except tomllib.TOMLDecodeError as error:
        # The line that tomllib names; for an error at the end of the document, the last line with text.
        match = re.search(r"at line (\d+)", str(error))
        raise _line_error(place, str(error), int(match[1]) if match else text.rstrip().count("\n") + 1) from error
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        path = first["loc"]
        is_unknown = first["type"] == "extra_forbidden"
        problem = _MISPLACED_KEYS.get(str(path[-1]), first["msg"]) if is_unknown else first["msg"]
        raise _line_error(place, f"{'.'.join(map(str, path))}: {problem}", _line_of_setting(path, text)) from error
    except ValueError as error:
        raise _line_error(place, f"deny_read: {error}", _line_of_setting(["deny_read"], text)) from error
    return file


def file_error(place: FilePlace, why: str) -> errors.SystemError:
    """BOOTSTRAP_FAILURE for a file that is not read at all."""
    problem = _FILE_PROBLEMS[why].format(file=place.title, name=place.name)
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE", human_message=f"{problem}, and start again.", cause={"file": place.title, "why": why}
    )


def _require_own_file(place: FilePlace, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise file_error(place, "link" if stat.S_ISLNK(status.st_mode) else "no_file")
    # A file outside of the workspace may loosen, so another user must not be able to write it.
    is_own = status.st_uid in (0, os.geteuid()) and not status.st_mode & _WRITABLE_BY_ALL
    if place.schema != "workspace" and not is_own:
        raise file_error(place, "not_yours")


def _line_of_setting(path: Sequence[str | int], text: str) -> int:
    """The line of a setting, or of its section if the setting is missing; tomllib does not keep positions."""
    names = [part for part in path if isinstance(part, str)]
    earlier = next((part for part in path if isinstance(part, int)), 0)
    section = ""
    nearest = 1
    for number, line in enumerate(text.split("\n"), 1):
        heading = re.match(r"\s*(\[+)\s*([\w.\"-]+)\s*\]", line)
        if heading:
            section = heading[2]
            if heading[1] == "[[" and earlier:
                section, earlier = "", earlier - 1
            nearest = number if section and section in (names[0], ".".join(names[:-1])) else nearest
        key = re.match(r"\s*([\w.-]+)\s*=", line)
        name = ".".join(filter(None, (section, key[1]))) if key else ""
        if name and ".".join(names).startswith(name):
            return number
    return nearest


def _line_error(place: FilePlace, problem: str, line: int) -> errors.SystemError:
    return errors.SystemError.startup_failure(
        "BOOTSTRAP_FAILURE",
        human_message=f"{place.title}, line {line}: {problem}. Correct that line and start again.",
        cause={"file": place.title, "line": line},
    )
