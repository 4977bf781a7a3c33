"""What putting Kaiza into a client, or taking it out, would change: decided in full before a byte is written."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaiza.store.clients import config_files
from kaiza.store.clients.client import Client, ConfigFile, ServerCommand
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.install_manifest import InstalledFile, InstallManifest, content_hash


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """Where: the workspace, the home directory, and what is remembered of earlier changes."""

    root: Path
    home: Path
    manifest: InstallManifest

    def base_directory(self, file: ConfigFile) -> Path:
        """The directory that the file's path begins in."""
        return self.root if file.location == "workspace" else self.home


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One file before and after; None is no file. `base` is what it is to be again when it is taken back."""

    path: Path
    name: str
    owner: str
    before: bytes | None
    after: bytes | None
    restored: bytes | None
    directories: tuple[Path, ...] = ()
    """Those that have to be made for it, the outer ones first."""


class ConfigFileError(Exception):
    """A ConfigFault with the name of its file."""

    def __init__(self, name: str, fault: ConfigError) -> None:
        where = name if fault.line is None else f"{name}, line {fault.line}"
        super().__init__(f"{where}: {fault.sentence}.")


def plan_install(client: Client, server: ServerCommand, site: InstallTarget) -> list[ConfigChange]:
    """The files that would change for this client to start this server; FileFault where one stands in the way."""
    return _collect_changes(client, partial(_install_change, server, site))


def plan_removal(client: Client, site: InstallTarget) -> list[ConfigChange]:
    """The files that would change for this client to be as it was before Kaiza."""
    return _collect_changes(client, partial(_removal_change, site))


def find_entries(client: Client, site: InstallTarget) -> Iterator[tuple[ConfigFile, str, ServerCommand]]:
    """The entries of Kaiza that are there, with the text they stand in."""
    for file in client.files:
        try:
            text = _decode_text(config_files.read(site.base_directory(file), file.path) or b"")
            entry = file.find_entry(text) if text.strip() else None
        except ConfigError as fault:
            raise ConfigFileError(file.name, fault) from fault
        if entry is not None:
            yield file, text, entry


def is_for_workspace(entry: ServerCommand, root: Path) -> bool:
    """Whether the entry is for this workspace."""
    return str(root) in entry.workspaces


def add_to_manifest(change: ConfigChange, memory: InstallManifest) -> InstallManifest:
    """The memory with this change about to be made."""
    known = {path: done for path, done in memory.files.items() if path != str(change.path)}
    if change.after is not None and change.after != change.restored:
        known[str(change.path)] = InstalledFile(change.owner, change.restored, content_hash(change.after))
    directories = {**memory.directories, **dict.fromkeys(map(str, change.directories), change.owner)}
    return InstallManifest(known, directories)


def _collect_changes(client: Client, decide: Callable[[Client, ConfigFile], ConfigChange | None]) -> list[ConfigChange]:
    found: list[ConfigChange] = []
    for file in client.files:
        try:
            change = decide(client, file)
        except ConfigError as fault:
            raise ConfigFileError(file.name, fault) from fault
        found += [] if change is None else [change]
    return found


def _install_change(
    server: ServerCommand, site: InstallTarget, client: Client, file: ConfigFile
) -> ConfigChange | None:
    base = site.base_directory(file)
    path = base.joinpath(*file.path)
    now = config_files.read(base, file.path)
    if now is not None and file.insert(_decode_text(now), server).encode() == now:
        return None
    before = _content_without_kaiza(file, now, site.manifest.files.get(str(path)))
    after = file.insert(_decode_text(before or b""), server).encode()
    config_files.require_writable(base, file.path)
    directories = tuple(config_files.missing_directories(base, file.path))
    return ConfigChange(path, file.name, client.name, now, after, before, directories)


def _removal_change(site: InstallTarget, client: Client, file: ConfigFile) -> ConfigChange | None:
    base = site.base_directory(file)
    path = base.joinpath(*file.path)
    now, done = config_files.read(base, file.path), site.manifest.files.get(str(path))
    if now is None:
        return None
    if done is not None:
        after = _content_without_kaiza(file, now, done)
    elif _is_removable(file, now, site.root):
        after = file.remove(_decode_text(now), None).encode()
    else:
        return None
    if after == now:
        return None
    config_files.require_writable(base, file.path)
    return ConfigChange(path, file.name, client.name, now, after, after)


def _content_without_kaiza(file: ConfigFile, now: bytes | None, done: InstalledFile | None) -> bytes | None:
    """What the file would be without Kaiza: as it was, or, where somebody changed it since, with Kaiza taken out."""
    if done is None or now is None:
        return now
    if done.is_unchanged(now):
        return done.before
    text = file.remove(_decode_text(now), _decode_text(done.before or b"")) if now.strip() else ""
    return None if done.before is None and text.strip() in {"", "{}"} else text.encode()


def _is_removable(file: ConfigFile, now: bytes, root: Path) -> bool:
    """Whether an entry that nobody remembers making is Kaiza's to take: one at home only where it names the root."""
    if not now.strip():
        return False
    entry = file.find_entry(_decode_text(now))
    return file.location == "workspace" or (entry is not None and is_for_workspace(entry, root))


def _decode_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("This is no UTF-8", line) from error


def apply_changes(changes: Sequence[ConfigChange], directories: Sequence[Path], away: Sequence[Path]) -> None:
    """Everything is done when this returns; OSError or ConfigFault, and everything as before, where something fails."""
    made: list[Path] = []
    begun: list[ConfigChange] = []
    try:
        for directory in (*directories, *(needed for change in changes for needed in change.directories)):
            if not directory.is_dir():
                directory.mkdir()
                made.append(directory)
        for change in changes:
            begun.append(change)
            config_files.replace(change.path, change.before, change.after)
    except (OSError, ConfigError):
        for change in reversed(begun):
            if config_files.read(change.path.parent, (change.path.name,)) == change.after:
                config_files.replace(change.path, change.after, change.before)
        remove_empty_directories(list(reversed(made)))
        raise
    remove_empty_directories(away)


def remove_empty_directories(directories: Sequence[Path]) -> None:
    """Those of the directories that are empty are gone when this returns."""
    for directory in directories:
        if directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir()):
            directory.rmdir()


def removal_changes(memory: InstallManifest, owner: str, root: Path) -> list[ConfigChange]:
    """The files made for this owner that nobody has changed since."""
    found: list[ConfigChange] = []
    for path, done in memory.files.items():
        if done.owner == owner and Path(path).is_relative_to(root):
            parts = Path(path).relative_to(root).parts
            now = config_files.read(root, parts)
            if done.is_unchanged(now):
                found.append(ConfigChange(Path(path), "/".join(parts), owner, now, done.before, done.before))
    return found
