"""Plans and applies the file changes that add Kaiza to a client or remove it.

All changes are computed before the first byte is written.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaiza.store.clients import config_files
from kaiza.store.clients.client import Client, ConfigFile, ServerCommand, ServerEntry
from kaiza.store.clients.errors import ConfigError
from kaiza.store.clients.install_manifest import InstalledFile, InstallManifest, content_hash


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """Workspace, home directory and manifest of earlier changes."""

    root: Path
    home: Path
    manifest: InstallManifest

    def base_directory(self, file: ConfigFile) -> Path:
        """The directory that the file's path is relative to."""
        return self.root if file.location == "workspace" else self.home


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """One file before and after; None means no file. `restored` is its content once Kaiza is removed again."""

    path: Path
    name: str
    owner: str
    before: bytes | None
    after: bytes | None
    restored: bytes | None
    directories: tuple[Path, ...] = ()
    """Missing parent directories, outermost first."""


class ConfigFileError(Exception):
    """A ConfigError with the name of its file."""

    def __init__(self, name: str, error: ConfigError) -> None:
        location = name if error.line is None else f"{name}, line {error.line}"
        super().__init__(f"{location}: {error.sentence}.")


def plan_install(client: Client, server: ServerEntry, target: InstallTarget) -> list[ConfigChange]:
    """Changes that make the client use this server; ConfigFileError if a file cannot be changed safely."""
    return _collect_changes(client, partial(_install_change, server, target))


def plan_removal(client: Client, target: InstallTarget) -> list[ConfigChange]:
    """Changes that restore the client's files to their state before Kaiza."""
    return _collect_changes(client, partial(_removal_change, target))


def find_entries(client: Client, target: InstallTarget) -> Iterator[tuple[ConfigFile, str, ServerEntry]]:
    """The client's files that have an entry of Kaiza, each with its text and the entry."""
    for file in client.files:
        text = _read_text(file, target)
        try:
            entry = file.find_entry(text) if text.strip() else None
        except ConfigError as error:
            raise ConfigFileError(file.name, error) from error
        if entry is not None:
            yield file, text, entry


def leaves_writers(client: Client, target: InstallTarget) -> bool:
    """Whether the client's files leave it own tools that write and that these files could take away."""
    return any(file.leaves_writers(_read_text(file, target)) for file in client.files)


def is_for_workspace(entry: ServerEntry, root: Path) -> bool:
    """Whether the entry starts a server for this workspace."""
    return isinstance(entry, ServerCommand) and str(root) in entry.workspaces


def add_to_manifest(change: ConfigChange, manifest: InstallManifest) -> InstallManifest:
    """The manifest with a change that is about to be made."""
    files = {path: installed for path, installed in manifest.files.items() if path != str(change.path)}
    if change.after is not None and change.after != change.restored:
        files[str(change.path)] = InstalledFile(change.owner, change.restored, content_hash(change.after))
    directories = {**manifest.directories, **dict.fromkeys(map(str, change.directories), change.owner)}
    return InstallManifest(files, directories)


def _collect_changes(
    client: Client, change_for: Callable[[Client, ConfigFile], ConfigChange | None]
) -> list[ConfigChange]:
    changes: list[ConfigChange] = []
    for file in client.files:
        try:
            change = change_for(client, file)
        except ConfigError as error:
            raise ConfigFileError(file.name, error) from error
        changes += [] if change is None else [change]
    return changes


def _install_change(
    server: ServerEntry, target: InstallTarget, client: Client, file: ConfigFile
) -> ConfigChange | None:
    base = target.base_directory(file)
    path = base.joinpath(*file.path)
    current = config_files.read(base, file.path)
    if current is not None and file.insert(_decode_text(current), server).encode() == current:
        return None
    # Start from the file without an earlier entry, so that removing the new one leads back to the user's own text.
    original = _content_without_kaiza(file, current, target.manifest.files.get(str(path)))
    after = file.insert(_decode_text(original or b""), server).encode()
    config_files.require_writable(base, file.path)
    directories = tuple(config_files.missing_directories(base, file.path))
    return ConfigChange(path, file.name, client.name, current, after, original, directories)


