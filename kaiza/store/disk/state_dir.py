"""State directory of a workspace, and the JSON files in it.

It is outside of the workspace, so that an agent's file tools cannot reach what is kept there.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import orjson

from kaiza.store.disk import small_files

_ID_LENGTH = 16
_MAX_FILE_BYTES = 64 << 20
_OTHER_USERS = stat.S_IRWXG | stat.S_IRWXO
T = TypeVar("T")


def path_of(root: str, *, create: bool = False) -> Path:
    """`$XDG_STATE_HOME/kaiza/<id>` of this workspace. `create` makes it (0700); OSError if that fails."""
    real = os.fsencode(os.path.realpath(root))
    path = shared_path() / sha256(real).hexdigest()[:_ID_LENGTH]
    if create:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def shared_path() -> Path:
    """`$XDG_STATE_HOME/kaiza`, which holds the state directories of all workspaces."""
    # A relative path is ignored, as the XDG specification requires; an agent's working directory would decide on it.
    configured = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (configured if configured.is_absolute() else Path("~/.local/state").expanduser()) / "kaiza"


def alternative_locations(usual: str) -> Iterator[tuple[str, str]]:
    """Other directories that could hold the state, or the configuration: the real path, and its spelling in a shell.

    The best is first: `usual`, a directory below the home directory.
    """
    yield os.path.realpath(Path("~", usual).expanduser()), f'"$HOME/{usual}"'
    for path in ("/var/lib/kaiza", f"/var/tmp/kaiza-{os.geteuid()}"):  # noqa: S108  survives restarts; what Kaiza makes in there is 0700
        if os.access(os.path.dirname(path), os.W_OK):  # noqa: PTH120
            yield os.path.realpath(path), path


@dataclass(frozen=True, slots=True)
class StateFile:
    """One kind of JSON file: the name that it has in each state directory, and its format."""

    name: str
    format: int = 1
    is_private: bool = False
    """Whether a file that other users can open is refused."""

    def path_in(self, directory: Path) -> str:
        """Its path, as text: some are looked at with every change, where a Path is slow."""
        return f"{directory}/{self.name}"

    def load(self, directory: Path, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """What `parse` makes of the document; None if there is no file.

        OSError if it cannot be read: any program of the user can put a link, a FIFO or a huge file in its place.
        ValueError if it is damaged, which includes that `parse` misses a member or finds one of another type.
        """
        try:
            check = _require_private if self.is_private else None
            content = small_files.read(self.path_in(directory), _MAX_FILE_BYTES, check=check)
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            document = orjson.loads(content)
            if document["format"] != self.format:
                raise ValueError(f"{self.name} is of another version")
            return parse(document)
        except (KeyError, TypeError, AttributeError) as damage:
            raise ValueError(f"{self.name} is damaged") from damage

    def replace(self, directory: Path, members: Mapping[str, Any], *, durable: bool) -> None:
        """Write the document in place of an older one, of which a reader sees all or nothing. OSError on failure.

        `durable`: it is on disk when this returns.
        """
        content = orjson.dumps({"format": self.format, **members})
        small_files.replace(self.path_in(directory), content, durable=durable)


def _require_private(status: os.stat_result) -> None:
    if status.st_mode & _OTHER_USERS or status.st_uid not in {0, os.geteuid()}:
        raise PermissionError("This file is open to other users, or belongs to one")
