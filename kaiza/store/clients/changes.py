"""Plans and applies the file changes that add Kaiza to a client or remove it.

All changes are computed before the first byte is written. No link is followed, and each file is replaced atomically.
"""

import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kaiza.store.clients.client import Client, ConfigError, ConfigFile, ServerCommand, ServerEntry
from kaiza.store.clients.install_manifest import InstalledFile, InstallManifest, content_hash
from kaiza.store.disk import small_files

_MAX_BYTES = 4 * 1024 * 1024


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
    current = _read_file(base, file.path)
    if current is not None and file.insert(_decode_text(current), server).encode() == current:
        return None
    # Start from the file without an earlier entry, so that removing the new one leads back to the user's own text.
    original = _content_without_kaiza(file, current, target.manifest.files.get(str(path)))
    after = file.insert(_decode_text(original or b""), server).encode()
    _require_writable(base, file.path)
    directories = tuple(prefix for prefix in list(_path_prefixes(base, file.path))[:-1] if not prefix.exists())
    return ConfigChange(path, file.name, client.name, current, after, original, directories)


def _removal_change(target: InstallTarget, client: Client, file: ConfigFile) -> ConfigChange | None:
    base = target.base_directory(file)
    path = base.joinpath(*file.path)
    current, installed = _read_file(base, file.path), target.manifest.files.get(str(path))
    if current is None:
        return None
    if installed is not None:
        after = _content_without_kaiza(file, current, installed)
    elif current.strip() and (
        # A file in the home directory may hold the entry of another workspace.
        file.location == "workspace"
        or ((entry := file.find_entry(_decode_text(current))) is not None and is_for_workspace(entry, target.root))
    ):
        after = file.remove(_decode_text(current), None).encode()
    else:
        return None
    if after == current:
        return None
    _require_writable(base, file.path)
    return ConfigChange(path, file.name, client.name, current, after, after)


def _content_without_kaiza(file: ConfigFile, current: bytes | None, installed: InstalledFile | None) -> bytes | None:
    """The original content if the file is unchanged since the installation; else the current one less Kaiza's part."""
    if installed is None or current is None:
        return current
    if installed.is_unchanged(current):
        return installed.before
    text = file.remove(_decode_text(current), _decode_text(installed.before or b"")) if current.strip() else ""
    return None if installed.before is None and text.strip() in {"", "{}"} else text.encode()


def _read_text(file: ConfigFile, target: InstallTarget) -> str:
    try:
        return _decode_text(_read_file(target.base_directory(file), file.path) or b"")
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
            # Noted first: `_replace_file` may fail after the rename, in the sync of the directory.
            started.append(change)
            _replace_file(change.path, change.before, change.after)
    except (OSError, ConfigError):
        for change in reversed(started):
            if _read_file(change.path.parent, (change.path.name,)) == change.after:
                _replace_file(change.path, change.after, change.before)
        remove_empty_directories(list(reversed(created)))
        raise
    remove_empty_directories(removed_directories)


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
            current = _read_file(root, parts)
            if installed.is_unchanged(current):
                changes.append(
                    ConfigChange(Path(path), "/".join(parts), owner, current, installed.before, installed.before)
                )
    return changes


def _read_file(base: Path, parts: tuple[str, ...]) -> bytes | None:
    """Read a file below `base`; None if missing. ConfigError if it is not a regular file or behind a link."""
    for prefix in _path_prefixes(base, parts):
        # A cloned repository could place a link here that leads init to a file anywhere else.
        if prefix.is_symlink():
            raise ConfigError(
                f"{prefix.name} is a symbolic link, which Kaiza does not follow. Replace it with a real one"
            )
    try:
        return small_files.read(base.joinpath(*parts), _MAX_BYTES)
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise ConfigError("A file exists where a directory is needed") from error
    except small_files.NotRegularError as error:
        raise ConfigError("This is not a regular file") from error
    except OSError as error:
        if error.errno != errno.EFBIG:
            raise
        raise ConfigError("The file is too large for a configuration file") from error


def _require_writable(base: Path, parts: tuple[str, ...]) -> None:
    """ConfigError if the file is read-only, or the directory that would hold it."""
    path = base.joinpath(*parts)
    # Replacing a file needs no write permission on it: ask, because read-only is how a user says no.
    if path.exists() and not path.stat().st_mode & stat.S_IWUSR:
        raise ConfigError("The file is read-only. Make it writable to let Kaiza change it")
    existing = next(parent for parent in path.parents if parent.exists())
    if not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError("You have no permission to write to its directory")


def _replace_file(path: Path, before: bytes | None, after: bytes | None) -> None:
    """Atomically replace `before` by `after` and sync; None means no file. OSError or ConfigError if nothing changed.

    ConfigError if the file no longer has the content `before`.
    """
    if after is None:
        _require_content(path, before)
        path.unlink()
    else:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
        try:
            _write_file(temporary, after, path.lstat() if before is not None else None)
            # Last moment before the rename: an edit by the user or the client since it was read is not lost.
            _require_content(path, before)
            if before is None:
                os.link(temporary, path, follow_symlinks=False)  # unlike rename, fails if the file has appeared
            else:
                temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    small_files.sync_directory(path.parent)


def _path_prefixes(base: Path, parts: tuple[str, ...]) -> Iterator[Path]:
    for number in range(1, len(parts) + 1):
        yield base.joinpath(*parts[:number])


def _require_content(path: Path, before: bytes | None) -> None:
    if _read_file(path.parent, (path.name,)) != before:
        raise ConfigError("The file was changed meanwhile. Check it and run the command again")


def _write_file(path: Path, content: bytes, original: os.stat_result | None) -> None:
    descriptor = small_files.create(path, mode=0o644)
    with os.fdopen(descriptor, "wb") as file:
        if original is not None:
            os.fchmod(descriptor, stat.S_IMODE(original.st_mode))
            if os.geteuid() == 0:
                # Under sudo the file must stay the user's, or their client can no longer write it.
                os.fchown(descriptor, original.st_uid, original.st_gid)
        file.write(content)
        file.flush()
        os.fsync(descriptor)