def _removal_change(target: InstallTarget, client: Client, file: ConfigFile) -> ConfigChange | None:
    base = target.base_directory(file)
    path = base.joinpath(*file.path)
    current, installed = config_files.read(base, file.path), target.manifest.files.get(str(path))
    if current is None:
        return None
    if installed is not None:
        after = _content_without_kaiza(file, current, installed)
    elif _is_removable(file, current, target.root):
        after = file.remove(_decode_text(current), None).encode()
    else:
        return None
    if after == current:
        return None
    config_files.require_writable(base, file.path)
    return ConfigChange(path, file.name, client.name, current, after, after)


def _content_without_kaiza(file: ConfigFile, current: bytes | None, installed: InstalledFile | None) -> bytes | None:
    """The original content if the file is unchanged since the installation; else the current one less Kaiza's part."""
    if installed is None or current is None:
        return current
    if installed.is_unchanged(current):
        return installed.before
    text = file.remove(_decode_text(current), _decode_text(installed.before or b"")) if current.strip() else ""
    return None if installed.before is None and text.strip() in {"", "{}"} else text.encode()


def _is_removable(file: ConfigFile, current: bytes, root: Path) -> bool:
    """Whether an entry that is not in the manifest may be removed."""
    if not current.strip():
        return False
    entry = file.find_entry(_decode_text(current))
    # A file in the home directory may hold the entry of another workspace.
    return file.location == "workspace" or (entry is not None and is_for_workspace(entry, root))


def _read_text(file: ConfigFile, target: InstallTarget) -> str:
    try:
        return _decode_text(config_files.read(target.base_directory(file), file.path) or b"")
    except ConfigError as error:
        raise ConfigFileError(file.name, error) from error


def _decode_text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("This is not UTF-8 text", line) from error


def apply_changes(
    changes: Sequence[ConfigChange], directories: Sequence[Path], removed_directories: Sequence[Path]
) -> None:
    """Apply all changes, or on OSError or ConfigError roll back all of them and raise it."""
    created: list[Path] = []
    started: list[ConfigChange] = []
    try:
        for directory in (*directories, *(parent for change in changes for parent in change.directories)):
            if not directory.is_dir():
                directory.mkdir()
                created.append(directory)
        for change in changes:
            # Noted first: `replace` may fail after the rename, in the sync of the directory.
            started.append(change)
            config_files.replace(change.path, change.before, change.after)
    except (OSError, ConfigError):
        _roll_back(started)
        remove_empty_directories(list(reversed(created)))
        raise
    remove_empty_directories(removed_directories)


def _roll_back(started: Sequence[ConfigChange]) -> None:
    for change in reversed(started):
        if config_files.read(change.path.parent, (change.path.name,)) == change.after:
            config_files.replace(change.path, change.after, change.before)


def remove_empty_directories(directories: Sequence[Path]) -> None:
    """Remove those of the directories that are empty."""
    for directory in directories:
        if directory.is_dir() and not directory.is_symlink() and not any(directory.iterdir()):
            directory.rmdir()


def removal_changes(manifest: InstallManifest, owner: str, root: Path) -> list[ConfigChange]:
    """Changes that restore the files of this owner; files edited since init are left alone."""
    changes: list[ConfigChange] = []
    for path, installed in manifest.files.items():
        if installed.owner == owner and Path(path).is_relative_to(root):
            parts = Path(path).relative_to(root).parts
            current = config_files.read(root, parts)
            if installed.is_unchanged(current):
                changes.append(
                    ConfigChange(Path(path), "/".join(parts), owner, current, installed.before, installed.before)
                )
    return changes
