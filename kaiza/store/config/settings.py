"""Settings of a workspace, read from `kaiza.toml`."""

from dataclasses import dataclass
from functools import lru_cache

from kaiza.domain.paths.denial import DenyGlob
from kaiza.store.config.settings_file import FilePlace, parse_file, read_text

NAME = "kaiza.toml"
_PLACE = FilePlace("workspace", NAME, NAME)


@dataclass(frozen=True, slots=True)
class Settings:
    """Effective settings of a workspace."""

    deny_read: tuple[DenyGlob, ...] = ()
    allow_read: frozenset[str] = frozenset()
    sync_every: bool = False
    required_approval: str = "edit"
    release_by_person: bool = False
    checks_seconds: int = 300
    checks_network: bool = False
    checks_writable: tuple[str, ...] = ()


def read(directory: int) -> Settings:
    """Read the settings in an open directory; the defaults if there is no file, BOOTSTRAP_FAILURE if it is invalid."""
    return parse(read_text(directory, _PLACE))


@lru_cache(maxsize=16)
def parse(text: str) -> Settings:
    """Parse the text of a `kaiza.toml`; BOOTSTRAP_FAILURE with the line of the first error."""
    if not text.strip():
        return Settings()
    file = parse_file(text, _PLACE)
    return Settings(
        deny_read=tuple(DenyGlob.parse(glob) for glob in file.deny_read),
        allow_read=frozenset(file.allow_read),
        sync_every=file.audit.sync == "every",
        required_approval=file.approval.require,
        release_by_person=file.lock.release == "person",
        checks_seconds=file.checks.seconds,
        checks_network=file.checks.network,
        checks_writable=tuple(file.checks.writable),
    )
