"""The state directory of a workspace: outside of it, so that what is kept there is out of an agent's reach."""

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

_ID_LENGTH = 16


def path_of(root: str, *, create: bool = False) -> Path:
    """`$XDG_STATE_HOME/kaiza/<id>` of this workspace, made (0700) if asked for. OSError where it cannot be made."""
    real = os.fsencode(os.path.realpath(root))
    place = _state_home() / "kaiza" / sha256(real).hexdigest()[:_ID_LENGTH]
    if create:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
    return place


def _state_home() -> Path:
    told = Path(os.environ.get("XDG_STATE_HOME", ""))
    return told if told.is_absolute() else Path("~/.local/state").expanduser()


def alternative_locations() -> Iterator[tuple[str, str]]:
    """Real places where state could be kept as well, the best first, each with how a shell spells it."""
    yield os.path.realpath(Path("~/.local/state").expanduser()), '"$HOME/.local/state"'
    for place in ("/var/lib/kaiza", f"/var/tmp/kaiza-{os.geteuid()}"):  # noqa: S108  kept over restarts; its own in there is 0700
        if os.access(os.path.dirname(place), os.W_OK):  # noqa: PTH120
            yield os.path.realpath(place), place


def replace_file(place: Path, content: bytes) -> None:
    """The file has this content, whole, when this returns; readers see the old one or the new one."""
    beside = place.with_name(f"{place.name}.{os.getpid()}")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        _write_synced(descriptor, content)
    finally:
        os.close(descriptor)
    beside.replace(place)


def write_new(place: Path, content: bytes) -> None:
    """A new file, readable for its owner only, is on disk with this content when this returns."""
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        give_to_owner(place.parent, descriptor)
        _write_synced(descriptor, content)
    finally:
        os.close(descriptor)


def _write_synced(descriptor: int, content: bytes) -> None:
    """Every byte is on disk when this returns, however few the system takes at a time."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]
    os.fsync(descriptor)


def sync_directory(place: Path) -> None:
    """The names in a directory are on disk when this returns."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def give_to_owner(place: Path, descriptor: int) -> None:
    """What an administrator's process makes in there must not be in the way of the user's own."""
    if os.geteuid() == 0:
        owner = place.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
